"""Toggle: what the check box and the switch share: Return turns them too, and all of them can be clicked."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QCheckBox, QWidget

from app.controls.buttons.press import pressed_by
from app.controls.focus_ring import FocusRing
from app.theme.theme import Theme


class Toggle(QCheckBox):
    """A QCheckBox to assistive technology; subclasses paint it. `ring_px` is the focus ring's radius."""

    def __init__(self, theme: Theme, text: str, ring_px: float, parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self._theme = theme
        self.setAttribute(Qt.WidgetAttribute.WA_LayoutUsesWidgetRect)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._ring = FocusRing(self, theme, ring_px)
        theme.changed.connect(self.update)

    def hitButton(self, pos: QPoint) -> bool:
        return self.rect().contains(pos)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not pressed_by(self, event):
            super().keyPressEvent(event)
