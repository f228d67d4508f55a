"""Tab order inside a conversation: as it is read, whatever order its widgets were made in.

Qt's own order is the order of making, and answers are made as the reader comes near them.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QWidget


def next_stop(items: Sequence[QWidget], forward: bool) -> QWidget | None:
    """Who gets the keyboard after the widget that has it now; `items` are in reading order.

    None if the keyboard is not among the items or leaves them.
    """
    stops = [stop for item in items for stop in _stops(item)]
    has_it = QApplication.focusWidget()
    if has_it is None or has_it not in stops:
        return None
    place = stops.index(has_it) + (1 if forward else -1)
    return stops[place] if 0 <= place < len(stops) else None


def after(inside: QWidget, forward: bool) -> QWidget | None:
    """The first stop outside of `inside`, from the widget that has the keyboard."""
    start = QApplication.focusWidget()
    widget = start
    while widget is not None:
        widget = widget.nextInFocusChain() if forward else widget.previousInFocusChain()
        if widget is None or widget is start:
            return None
        if not inside.isAncestorOf(widget) and widget is not inside and _takes_tab(widget):
            return widget
    return None


def _stops(item: QWidget) -> list[QWidget]:
    found = [child for child in item.findChildren(QWidget) if _takes_tab(child)]

    def place(child: QWidget) -> tuple[int, int]:
        corner = child.mapTo(item, QPoint(0, 0))
        return corner.y(), corner.x()

    return sorted(found, key=place)


def _takes_tab(widget: QWidget) -> bool:
    tab = Qt.FocusPolicy.TabFocus
    return bool(widget.focusPolicy() & tab) and widget.isVisible() and widget.isEnabled()
