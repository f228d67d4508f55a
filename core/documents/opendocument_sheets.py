"""OpenDocument spreadsheets (.ods, flat .fods) to sheets of shown cells, with comments and text boxes.

A cell is shown as the file stores its appearance, a date as ISO 8601.
"""

from __future__ import annotations

import zipfile

from core.documents.limits import Gathered, Told
from core.documents.opendocument import (
    CONTENT,
    DRAW,
    HREF,
    OFFICE,
    TABLE,
    TEXT,
    Styles,
    read_styles,
    refuse_locked,
    whole,
)
from core.documents.parts import MOST_XML_BYTES, Elements, parse_part
from core.documents.sheet import MOST_ROWS, Sheet
from core.documents.writer import PLAIN, Run, lowered, with_address

_LEFT_OUT = frozenset(
    (
        *(
            OFFICE + "forms",
            OFFICE + "scripts",
            TEXT + "ruby-text",
            TABLE + "tracked-changes",
            TABLE + "dde-links",
        ),
        *(OFFICE + "styles", OFFICE + "automatic-styles", OFFICE + "master-styles", OFFICE + "meta"),
    )
)
# Texts beside the cells: comments and what is drawn on the sheet.
_ASIDES = {OFFICE + "annotation": "comment", DRAW + "text-box": "text box", DRAW + "custom-shape": "text box"}
_HIDING = ("collapse", "filter")
# What a cell without a stored appearance shows, by the type of its value.
_VALUES = tuple(OFFICE + name for name in ("string-value", "boolean-value", "time-value", "value"))


def opendocument_sheets(archive: zipfile.ZipFile, told: Told, gathered: Gathered) -> list[Sheet]:
    """The sheets in the file's order; hidden ones are not read. Raises as `parse_part` does."""
    refuse_locked(archive)
    cells = _Cells(gathered, read_styles(archive))
    parse_part(archive, CONTENT, cells, MOST_XML_BYTES, told)
    return cells.sheets


class _Cells(Elements):
    """Takes the elements of `content.xml`."""

    def __init__(self, gathered: Gathered, styles: Styles) -> None:
        self.sheets: list[Sheet] = []
        self._gathered = gathered
        self._styles = styles
        self._left_out = 0
        self._rows = self._columns = range(0)  # of the open row and of the open cell or column
        self._cells: list[tuple[range, str]] = []  # of the open row
        self._date = self._value = ""  # of the open cell
        self._paragraphs: list[list[Run]] | None = None  # of the open cell or text beside it
        self._outer: list[list[Run]] | None = None  # of the open cell while a text beside it is open
        self._aside = ""  # the element of the open text beside the cells
        self._open = 0  # paragraphs
        self._marks = [PLAIN]
        self._links: list[tuple[str, int]] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if self._left_out or name in _LEFT_OUT:
            self._left_out += 1
        elif name == TABLE + "table":
            hidden = attributes.get(TABLE + "style-name") in self._styles.hidden
            self.sheets.append(Sheet(attributes.get(TABLE + "name", ""), self._gathered.left, hidden=hidden))
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
            self._marks = [self._styles.marks.get(attributes.get(TABLE + "style-name", ""), PLAIN)]
        elif name in _ASIDES and not self._aside:
            self._aside, self._outer, self._paragraphs = name, self._paragraphs, []
        elif name == DRAW + "control":
            self.sheets[-1].add_aside("form", self._styles.controls.get(attributes.get(name, ""), ""))
        elif name == DRAW + "image":
            self._gathered.leave_out("picture", place=self.sheets[-1].name)
        elif self._paragraphs is not None:
            self._start_in_cell(name, attributes)

    def _start_in_cell(self, name: str, attributes: dict[str, str]) -> None:
        assert self._paragraphs is not None
        if name == TEXT + "p":
            self._paragraphs.append([])
            self._open += 1
        elif name == TEXT + "s":
            self.characters(" " * min(whole(attributes.get(TEXT + "c", ""), 1), 1_000))
        elif name in (TEXT + "tab", TEXT + "line-break"):
            self.characters(" ")
        elif name == TEXT + "span":
            self._marks.append(
                self._styles.marks.get(attributes.get(TEXT + "style-name", ""), self._marks[-1])
            )
        elif name == TEXT + "a" and self._open:
            self._links.append((attributes.get(HREF, ""), len(self._paragraphs[-1])))

    def end(self, name: str) -> None:
        if self._left_out:
            self._left_out -= 1
        elif name == TEXT + "p" and self._open:
            self._open -= 1
        elif name == TEXT + "span" and len(self._marks) > 1:
            self._marks.pop()
        elif name == TEXT + "a" and self._links and self._paragraphs:
            address, first = self._links.pop()
            runs = self._paragraphs[-1]
            runs[first:] = [(with_address(lowered(runs[first:]), address), PLAIN)]
        elif name == self._aside:
            text = " ".join(map(lowered, self._paragraphs or ()))
            place = (self._rows.start, self._columns.start) if self._outer is not None else None
            self.sheets[-1].add_aside(_ASIDES[name], text, place)
            self._aside, self._paragraphs, self._outer = "", self._outer, None
        elif name == TABLE + "table-cell" and self._paragraphs is not None:
            shown = self._date or " ".join(filter(None, map(lowered, self._paragraphs))) or self._value
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
            self._paragraphs[-1].append((text, self._marks[-1]))


def _next(before: range, repeated: str) -> range:
    """The rows or columns after `before`."""
    return range(before.stop, before.stop + min(whole(repeated, 1), MOST_ROWS))
