"""The menu bar, built from the declarations: the system's own on a Mac, in the window elsewhere.

A menu shows as soon as something is bound to one of its actions.
"""

from __future__ import annotations

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QMenu, QMenuBar

from app.shell.menus.actions import Actions
from app.shell.menus.declared import MENUS
from app.theme.theme import Theme
from app.theme.zoom import height_of, painter_on, width_of


class MenuBar(QMenuBar):
    """With a hairline below, where it is in the window."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        theme.changed.connect(self.update)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = painter_on(self)
        painter.fillRect(QRectF(0, height_of(self) - 1, width_of(self), 1), self._theme.color("hair"))


def fill(bar: QMenuBar, actions: Actions) -> None:
    """Put all menus into `bar`. Call it once."""
    for spec in MENUS:
        menu = QMenu(spec.title, bar)
        for group in spec.groups:
            menu.addActions([actions[each.id] for each in group])
            # Lines with nothing beside them collapse.
            menu.addSeparator()
        bar.addMenu(menu)
        _follow(menu)


def _follow(menu: QMenu) -> None:
    def show() -> None:
        menu.menuAction().setVisible(any(each.isVisible() for each in own))

    own = [action for action in menu.actions() if not action.isSeparator()]
    for action in own:
        action.visibleChanged.connect(show)
    show()
