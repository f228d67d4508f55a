"""ThinkSwitch: beside the composer, whether the model is to think before it answers."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from app.chat.composer import strings
from app.controls.buttons.switch import Switch
from app.controls.text_label import TextLabel
from app.theme.measures import set_margins, set_spacing
from app.theme.theme import Theme

_GAP_PX = 7
_LEFT_PX = 6


class ThinkSwitch(QWidget):
    """Hidden for models that have no such switch. `turned` tells a person's choice."""

    turned = Signal(bool)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.switch = Switch(theme)
        self.switch.setAccessibleName(strings.THINK_FIRST)
        self.switch.setAccessibleDescription(strings.THINK_FIRST_SAYS)
        self.setToolTip(strings.THINK_FIRST_SAYS)
        row = QHBoxLayout(self)
        set_margins(row, _LEFT_PX, 0, 0, 0)
        set_spacing(row, _GAP_PX)
        row.addWidget(self.switch)
        row.addWidget(TextLabel(theme, strings.THINK_FIRST, 12, 16))
        self.switch.clicked.connect(self.turned)
        self.hide()

    def show_choice(self, known: bool, thinks: bool) -> None:
        """Whether the model has the switch, and how it stands."""
        self.switch.setChecked(thinks)
        self.setVisible(known)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Its words are a part of it."""
        if event.button() == Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self.switch.click()
