"""DifferenceWindow: a plain and a drafted text side by side, from the first difference on marked."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QColor, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QDialog, QFrame, QHBoxLayout, QPlainTextEdit, QTextEdit, QVBoxLayout, QWidget

from app.controls.buttons.button import Button
from app.controls.scroll_bar import OverlayScrollBar
from app.controls.text_label import TextLabel
from app.session.lab.figures import common_start
from app.theme.measures import set_margins, set_mono_font, set_spacing, start_at
from app.theme.theme import Theme
from app.windows.lab import strings
from app.windows.lab.parity_board import BoardPlace

_SIZE = (860, 520)


class DifferenceWindow(QDialog):
    """Goes through `places`, from number `start` on. Deletes itself when closed."""

    def __init__(
        self, theme: Theme, places: Sequence[BoardPlace], start: int, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(strings.DIFFERENCE_TITLE)
        start_at(self, QSize(*_SIZE))
        self._theme = theme
        self._places = list(places)
        self._at = start
        self.title = TextLabel(theme, "", 13, 17, "text", weight=600)
        self.says = TextLabel(theme, "", 12, 16)
        self.plain = self._text(strings.PLAIN_TEXT)
        self.drafted = self._text(strings.DRAFTED_TEXT)
        self.previous = Button(theme, strings.PREVIOUS)
        self.next = Button(theme, strings.NEXT)
        close = Button(theme, strings.CLOSE, "primary")
        self.previous.clicked.connect(lambda: self.show_place(self._at - 1))
        self.next.clicked.connect(lambda: self.show_place(self._at + 1))
        close.clicked.connect(self.close)
        texts = QHBoxLayout()
        set_spacing(texts, 16)
        for name, edit in ((strings.PLAIN_TEXT, self.plain), (strings.DRAFTED_TEXT, self.drafted)):
            column = QVBoxLayout()
            column.addWidget(TextLabel(theme, name, 11, 15))
            column.addWidget(edit, 1)
            texts.addLayout(column, 1)
        buttons = QHBoxLayout()
        buttons.addWidget(self.previous)
        buttons.addWidget(self.next)
        buttons.addStretch(1)
        buttons.addWidget(close)
        layout = QVBoxLayout(self)
        set_margins(layout, 20, 16, 20, 16)
        set_spacing(layout, 8)
        layout.addWidget(self.title)
        layout.addWidget(self.says)
        layout.addLayout(texts, 1)
        layout.addLayout(buttons)
        self.show_place(start)

    def show_place(self, number: int) -> None:
        """Both texts of this answer, at the first difference."""
        self._at = number
        place = self._places[number]
        pair = place.mark.pair
        row, mark = place.row, place.mark
        self.title.setText(strings.mark(row.kind, row.drafter, mark.prompt, mark.number))
        self.says.setText(strings.difference(pair.difference or 0, pair.margin, pair.close_call))
        same = common_start(pair.plain_text, pair.drafted_text)
        for edit, text in ((self.plain, pair.plain_text), (self.drafted, pair.drafted_text)):
            self._show(edit, text, same)
        self.previous.setEnabled(number > 0)
        self.next.setEnabled(number + 1 < len(self._places))

    def _show(self, edit: QPlainTextEdit, text: str, same: int) -> None:
        edit.setPlainText(text or strings.NO_TEXT)
        marked = QTextEdit.ExtraSelection()
        style = QTextCharFormat()
        style.setBackground(QColor(self._theme.color("danger_tint")))
        style.setForeground(QColor(self._theme.color("danger")))
        cursor = QTextCursor(edit.document())
        cursor.setPosition(min(same, len(text)))
        edit.setTextCursor(cursor)
        edit.ensureCursorVisible()
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        marked.cursor, marked.format = cursor, style
        edit.setExtraSelections([marked] if text else [])

    def _text(self, name: str) -> QPlainTextEdit:
        edit = QPlainTextEdit(self)
        edit.setReadOnly(True)
        set_mono_font(edit, 12)
        edit.setTabChangesFocus(True)
        edit.setFrameShape(QFrame.Shape.NoFrame)
        edit.setAccessibleName(name)
        OverlayScrollBar(self._theme, edit)
        return edit
