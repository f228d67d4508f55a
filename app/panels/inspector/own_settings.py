"""OwnSettings: the foot of a section whose settings hold for this chat only: reset them, or share them."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.controls.buttons.button import Button
from app.panels.inspector import strings
from app.theme.measures import add_gap, set_spacing
from app.theme.theme import Theme


class OwnSettings(QWidget):
    """Shown only where there is something to reset."""

    reset_requested = Signal()
    default_requested = Signal()

    def __init__(self, theme: Theme, section: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.reset_button = Button(theme, strings.RESET_SECTION, "link", True)
        self.reset_button.setAccessibleName(strings.RESET_NAME.format(section=section))
        self.default_button = Button(theme, strings.MAKE_DEFAULT, "link", True)
        self.default_button.setAccessibleName(strings.MAKE_DEFAULT_NAME.format(section=section))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        set_spacing(row, 4)
        # A link's text begins 7 px inside its button.
        add_gap(row, -7)
        row.addWidget(self.reset_button)
        row.addWidget(self.default_button)
        row.addStretch(1)
        self.reset_button.clicked.connect(self.reset_requested)
        self.default_button.clicked.connect(self.default_requested)
