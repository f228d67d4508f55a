"""DocumentView: a document's text with the read parts marked, for texts of any length.

A QPlainTextEdit, which lays out the visible part. Read parts have a tint and a bar; all other text is dim.
Positions are characters of the text; Qt counts UTF-16 units.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import takewhile

from PySide6.QtCore import QEvent, QMimeData, Qt, QTimer
from PySide6.QtGui import (
    QAccessible,
    QAccessibleEvent,
    QColor,
    QFocusEvent,
    QFont,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QTextCharFormat,
    QTextCursor,
    QTextFormat,
    QTextLayout,
)
from PySide6.QtWidgets import QTextEdit

from app.chat.reading_map import Stretch
from app.controls.shapes import blend
from app.controls.text_fields import TextView
from app.panels import strings
from app.panels.document_marks import DocumentMarks, MarkedView
from app.panels.document_text import shown_text, spans_in
from app.richtext.canvas_menu import text_data
from app.richtext.text_canvas import FOCUS_RETURNS
from app.theme.sheet import restyle
from app.theme.theme import color, theme
from app.theme.zoom import px

_MARGIN_PX = 11
_BAR_PX = 2
_FOUND_ALPHA = 64


class DocumentView(TextView, MarkedView):
    """A jump to a read stretch or a place stays marked until the person scrolls."""

    def __init__(self, marks: DocumentMarks | None = None) -> None:
        super().__init__(strings.DOCUMENT_TEXT, 12.5)
        self.marks = DocumentMarks() if marks is None else marks
        self._wide: list[int] = []  # the characters of two UTF-16 units
        self._loaded = ""
        self._hides = False
        # Qt lays text out while it sets selections, which scrolls and resizes. In one of Qt's own calls, such
        # as a scroll bar's signal, setting them would be reentrant, and has crashed.
        self._marking = QTimer(self, singleShot=True)
        self._marking.timeout.connect(self._show_marks)
        self.verticalScrollBar().actionTriggered.connect(self.leave)
        theme.changed.connect(self.refresh_marks)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if event.reason() not in FOCUS_RETURNS:  # a ring for the keyboard only
            self.setProperty("ringed", event.reason() is not Qt.FocusReason.MouseFocusReason)
            restyle(self)

    # ---- display

    def load(self) -> None:
        text = self.text
        if text is self._loaded:
            self.verticalScrollBar().setValue(0)
            return
        self._loaded = text
        wide = bool(text) and max(text) > "\uffff"
        self._wide = [at for at, letter in enumerate(text) if letter > "\uffff"] if wide else []
        self._hides = False
        shown, headings = shown_text(text)
        self.setPlainText(shown)
        # Not in the document and by no highlighter, whose calls for each line would double the time.
        bold = QTextLayout.FormatRange()
        bold.length = 2 * max(map(len, shown.split("\n")))
        bold.format.setFontWeight(QFont.Weight.DemiBold)
        for start in headings:
            self.document().findBlock(self._unit(start)).layout().setFormats([bold])
        self.verticalScrollBar().setValue(0)

    def shows(self, character: int) -> bool:
        """Whether the paragraph of the character is displayed."""
        return self.document().findBlock(self._unit(character)).isVisible()

    def spans_of(self, pattern: re.Pattern[str]) -> Iterable[tuple[int, int]]:
        return spans_in(self.text, pattern)

    @property
    def selected(self) -> tuple[int, int] | None:
        cursor = self.textCursor()
        first, last = self._character(cursor.selectionStart()), self._character(cursor.selectionEnd())
        return (first, last) if first < last else None

    def select(self, first: int, last: int) -> None:
        bar = self.verticalScrollBar()
        value = bar.value()
        self.setTextCursor(self._range(first, last))
        bar.setValue(value)

    # ---- places

    def visible_characters(self) -> tuple[int, int]:
        """The visible characters, end-exclusive."""
        corners = self.viewport().rect().topLeft(), self.viewport().rect().bottomRight()
        first, last = (self._character(self.cursorForPosition(corner).position()) for corner in corners)
        return first, last

    def scroll_to_character(self, character: int) -> None:
        """Move the caret to `character`, with its line in the middle of the view."""
        block = self.document().findBlock(self._unit(character))
        while not block.isVisible() and block.next().isValid():
            block = block.next()
        self.setTextCursor(self._range(max(character, self._character(block.position()))))
        self.centerCursor()
        self.refresh_marks()

    # ---- Qt's

    def createMimeDataFromSelection(self) -> QMimeData:
        return text_data(self.selected_text)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keeps the target of a jump in the middle of the view; Qt keeps the first line."""
        super().resizeEvent(event)
        if self.text is not self._loaded:
            return
        current = self.stretches[self.current_stretch].first if self.current_stretch >= 0 else None
        middle = (self.place.first + self.place.last) // 2 if self.place else current
        if middle is not None:
            self.scroll_to_character(middle)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        before = self.verticalScrollBar().value()
        super().keyPressEvent(event)
        if self.verticalScrollBar().value() != before:
            self.leave()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:  # also for each zoom
            self.document().setDocumentMargin(px(_MARGIN_PX))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Adds bars at the left of read stretches."""
        super().paintEvent(event)
        painter = QPainter(self.viewport())
        seen, end = self.visible_characters()
        first = bisect_right(self.stretches, seen, key=lambda stretch: stretch.last)
        for stretch in takewhile(lambda stretch: stretch.first < end, self.stretches[first:]):
            top = self.cursorRect(self._range(max(seen, stretch.first))).top()
            bottom = self.cursorRect(self._range(min(end, stretch.last - 1))).bottom()
            painter.fillRect(0, top, px(_BAR_PX), bottom - top + 1, color("accent"))

    # ---- inside

    def announce(self, words: str) -> None:
        self.setAccessibleDescription(words)
        QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.DescriptionChanged))

    def refresh_shown(self) -> None:
        """Hide the paragraphs without read text and the empty lines after them, or nothing."""
        self.setProperty("dim", self.marks.marked)
        restyle(self)
        document, hides = self.document(), self.marks.hides
        if hides or self._hides:
            block, read = document.begin(), False
            while block.isValid():
                first = self._character(block.position())
                last = self._character(block.position() + block.length() - 1)
                after = bisect_right(self.stretches, first, key=lambda stretch: stretch.last)
                if first < last:
                    read = after < len(self.stretches) and self.stretches[after].first < last
                block.setVisible(read or not hides)
                block = block.next()
            document.markContentsDirty(0, document.characterCount())
        self._hides = hides
        self.refresh_marks()

    def refresh_marks(self) -> None:
        """Show the marks when the event loop runs next."""
        self._marking.start()

    def _show_marks(self) -> None:
        """Give the stretches, matches and place their colours. Called by the event loop alone."""
        if self.text is not self._loaded:  # the other view shows another document
            return
        marks = []
        for number, stretch in enumerate(self.stretches if self.marks.marked else ()):
            tint = color("accent_tint")
            if number == self.current_stretch:
                tint = blend(color("accent_mid"), tint, 0.35)
            marks.append(self._colored(stretch, tint, whole_lines=True))
        found = QColor(color("accent"))
        found.setAlpha(_FOUND_ALPHA)
        matches = self.marks.matches
        for number, (first, last) in enumerate(zip(matches.starts, matches.ends)):
            marks.append(self._colored(Stretch(first, last), found, framed=number == matches.current))
        if self.place is not None:
            marks.append(self._colored(self.place, found, framed=True))
        self.setExtraSelections(marks)

    def _colored(
        self, part: Stretch, fill: QColor, *, framed: bool = False, whole_lines: bool = False
    ) -> QTextEdit.ExtraSelection:
        mark, look = QTextEdit.ExtraSelection(), QTextCharFormat()
        look.setBackground(fill)
        look.setForeground(color("text"))
        if framed:
            look.setProperty(QTextFormat.Property.OutlinePen, QPen(color("accent"), 1))
        look.setProperty(QTextFormat.Property.FullWidthSelection, whole_lines)
        mark.cursor = self._range(part.first, part.last)
        mark.format = look
        return mark

    def _range(self, first: int, last: int | None = None) -> QTextCursor:
        cursor = QTextCursor(self.document())
        cursor.setPosition(self._unit(first))
        if last is not None:
            cursor.setPosition(self._unit(last), QTextCursor.MoveMode.KeepAnchor)
        return cursor

    def _unit(self, character: int) -> int:
        return character + bisect_left(self._wide, character)

    def _character(self, unit: int) -> int:
        return unit - bisect_left(range(len(self._wide)), unit, key=lambda at: self._wide[at] + at)
