"""AccessibleText: the accessibility interface of a message or an answer, as static text.

Qt has no interface for text that a widget paints. Interfaces are created when a screen reader requests them
and live as long as their widget.
"""

from __future__ import annotations

from functools import cache

from PySide6.QtCore import QObject
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QAccessibleInterface
from PySide6.QtWidgets import QAccessibleWidget, QWidget


class ReadAloud(QWidget):
    """A widget whose painted text is `readable_text`."""

    accessible: QAccessibleInterface | None = None

    @property
    def readable_text(self) -> str:
        """All that can be read in it, in order."""
        return ""


class AccessibleText(QAccessibleWidget):
    """Named by the widget's accessible name; its text is the value and the description."""

    def __init__(self, widget: ReadAloud) -> None:
        super().__init__(widget, QAccessible.Role.StaticText, widget.accessibleName())
        self._widget = widget

    def text(self, kind: QAccessible.Text) -> str:
        if kind in (QAccessible.Text.Value, QAccessible.Text.Description):
            return self._widget.readable_text
        return str(super().text(kind))


@cache
def make_readable() -> None:
    """Let screen readers read every `ReadAloud`. Once a process; needs an application."""
    QAccessible.installFactory(_interface_for)


def announce(widget: QWidget, message: str) -> None:
    """Have `message` spoken when nothing else is, if a screen reader listens."""
    if QAccessible.isActive():
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(widget, message))


def _interface_for(class_name: str, target: QObject) -> QAccessibleInterface | None:
    if not isinstance(target, ReadAloud):
        return None
    interface = AccessibleText(target)
    # Qt keeps a bare pointer; without this reference Python would collect the object.
    target.accessible = interface
    return interface
