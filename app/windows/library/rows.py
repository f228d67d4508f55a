"""The list of kept documents: rows and columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from PySide6.QtGui import QTextCharFormat

from app.chat.strings import about
from app.controls.record_table import Cell, Column
from app.panels.chats.chat_row import time_label
from app.richtext.layout.passage import draw_passage
from app.session.documents import DocumentHit, KeptDocument
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.zoom import zoom
from app.windows.library import strings

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
