"""OpenDocument spreadsheets (.ods, flat .fods) to sheets of shown cells, with comments and text boxes.

A cell is shown as the file stores its appearance, a date as ISO 8601.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator

from core.documents.formulas import link_address, open_formula
from core.documents.limits import Gathered, Told
from core.documents.opendocument import CONTENT, DRAW, HREF, OFFICE, TABLE, TEXT, Styles, refuse_locked
from core.documents.parts import Element, read_elements, whole
from core.documents.sheet import MOST_ROWS, Sheet
from core.documents.writer import PLAIN, Marks, Run, lowered, with_address

_GROUPS = ("table-row-group", "table-column-group")
_PIECES = (*_GROUPS, "table-column", "table-row", "shapes", "tracked-changes", "dde-links", "forms")
# Texts outside the cells: comments and drawings on the sheet.
_ASIDES = {"annotation": "comment", "text-box": "text box", "custom-shape": "text box"}
_HIDING = ("collapse", "filter")
# Attributes with the value of a cell that has no stored text, by the value's type.
_VALUES = tuple(OFFICE + name for name in ("string-value", "boolean-value", "time-value", "value"))


def opendocument_sheets(archive: zipfile.ZipFile, told: Told, gathered: Gathered) -> list[Sheet]:
    """The sheets in the file's order; hidden ones are not read. Raises as `read_elements` does."""
    refuse_locked(archive)
    cells = _Cells(gathered, Styles(archive))
    for element in read_elements(archive, CONTENT, _PIECES, heads=("table",), told=told):
        cells.read(element)
    return cells.sheets


class _Cells:
    """Reads the pieces of `content.xml`."""

    def __init__(self, gathered: Gathered, styles: Styles) -> None:
        self.sheets: list[Sheet] = []
        self._gathered, self._styles = gathered, styles
        self._rows = self._columns = range(0)  # the last ones
        self._in_closed = False

    def read(self, element: Element) -> None:
        if element.name == TABLE + "table":
            hidden = element.get(TABLE + "style-name") in self._styles.hidden
            self.sheets.append(Sheet(element.get(TABLE + "name"), self._gathered.left, hidden=hidden))
            self._rows = self._columns = range(0)
        elif not self.sheets or self.sheets[-1].hidden:
            return
        elif element.tag in _GROUPS:
            self._read_group(element)
        elif element.tag == "table-column":
            self._columns = _next(self._columns, element.get(TABLE + "number-columns-repeated"))
            if self._is_hidden(element):
                self.sheets[-1].hide_columns(self._columns)
        elif element.tag == "table-row":
            self._read_row(element)
        elif element.tag == "shapes":
            self._read_asides(element)

    def _read_group(self, element: Element) -> None:
        """An outline's group, which hides all of its rows or columns where it is closed."""
        outer, self._in_closed = self._in_closed, self._in_closed or element.get(TABLE + "display") == "false"
        for each in element.elements:
            if each.tag in ("table-header-rows", "table-header-columns", "table-rows", "table-columns"):
                self._read_group(each)
            else:
                self.read(each)
        self._in_closed = outer

    def _is_hidden(self, element: Element) -> bool:
        style = element.get(TABLE + "style-name")
        return self._in_closed or element.get(TABLE + "visibility") in _HIDING or style in self._styles.empty

    def _read_row(self, element: Element) -> None:
        sheet = self.sheets[-1]
        self._rows = _next(self._rows, element.get(TABLE + "number-rows-repeated"))
        if self._is_hidden(element):
            sheet.hide_rows(self._rows)
        columns, cells = range(0), list[tuple[range, str]]()
        for cell in element.elements:
            columns = _next(columns, cell.get(TABLE + "number-columns-repeated"))
            self._read_asides(cell, (self._rows.start, columns.start))
            # Cells covered by a merged cell are not shown.
            if cell.tag != "table-cell":
                continue
            if shown := self._shown(cell):
                cells.append((columns, shown))
            elif _value(cell) not in ("", "0"):
                sheet.hide_cell(self._rows.start, columns.start)
        for row in self._rows if cells else ():
            for columns, text in cells:
                for column in columns:
                    sheet.put(row, column, text)

    def _shown(self, cell: Element) -> str:
        date = cell.get(OFFICE + "date-value").removesuffix("T00:00:00").replace("T", " ")
        marks = self._styles.marks(cell.get(TABLE + "style-name"), PLAIN)
        formula, value = cell.get(TABLE + "formula"), _value(cell)
        has_text = cell.child("p").name == TEXT + "p"
        text = self._paragraphs(cell, marks)
        if has_text and not text:  # as its format shows nothing
            return ""
        shown = date or text or value or open_formula(formula)
        return with_address(shown, link_address(formula)) if formula else shown

    def _read_asides(self, element: Element, cell: tuple[int, int] | None = None) -> None:
        """The comments, text boxes and form fields in a cell or on the sheet, and its pictures."""
        for each in element.elements:
            if kind := _ASIDES.get(each.tag):
                self.sheets[-1].add_aside(kind, self._paragraphs(each, PLAIN), cell)
            elif each.name == DRAW + "control":
                self.sheets[-1].add_aside("form", self._styles.controls.get(each.get(DRAW + "control"), ""))
            elif each.name == DRAW + "image":
                self._gathered.leave_out("picture", place=self.sheets[-1].name)
            else:
                self._read_asides(each, cell)

    def _paragraphs(self, element: Element, marks: Marks) -> str:
        """The paragraphs of a cell, comment or drawing, on one line."""
        found = (lowered(self._runs(each, marks)) for each in _own(element) if each.name == TEXT + "p")
        return " ".join(filter(None, found))

    def _runs(self, element: Element, marks: Marks) -> Iterator[Run]:
        for each in element.inside:
            if isinstance(each, str):
                yield each, marks
            elif each.name == TEXT + "s":
                yield " " * min(whole(each.get(TEXT + "c"), 1), 1_000), marks
            elif each.name in (TEXT + "tab", TEXT + "line-break"):
                yield " ", marks
            elif each.name == TEXT + "a":
                yield with_address(lowered(self._runs(each, marks)), each.get(HREF)), PLAIN
            elif each.name != TEXT + "ruby-text" and each.tag not in _ASIDES:
                yield from self._runs(each, self._styles.marks(each.get(TEXT + "style-name"), marks))


def _value(cell: Element) -> str:
    return next((cell.get(each) for each in _VALUES if each in cell.attributes), "")


def _own(element: Element) -> Iterator[Element]:
    """The elements inside, without those of comments and drawings."""
    for each in element.elements:
        if each.tag not in _ASIDES:
            yield each
            yield from _own(each)


def _next(before: range, repeated: str) -> range:
    """The rows or columns after `before`."""
    return range(before.stop, before.stop + min(whole(repeated, 1), MOST_ROWS))
