"""ActionButton: a small icon button under an answer or next to a message.

It is drawn while the entry is hovered or the button has the focus. After copying it shows a check mark for
1.5 s.
"""

from __future__ import annotations

from PySide6.QtCore import QSize, QTimer
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QWidget

from app.controls.buttons import IconButton
from app.richtext import strings
from app.theme.theme import Theme

_DONE_MS = 1500
SIZE = QSize(26, 24)


class ActionButton(IconButton):
    """Keeps its geometry and works while it is not revealed."""

    def __init__(
        self, theme: Theme, icon_name: str, accessible_name: str, parent: QWidget | None = None
    ) -> None:
        super().__init__(theme, icon_name, accessible_name, False, parent, size=SIZE)
        self._revealed = True
        self._own_icon = icon_name
        self._timer = QTimer(self, interval=_DONE_MS, singleShot=True)
        self._timer.timeout.connect(self._restore)

    @property
    def is_revealed(self) -> bool:
        """Whether it is drawn."""
        return self._revealed or self.hasFocus() or self._timer.isActive()

    def set_revealed(self, revealed: bool) -> None:
        """Sets whether it is drawn."""
        self._revealed = revealed
        self.update()

    def show_done(self) -> None:
        self.set_icon_name("check")
        self.setToolTip(strings.COPIED)
        self._timer.start()

    def _restore(self) -> None:
        self.set_icon_name(self._own_icon)
        self.setToolTip(self.accessibleName())

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.is_revealed:
            super().paintEvent(event)
