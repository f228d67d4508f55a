"""OpenDocument spreadsheets (.ods) to sheets of shown cells.

A cell is shown as the file stores its appearance, a date as ISO 8601.
"""

from __future__ import annotations

import zipfile

from core.documents.limits import Told
from core.documents.opendocument import (
    CONTENT,
    MOST_XML_BYTES,
    OFFICE,
    STYLE,
    TABLE,
    TEXT,
    refuse_locked,
    whole,
)
from core.documents.parts import parse_part
from core.documents.sheet import MOST_ROWS, Sheet

_LEFT_OUT = frozenset(
    (
        *(OFFICE + "annotation", OFFICE + "forms", OFFICE + "scripts", TEXT + "ruby-text"),
        *(TABLE + "tracked-changes", TABLE + "shapes", TABLE + "dde-links"),
    )
)
_HIDING = ("collapse", "filter")
# What a cell without a stored appearance shows, by the type of its value.
_VALUES = tuple(OFFICE + name for name in ("string-value", "boolean-value", "time-value", "value"))


def opendocument_sheets(archive: zipfile.ZipFile, told: Told, most_characters: int) -> list[Sheet]:
    """The sheets in the file's order; hidden ones are not read. Raises as `parse_part` does."""
    refuse_locked(archive)
    cells = _Cells(most_characters)
    parse_part(archive, CONTENT, cells, MOST_XML_BYTES, told)
    return cells.sheets


class _Cells:
    """Takes the elements of `content.xml`."""

    def __init__(self, most_characters: int) -> None:
        self.sheets: list[Sheet] = []
        self._most_characters = most_characters
        self._style = ""
        self._hiding: set[str] = set()  # styles of hidden sheets
        self._left_out = 0
        self._rows = self._columns = range(0)  # of the open row and of the open cell or column
        self._cells: list[tuple[range, str]] = []  # of the open row
        self._date = self._value = ""  # of the open cell
        self._paragraphs: list[str] | None = None  # of the open cell
        self._open = 0  # paragraphs

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if self._left_out or name in _LEFT_OUT:
            self._left_out += 1
        elif name == STYLE + "style":
            self._style = attributes.get(STYLE + "name", "")
        elif name == STYLE + "table-properties":
            if attributes.get(TABLE + "display") == "false":
                self._hiding.add(self._style)
        elif name == TABLE + "table":
            hidden = attributes.get(TABLE + "style-name") in self._hiding
            self.sheets.append(
                Sheet(attributes.get(TABLE + "name", ""), self._most_characters, hidden=hidden)
            )
            self._rows = self._columns = range(0)
        elif not self.sheets or self.sheets[-1].hidden:
            return
        elif name == TABLE + "table-column":
            self._columns = _next(self._columns, attributes.get(TABLE + "number-columns-repeated", ""))
            if attributes.get(TABLE + "visibility") in _HIDING:
                self.sheets[-1].hide_columns(self._columns)
        elif name == TABLE + "table-row":
            self._rows = _next(self._rows, attributes.get(TABLE + "number-rows-repeated", ""))
            if attributes.get(TABLE + "visibility") in _HIDING:
                self.sheets[-1].hide_rows(self._rows)
            self._columns, self._cells = range(0), []
        elif name in (TABLE + "table-cell", TABLE + "covered-table-cell"):
            self._columns = _next(self._columns, attributes.get(TABLE + "number-columns-repeated", ""))
            # What a merged cell covers is not shown.
            self._paragraphs = [] if name == TABLE + "table-cell" else None
            date = attributes.get(OFFICE + "date-value", "")
            self._date = date.removesuffix("T00:00:00").replace("T", " ")
            self._value = next((attributes[each] for each in _VALUES if each in attributes), "")
        elif self._paragraphs is not None:
            self._start_in_cell(name, attributes)

    def _start_in_cell(self, name: str, attributes: dict[str, str]) -> None:
        assert self._paragraphs is not None
        if name == TEXT + "p":
            self._paragraphs.append("")
            self._open += 1
        elif name == TEXT + "s":
            self.characters(" " * min(whole(attributes.get(TEXT + "c", ""), 1), 1_000))
        elif name in (TEXT + "tab", TEXT + "line-break"):
            self.characters(" ")

    def end(self, name: str) -> None:
        if self._left_out:
            self._left_out -= 1
        elif name == TEXT + "p" and self._open:
            self._open -= 1
        elif name == TABLE + "table-cell" and self._paragraphs is not None:
            shown = self._date or " ".join(filter(None, self._paragraphs)) or self._value
            if shown:
                self._cells.append((self._columns, shown))
            self._paragraphs = None
        elif name == TABLE + "table-row" and self._cells:
            for row in self._rows:
                for columns, text in self._cells:
                    for column in columns:
                        self.sheets[-1].put(row, column, text)

    def characters(self, text: str) -> None:
        if self._open and self._paragraphs and not self._left_out:
            self._paragraphs[-1] += text


def _next(before: range, repeated: str) -> range:
    """The rows or columns after `before`."""
    return range(before.stop, before.stop + min(whole(repeated, 1), MOST_ROWS))
