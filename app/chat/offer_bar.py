"""OfferBar: one line under the composer at the first start: a larger model, with Download and Not Now."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from app.chat import strings
from app.controls.buttons.button import Button
from app.controls.text_label import TextLabel
from app.theme.measures import set_margins, set_maximum_width, set_spacing
from app.theme.theme import Theme

_WIDTH_PX = 752


class OfferBar(QWidget):
    """Hidden until `show_offer()`."""

    answered = Signal(bool)  # True: download

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._label = TextLabel(theme, "", 12, 16, "text2", wrap=True)
        self.download_button = Button(theme, strings.DOWNLOAD, "link", True)
        self.later_button = Button(theme, strings.NOT_NOW, "link", True)
        self.download_button.clicked.connect(lambda: self.answered.emit(True))
        self.later_button.clicked.connect(lambda: self.answered.emit(False))
        row = QHBoxLayout(self)
        set_margins(row, 16, 6, 6, 0)
        set_spacing(row, 4)
        row.addWidget(self._label, 1, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self.download_button)
        row.addWidget(self.later_button)
        set_maximum_width(self, _WIDTH_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.hide()

    @property
    def text(self) -> str:
        """The offer; empty while hidden."""
        return self._label.text()

    def show_offer(self, text: str) -> None:
        """Show `text`; empty hides the bar."""
        self._label.setText(text)
        self.setAccessibleName(text)
        self.setVisible(bool(text))
