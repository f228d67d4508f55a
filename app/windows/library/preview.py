"""Preview: the beginning of a kept document, under the list. It is for a look, not for reading."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from app.controls.scroll_bar import ScrollBar
from app.controls.text_label import TextLabel
from app.theme.measures import set_font, set_margins, set_spacing
from app.theme.theme import Theme
from app.windows.library import strings

SHOWN_CHARACTERS = 20_000


class DocumentPreview(QWidget):
    """Text, and over it a name and a note."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.title = TextLabel(theme, "", 15, 20, "text", weight=600)
        self.note = TextLabel(theme, "", 12, 16, tabular=True)
        self.text_view = QPlainTextEdit(self)
        view = self.text_view
        view.setReadOnly(True)
        flags = Qt.TextInteractionFlag
        view.setTextInteractionFlags(flags.TextSelectableByMouse | flags.TextSelectableByKeyboard)
        view.setFrameShape(QPlainTextEdit.Shape.NoFrame)
        set_font(view, 12.5)
        view.setTabChangesFocus(True)
        view.setVerticalScrollBar(ScrollBar(theme, Qt.Orientation.Vertical))
        view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        view.setAccessibleName(strings.PREVIEW)
        view.document().setDocumentMargin(0)
        head = QHBoxLayout()
        set_spacing(head, 10)
        head.addWidget(self.title)
        head.addWidget(self.note, 1, Qt.AlignmentFlag.AlignBottom)
        column = QVBoxLayout(self)
        set_margins(column, 26, 14, 10, 14)
        set_spacing(column, 10)
        column.addLayout(head)
        column.addWidget(view, 1)
        column.addStretch(0)  # for what is said where there is no text
        theme.changed.connect(self._recolour)
        self._recolour()

    def show_text(self, name: str, note: str, text: str) -> None:
        """A document."""
        self.title.setText(name)
        cut = len(text) > SHOWN_CHARACTERS
        self.note.setText(strings.cut(note, SHOWN_CHARACTERS) if cut else note)
        for label in (self.title, self.note):
            label.updateGeometry()
        self.text_view.setVisible(bool(text))
        self.text_view.setPlainText(text[:SHOWN_CHARACTERS])
        self.text_view.setAccessibleName(name)

    def _recolour(self) -> None:
        palette = self.text_view.palette()
        palette.setColor(QPalette.ColorRole.Base, self._theme.color("window"))
        palette.setColor(QPalette.ColorRole.Text, self._theme.color("text"))
        self.text_view.setPalette(palette)
