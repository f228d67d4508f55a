"""DocumentView: a document's text with the read parts marked, for texts of any length.

A QPlainTextEdit, which lays out what is visible. Read parts have a tint and a bar; all other text is dim.
Positions are characters of the text; Qt counts UTF-16 units.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
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
from PySide6.QtWidgets import QTextEdit, QWidget

from app.chat.reading_map import Stretch
from app.controls.shapes import blend
from app.controls.text_fields import TextView
from app.panels import strings
from app.panels.document_text import NO_MATCHES, Matches, shown_text
from app.richtext.canvas_menu import text_data
from app.richtext.text_canvas import FOCUS_RETURNS
from app.theme.sheet import restyle
from app.theme.theme import color, theme
from app.theme.zoom import px

_MARGIN_PX = 11
_BAR_PX = 2
_FOUND_ALPHA = 64


class DocumentView(TextView):
    """A jump to a read stretch or a place stays marked until the person scrolls."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(strings.DOCUMENT_TEXT, 12.5)
        self.text = ""
        self._wide: list[int] = []  # the characters of two UTF-16 units
        self.stretches: tuple[Stretch, ...] = ()
        self._marked = False
        self._kept_only = self._hides = False
        self.current_stretch = -1  # the one that was jumped to
        self.place: Stretch | None = None  # marked by `show_place`
        self._matches = NO_MATCHES
        # Qt lays text out while it takes selections, which scrolls and resizes; in one of its own calls, as
        # in a scroll bar's signal, it would take them while it takes others, and has crashed.
        self._marking = QTimer(self, singleShot=True)
        self._marking.timeout.connect(self._show_marks)
        self.verticalScrollBar().actionTriggered.connect(self._leave)
        theme.changed.connect(self._mark)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if event.reason() not in FOCUS_RETURNS:  # a ring for the keyboard only
            self.setProperty("ringed", event.reason() is not Qt.FocusReason.MouseFocusReason)
            restyle(self)

    # ---- display

    def show_text(self, text: str) -> None:
        """Show another document from its beginning, without marks."""
        self.text = text
        wide = bool(text) and max(text) > "\uffff"
        self._wide = [at for at, letter in enumerate(text) if letter > "\uffff"] if wide else []
        self._hides = False
        self._matches = NO_MATCHES
        shown, headings = shown_text(text)
        self.setPlainText(shown)
        # Not in the document and by no highlighter, whose calls for each line would double the time.
        bold = QTextLayout.FormatRange()
        bold.length = 2 * max(map(len, shown.split("\n")))
        bold.format.setFontWeight(QFont.Weight.DemiBold)
        for start in headings:
            self.document().findBlock(self._unit(start)).layout().setFormats([bold])
        self.show_stretches((), marked=False)
        self.verticalScrollBar().setValue(0)

    def show_stretches(self, stretches: Sequence[Stretch], marked: bool = True) -> None:
        """Set the read stretches. Not `marked`: everything was read, and nothing is dim."""
        self.stretches, self._marked = tuple(stretches), marked
        self.current_stretch, self.place = -1, None
        self.setProperty("dim", marked)
        restyle(self)
        self._choose_shown()

    def set_kept_only(self, kept_only: bool) -> None:
        """Hide the paragraphs without read text."""
        if kept_only != self._kept_only:
            first, _ = self.visible_characters()
            self._kept_only = kept_only
            self._choose_shown()
            self.scroll_to_character(first)

    def show_matches(self, matches: Matches) -> None:
        """Mark the matches of a search, and go to the current one."""
        self._matches = matches
        if matches.current >= 0:
            self.scroll_to_character(matches.starts[matches.current])
        self._mark()

    def shows(self, character: int) -> bool:
        """Whether the paragraph of the character is displayed."""
        return self.document().findBlock(self._unit(character)).isVisible()

    @property
    def current_text(self) -> str:
        """The text of the current stretch or of the marked characters; empty without either."""
        place = self.place
        if place is None and self.current_stretch >= 0:
            place = self.stretches[self.current_stretch]
        return self.text[place.first : place.last].strip() if place else ""

    @property
    def selected_text(self) -> str:
        """The selected part of the document as it is in the file; empty without a selection."""
        cursor = self.textCursor()
        return self.text[self._character(cursor.selectionStart()) : self._character(cursor.selectionEnd())]

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
        self._mark()

    def jump(self, steps: int) -> bool:
        """Go to the next (1) or previous (−1) read stretch. Returns False if there is none."""
        if self.current_stretch >= 0:
            target = self.current_stretch + steps
        else:
            first, _ = self.visible_characters()
            ahead = bisect_left(self.stretches, first, key=lambda stretch: stretch.first)
            target = ahead if steps > 0 else ahead - 1
        if not 0 <= target < len(self.stretches):
            return False
        self.select_stretch(target)
        return True

    def select_stretch(self, number: int) -> None:
        """Go to a stretch and announce it to screen readers."""
        stretch = self.stretches[number]
        self.place, self.current_stretch = None, number
        words = self.text[stretch.first : stretch.last].strip()
        self._announce(strings.PASSAGE_OF.format(number=number + 1, count=len(self.stretches), text=words))
        self.scroll_to_character(stretch.first)

    def show_place(self, first: int, last: int) -> None:
        """Mark exactly these characters, in the middle of the view, and announce them to screen readers."""
        self.place, self.current_stretch = Stretch(first, last), -1
        self._announce(self.text[first:last].strip())
        self.scroll_to_character((first + last) // 2)

    # ---- Qt's

    def createMimeDataFromSelection(self) -> QMimeData:
        return text_data(self.selected_text)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keeps what was jumped to in the middle of the view; Qt keeps the first line."""
        super().resizeEvent(event)
        current = self.stretches[self.current_stretch].first if self.current_stretch >= 0 else None
        middle = (self.place.first + self.place.last) // 2 if self.place else current
        if middle is not None:
            self.scroll_to_character(middle)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        before = self.verticalScrollBar().value()
        super().keyPressEvent(event)
        if self.verticalScrollBar().value() != before:
            self._leave()

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

    def _leave(self) -> None:
        """Unmark what was jumped to: the person scrolls."""
        if self.place is not None or self.current_stretch >= 0:
            self.current_stretch, self.place = -1, None
            self._mark()

    def _announce(self, words: str) -> None:
        self.setAccessibleDescription(words)
        QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.DescriptionChanged))

    def _choose_shown(self) -> None:
        """Hide the paragraphs without read text and the empty lines after them, or nothing."""
        document, hides = self.document(), self._kept_only and self._marked
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
        self._mark()

    def _mark(self) -> None:
        """Show the marks when the event loop runs next."""
        self._marking.start()

    def _show_marks(self) -> None:
        """Give the stretches, matches and place their colours. Called by the event loop alone."""
        marks = []
        for number, stretch in enumerate(self.stretches if self._marked else ()):
            tint = color("accent_tint")
            if number == self.current_stretch:
                tint = blend(color("accent_mid"), tint, 0.35)
            marks.append(self._colored(stretch, tint, whole_lines=True))
        found = QColor(color("accent"))
        found.setAlpha(_FOUND_ALPHA)
        for number, (first, last) in enumerate(zip(self._matches.starts, self._matches.ends)):
            marks.append(self._colored(Stretch(first, last), found, framed=number == self._matches.current))
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
