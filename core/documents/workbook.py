"""Workbooks of Excel (.xlsx, .xlsm) to sheets of shown cells, part by part.

Comments, text boxes, form fields and the titles of charts follow the cells; pictures are marked.

The parts of each sheet are parsed in pieces, and only its visible cells are held, as text. A formula without
a stored result, which programs write that do not calculate, is shown itself.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from itertools import groupby

from core.documents import strings
from core.documents.limits import DamagedError, Gathered, Told
from core.documents.number_formats import BUILT_IN, GENERAL, shown_number, text_text
from core.documents.parts import Element, R, Relations, is_true, read_elements, whole
from core.documents.sheet import Sheet
from core.documents.slides import DrawnText
from core.documents.writer import PLAIN, Marks, Run, lowered, numbers_page

_MAIN = "xl/workbook.xml"
_PIECES = frozenset(("row", "col", "hyperlink", "oddHeader", "oddFooter"))
_ADDRESS = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")
_HEADERS = {"oddHeader": "page header", "oddFooter": "page footer"}
# Positions, fonts, colors and numbers of pages in a header.
_HEADER_CODE = re.compile(r'&(?:"[^"]*"|\[[^\]]*\]|K[0-9A-F]{6}|\d{1,3}|[A-Z&])')
# A character that XML does not allow.
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")


def workbook_sheets(archive: zipfile.ZipFile, told: Told, gathered: Gathered) -> Iterator[Sheet]:
    """The sheets with cells, in the file's order; hidden ones are not read. Raises as `opened` does."""
    main = Relations(archive, "").by_kind.get("officeDocument", _MAIN)
    parts, from_1904, listed = Relations(archive, main), False, list[Element]()
    for each in read_elements(archive, main, ("workbookPr", "sheet")):
        from_1904 = from_1904 or is_true(each.get("date1904"))
        listed += [each] if each.tag == "sheet" else []
    if not listed:
        raise DamagedError
    styles, shared = _Styles(), list[str]()
    if (name := parts.by_kind.get("styles", "")) in archive.NameToInfo:
        styles.read(archive, name)
    if (name := parts.by_kind.get("sharedStrings", "")) in archive.NameToInfo:
        shared += map(_rich_text, read_elements(archive, name, ("si",)))
    for each in listed:
        part = parts.by_id.get(each.get(R + "id"), "")
        sheet = Sheet(each.get("name"), gathered.left, hidden=each.get("state", "visible") != "visible")
        if not sheet.hidden:
            beside = Relations(archive, part)
            cells = _Cells(sheet, shared, styles, from_1904)
            for element in read_elements(archive, part, _PIECES, told=told):
                cells.read(element, beside)
            _add_asides(archive, beside, sheet, gathered)
            # Sheets of charts and dialogs have no cells.
            if ("worksheet", part) not in parts.all and not sheet.has_cells:
                continue
        yield sheet


def _add_asides(archive: zipfile.ZipFile, beside: Relations, sheet: Sheet, gathered: Gathered) -> None:
    """Comments, drawings and form fields of a sheet."""
    # Newer comments come with a copy for older programs.
    for kind, tag in (("threadedComment", "threadedComment"), ("comments", "comment")):
        has_comments = False
        for part in beside.texts(kind, archive):
            for each in read_elements(archive, part, (tag,)):
                text = each.child("text").line("t") or each.child("text").line()
                sheet.add_aside("comment", text, _cell(each.get("ref")) or (0, 0))
                has_comments = has_comments or bool(text)
        if has_comments:
            break
    for part in beside.texts("drawing", archive):
        # The data of a chart are on a sheet; its titles are not. Icons may be in every row.
        lines = (line for line, _ in groupby(DrawnText(archive, part, gathered).text().split("\n")))
        shown = (line for line in lines if "\t" not in line and line != strings.chart(""))
        sheet.add_aside("text box", "\n".join(shown))
    for part in beside.texts("vmlDrawing", archive):
        try:
            for shape in read_elements(archive, part, ("shape",)):
                field = shape.child("ClientData")
                if field.get("ObjectType") in ("Checkbox", "Radio"):
                    state = "x" if field.line("Checked") == "1" else " "
                    sheet.add_aside("form", f"[{state}] {shape.line('textbox')}".rstrip())
        except DamagedError:  # old programs wrote HTML into it
            gathered.leave_out("object", place=sheet.name)


class _Styles:
    """The format code and the marks of each style."""

    def __init__(self) -> None:
        self._codes = dict(BUILT_IN)
        self._identifiers: list[tuple[int, int]] = []  # of the code and of the font
        self._fonts: list[Marks] = []

    def read(self, archive: zipfile.ZipFile, part: str) -> None:
        for group in read_elements(archive, part, ("numFmts", "fonts", "cellXfs")):
            for each in group.elements:
                if group.tag == "fonts":
                    self._fonts.append(_font(each))
                elif group.tag == "numFmts":
                    self._codes[whole(each.get("numFmtId"))] = each.get("formatCode", GENERAL)
                else:
                    self._identifiers.append((whole(each.get("numFmtId")), whole(each.get("fontId"))))

    def of(self, style: str) -> tuple[str, Marks]:
        """The format code of a cell's style, and the marks of the cell's whole text."""
        number = whole(style)
        code, font = self._identifiers[number] if number < len(self._identifiers) else (0, 0)
        marks = self._fonts[font] if font < len(self._fonts) else PLAIN
        return self._codes.get(code, GENERAL), marks


def _font(font: Element) -> Marks:
    """The marks of text in a font."""
    script, strike = font.child("vertAlign").get("val"), font.child("strike")
    struck = bool(strike.name) and is_true(strike.get("val", "1"))
    return Marks(script.removesuffix("script") if script.endswith("script") else "", struck)


def _rich_text(element: Element) -> str:
    """A text of runs, without the readings above Japanese words."""
    runs: list[Run] = []
    for each in element.elements:
        if each.tag == "t":
            runs.append((each.text(), PLAIN))
        elif each.tag == "r":
            runs.append((each.child("t").text(), _font(each.child("rPr"))))
    return _unescaped(lowered(runs))


class _Cells:
    """Reads the pieces of a sheet's part into `sheet`."""

    def __init__(self, sheet: Sheet, shared: list[str], styles: _Styles, from_1904: bool) -> None:
        self._sheet, self._shared, self._styles, self._from_1904 = sheet, shared, styles, from_1904
        self._row = -1

    def read(self, element: Element, beside: Relations) -> None:
        """A row, or what the part says about columns, links and headers."""
        match element.tag:
            case "row":
                self._read_row(element)
            case "col" if is_true(element.get("hidden")):
                first, last = (whole(element.get(each)) for each in ("min", "max"))
                self._sheet.hide_columns(range(max(first - 1, 0), last))
            case "hyperlink" if cell := _cell(element.get("ref").partition(":")[0]):
                self._sheet.put_link(*cell, beside.external.get(element.get(R + "id"), ""))
            case "oddHeader" | "oddFooter":
                text = " ".join(_HEADER_CODE.sub(" ", element.text()).split())
                self._sheet.add_aside(_HEADERS[element.tag], "" if numbers_page(text) else text)

    def _read_row(self, element: Element) -> None:
        self._row, column = whole(element.get("r"), self._row + 2) - 1, -1
        if is_true(element.get("hidden")):
            self._sheet.hide_rows(range(self._row, self._row + 1))
        for each in element.elements:
            self._row, column = _cell(each.get("r")) or (self._row, column + 1)
            code, marks = self._styles.of(each.get("s"))
            value = each.child("v")
            shown = self._shown(each, value.text(), code)
            if not shown and not value.name and (formula := each.child("f").text()):
                shown = f"={formula}"
            if shown:
                self._sheet.put(self._row, column, lowered([(shown, marks)]) if marks != PLAIN else shown)

    def _shown(self, cell: Element, value: str, code: str) -> str:
        match cell.get("t", "n"):
            case "s":
                number = whole(value, len(self._shared))
                return text_text(self._shared[number], code) if number < len(self._shared) else ""
            case "inlineStr":
                return text_text(_rich_text(cell.child("is")), code)
            case "b":
                return "TRUE" if is_true(value) else "FALSE" if value else ""
            case "d":
                return value.removesuffix("T00:00:00").replace("T", " ")
            case "n":
                return shown_number(value, code, self._from_1904)
        return text_text(_unescaped(value), code)


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "_x" in text else text


def _cell(address: str) -> tuple[int, int] | None:
    """Row 2 and column 1 for `B3`; None for another word."""
    if not (found := _ADDRESS.fullmatch(address)):
        return None
    column = 0
    for letter in found[1]:
        column = column * 26 + ord(letter) - ord("A") + 1
    return int(found[2]) - 1, column - 1
