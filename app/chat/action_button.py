"""ActionButton: a small icon button under an answer or beside a message.

Shown on demand only, but always there for the keyboard: with focus it shows itself. After it
has copied something it shows a check mark for 1.5 s.
"""

from __future__ import annotations

from PySide6.QtCore import QSize, QTimer
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QWidget

from app.controls.buttons.icon_button import IconButton
from app.richtext.canvas import strings
from app.theme.theme import Theme

_DONE_MS = 1500
SIZE = QSize(26, 24)


class ActionButton(IconButton):
    """`set_revealed(False)` leaves its place empty."""

    def __init__(
        self, theme: Theme, icon_name: str, accessible_name: str, parent: QWidget | None = None
    ) -> None:
        super().__init__(theme, icon_name, accessible_name, False, parent, size=SIZE)
        self._revealed = True
        self._own_icon = icon_name
        self._timer = QTimer(self, interval=_DONE_MS, singleShot=True)
        self._timer.timeout.connect(self._rest)

    @property
    def is_revealed(self) -> bool:
        """Whether it can be seen now."""
        return self._revealed or self.hasFocus() or self._timer.isActive()

    def set_revealed(self, revealed: bool) -> None:
        """Show or hide the drawing; the button stays where it is and works."""
        self._revealed = revealed
        self.update()

    def show_done(self) -> None:
        """Say for a moment that it worked."""
        self.set_icon_name("check")
        self.setToolTip(strings.COPIED)
        self._timer.start()

    def _rest(self) -> None:
        self.set_icon_name(self._own_icon)
        self.setToolTip(self.accessibleName())

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.is_revealed:
            super().paintEvent(event)
