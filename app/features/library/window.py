"""LibraryWindow: the kept documents with search, commands and a preview."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QHideEvent, QPalette, QTextCharFormat
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from app.chat.bars import UndoBar
from app.chat.strings import about
from app.controls.buttons import Button
from app.controls.record_table import Cell, Column, RecordTable
from app.controls.scroll_bar import ScrollBar
from app.controls.text_fields import SearchField
from app.controls.text_label import TextLabel
from app.features.library import strings
from app.features.side_window import Hairline, SideWindow
from app.panels.chat_row import time_label
from app.richtext.passage import draw_passage
from app.session.documents import DocumentHit, KeptDocument
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.measures import set_fixed_height, set_fixed_width, set_font, set_margins, set_spacing
from app.theme.theme import Theme
from app.theme.zoom import zoom

SHOWN_CHARACTERS = 20_000


class DocumentPreview(QWidget):
    """A name, a note and the text of a document."""

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
        column.addStretch(0)  # space for a message without text
        theme.changed.connect(self._recolour)
        self._recolour()

    def show_text(self, name: str, note: str, text: str) -> None:
        """Shows a document."""
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


SIZE = QSize(980, 680)
_MINIMUM = QSize(760, 480)
_FOOT_PX = 290
_SEARCH_PX = 220


class LibraryWindow(SideWindow):
    """The controller listens to the widgets, and calls `show_rows` after each change."""

    hidden = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, strings.TITLE, SIZE, _MINIMUM, parent)
        self.search = SearchField(theme, strings.SEARCH, strings.CLEAR_SEARCH)
        set_fixed_width(self.search, _SEARCH_PX)
        self.attach = Button(theme, strings.ATTACH, "primary", small=True, icon_name="plus")
        self.rename = Button(theme, strings.RENAME, small=True, icon_name="edit")
        self.remove = Button(theme, strings.REMOVE, "danger", small=True, icon_name="trash")
        self.list = RecordTable[LibraryRow](theme, strings.LIST, COLUMNS, editable=strings.NAME)
        self.preview = DocumentPreview(theme)
        self.undo_bar = UndoBar(theme)
        self._lay_out()
        self.search.results_wanted.connect(self.list.view.setFocus)
        self.list.row_selected.connect(self._show_buttons)
        self.rename.clicked.connect(self.list.rename)
        self.undo_bar.expired.connect(self.undo_bar.clear)
        self._show_buttons()

    def show_rows(self, rows: Sequence[LibraryRow]) -> None:
        """Shows rows, or a message if there are none."""
        self.list.show_rows(rows)
        self._show_buttons()
        if not rows:
            searching = bool(self.search.text().strip())
            said, hint = strings.NO_MATCH, ""
            if not searching:
                said, hint = strings.NOTHING, strings.NOTHING_HINT
            self.preview.show_text(said, hint, "")

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.undo_bar.clear()
        self.hidden.emit()

    # ---- inside

    def _show_buttons(self) -> None:
        for button in (self.attach, self.rename, self.remove):
            button.setEnabled(bool(self.list.selected))

    def _lay_out(self) -> None:
        set_fixed_height(self.preview, _FOOT_PX)
        commands = (self.attach, self.rename, self.remove)
        header = self.make_header((self.search,), commands, subtitle=strings.SUBTITLE)
        line = Hairline(self._theme)
        self.make_column((header, 0), (self.list, 1), (self.undo_bar, 0), (line, 0), (self.preview, 0))
        order: tuple[QWidget, ...] = (self.search, self.attach, self.rename, self.remove, self.list.view)
        order = (*order, self.undo_bar.undo_button, self.preview.text_view)
        for before, after in pairwise(order):
            self.setTabOrder(before, after)


# An estimate for a document without a count; within a third for prose in Latin script.
_CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True)
class LibraryRow:
    """`passage` is the match of a search, or the length; `marks` are its matching spans."""

    id: str
    name: str
    passage: str
    marks: tuple[tuple[int, int], ...]
    tokens: str
    added: str
    used: str

    @property
    def title(self) -> str:
        """The name."""
        return self.name

    @property
    def tip(self) -> str:
        """The full name, for a tooltip."""
        return self.name

    @property
    def spoken(self) -> str:
        """The text for assistive technology."""
        return strings.spoken(self.name, f"{self.tokens} {strings.TOKENS.lower()}", self.added, self.used)


def rows_of(
    documents: Sequence[KeptDocument],
    family: str,
    now: datetime,
    hits: Mapping[str, DocumentHit] | None = None,
) -> tuple[LibraryRow, ...]:
    """Returns rows in the order of `documents`, or of `hits` after a search.

    `family` is the tokenizer whose counts are shown, where known.
    """
    if hits is not None:
        known = {each.id: each for each in documents}
        documents = [known[found] for found in hits if found in known]
    return tuple(_row(each, family, now, (hits or {}).get(each.id)) for each in documents)


def tokens_text(document: KeptDocument, family: str) -> str:
    """Returns `3,201`, or `about 3,200` if the count of this tokenizer is unknown."""
    if family in document.counts:
        return f"{document.counts[family]:,}"
    tokens = next(iter(document.counts.values()), document.characters // _CHARACTERS_PER_TOKEN)
    return about(f"{round(tokens, -max(0, len(str(tokens)) - 2)):,}")


def _row(document: KeptDocument, family: str, now: datetime, hit: DocumentHit | None) -> LibraryRow:
    found = hit is not None and bool(hit.passage)
    passage = strings.characters(document.characters)
    if hit and found:
        passage = strings.similar(hit.passage) if hit.similar else hit.passage
    return LibraryRow(
        document.id,
        document.name,
        passage,
        hit.marks if hit and found else (),
        tokens_text(document, family),
        time_label(document.added, now),
        time_label(document.used, now),
    )


_ICON_PX = 14
_NAME_LEFT_PX = 24


def _paint_name(cell: Cell) -> None:
    """Paints icon, name and passage, with the matches in the passage marked."""
    painter, box, row = cell.painter, cell.box, cell.row
    ratio = painter.device().devicePixelRatioF() * zoom()
    icon = icon_pixmap("doc", cell.theme.color("text2"), _ICON_PX, ratio)
    painter.drawPixmap(round(box.left()) - _NAME_LEFT_PX, round(box.center().y()) - _ICON_PX // 2, icon)
    first, second = cell.lines()
    cell.write(first, row.name, 13, weight=500)
    marked = QTextCharFormat()
    marked.setBackground(cell.theme.color("accent_tint"))
    color = cell.theme.color("text2")
    draw_passage(painter, second, row.passage, ui_font(11, tabular=True), color, row.marks, marked)


COLUMNS = (
    Column("name", strings.NAME, 220, before_px=_NAME_LEFT_PX, after_px=8, grows=True, paint=_paint_name),
    Column("tokens", strings.TOKENS, 120, right=True, after_px=24),
    Column("added", strings.ADDED, 96, ink="text2"),
    Column("used", strings.USED, 96, ink="text2"),
)
