"""MessageBar: a sentence across a window, with a tinted ground if something failed."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.controls.buttons import IconButton
from app.controls.shapes import in_own_direction
from app.controls.text_label import TextLabel
from app.theme.measures import set_margins
from app.theme.sheet import set_ground


class MessageBar(QWidget):
    """Hidden without a message. `close` is the name of the button that closes it; empty: it has none."""

    def __init__(self, close: str = "") -> None:
        super().__init__()
        set_ground(self, "quiet", "bottom")
        self.is_bad = False
        self.label = TextLabel("", 12, 17, "text", wrap=True)
        row = QHBoxLayout(self)
        set_margins(row, 26, 7, 14, 8)
        row.addWidget(self.label, 1)
        self.close_button = IconButton("x", close, size=QSize(24, 20))
        if not close:
            self.close_button.hide()
        row.addWidget(self.close_button, 0, Qt.AlignmentFlag.AlignTop)
        self.hide()

    @property
    def text(self) -> str:
        """The message; empty if the bar is hidden."""
        return "" if self.isHidden() else self.label.text()

    def show_message(self, text: str, *, bad: bool = False, full: str = "") -> None:
        """Shows `text`, or hides the bar if it is empty. `full` is the tooltip and the spoken text."""
        self.is_bad = bad and bool(text)
        if text:
            self.label.setText(text)
            self.label.setToolTip(in_own_direction(full or text))
            self.label.setAccessibleName(full or text)
            self.label.updateGeometry()
        set_ground(self, "bad" if self.is_bad else "quiet", "" if self.is_bad else "bottom")
        self.setVisible(bool(text))
