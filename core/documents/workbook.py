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
from core.documents.formulas import column_number, link_address, shifted
from core.documents.limits import DamagedError, Gathered, Told
from core.documents.number_formats import BUILT_IN, GENERAL, shown_number, text_text
from core.documents.parts import BROKEN, Element, R, Relations, is_true, read_elements, read_tree, whole
from core.documents.sheet import MOST_COLUMNS, Sheet
from core.documents.slides import DrawnText
from core.documents.writer import PLAIN, Marks, Run, lowered, numbers_page

_MAIN = "xl/workbook.xml"
_PIECES = frozenset(("sheetFormatPr", "row", "col", "hyperlink", "oddHeader", "oddFooter"))
# Attributes of a row that is not hidden by default; Excel writes the second for every row with cells.
_ROW_SHOWN = ("hidden", "spans", "ht", "customHeight")
_ADDRESS = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")
_HEADERS = {"oddHeader": "page header", "oddFooter": "page footer"}
# Positions, fonts, colors and numbers of pages in a header.
_HEADER_CODE = re.compile(r'&(?:"[^"]*"|\[[^\]]*\]|K[0-9A-F]{6}|\d{1,3}|[A-Z&])')
_MOST_ARRAYS = 1_000
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
    try:
        pictures = _cell_pictures(archive, parts)
    except BROKEN:
        pictures = {}
    for each in listed:
        part = parts.by_id.get(each.get(R + "id"), "")
        sheet = Sheet(each.get("name"), gathered.left, hidden=each.get("state", "visible") != "visible")
        if not sheet.hidden:
            beside = Relations(archive, part)
            cells = _Cells(sheet, shared, styles, from_1904, pictures, gathered)
            for element in read_elements(archive, part, _PIECES, told=told):
                cells.read(element, beside)
            _add_asides(archive, beside, sheet, gathered)
            # Sheets of charts and dialogs have no cells.
            if ("worksheet", part) not in parts.all and not sheet.has_cells:
                continue
        yield sheet


def _cell_pictures(archive: zipfile.ZipFile, parts: Relations) -> dict[str, str]:
    """The marks of pictures in cells by the number that a cell has for its value: `vm`."""
    names = [parts.by_kind.get(kind, "") for kind in ("sheetMetadata", "rdRichValue", "rdRichValueStructure")]
    if not all(name in archive.NameToInfo for name in names):
        return {}
    metadata, values, structures = (read_tree(archive, name) for name in names)
    kinds = [(each.get("t"), [key.get("n") for key in each.all("k")]) for each in structures.all("s")]
    described: list[str | None] = []
    for value in values.all("rv"):
        kind, keys = kinds[whole(value.get("s"))] if whole(value.get("s")) < len(kinds) else ("", [])
        alternative = dict(zip(keys, (each.text() for each in value.all("v")))).get("Text", "")
        shown = f"[picture: {' '.join(alternative.split())}]" if alternative.strip() else "[picture]"
        described.append(shown if kind in ("_localImage", "_webimage", "_webImage") else None)
    future = [whole(each.get("i")) for each in metadata.all("rvb")]
    marks: dict[str, str] = {}
    for number, block in enumerate(metadata.child("valueMetadata").elements, 1):
        at = whole(block.child("rc").get("v"))
        of_value = future[at] if at < len(future) else len(described)
        if of_value < len(described) and (mark := described[of_value]):
            marks[str(number)] = mark
    return marks


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

    def __init__(
        self,
        sheet: Sheet,
        shared: list[str],
        styles: _Styles,
        from_1904: bool,
        pictures: dict[str, str],
        gathered: Gathered,
    ) -> None:
        self._sheet, self._shared, self._styles, self._from_1904 = sheet, shared, styles, from_1904
        self._pictures, self._gathered = pictures, gathered
        self._row = -1
        self._hides_rows = False
        # Formulas that several cells share, by their number, and those of an area: with the first cell.
        self._formulas: dict[str, tuple[int, int, str]] = {}
        self._arrays: list[tuple[range, range, str]] = []

    def read(self, element: Element, beside: Relations) -> None:
        """A row, or what the part says about columns, links and headers."""
        match element.tag:
            case "row":
                self._read_row(element)
            case "sheetFormatPr":
                self._hides_rows = is_true(element.get("zeroHeight")) or _is_none(element, "defaultRowHeight")
                if _is_none(element, "defaultColWidth"):
                    self._sheet.hide_columns(range(MOST_COLUMNS))
            case "col":
                first, last = (whole(element.get(each)) for each in ("min", "max"))
                is_hidden = is_true(element.get("hidden")) or _is_none(element, "width")
                self._sheet.hide_columns(range(max(first - 1, 0), last), hidden=is_hidden)
            case "hyperlink" if cell := _cell(element.get("ref").partition(":")[0]):
                self._sheet.put_link(*cell, beside.external.get(element.get(R + "id"), ""))
            case "oddHeader" | "oddFooter":
                text = " ".join(_HEADER_CODE.sub(" ", element.text()).split())
                self._sheet.add_aside(_HEADERS[element.tag], "" if numbers_page(text) else text)

    def _read_row(self, element: Element) -> None:
        self._row, column = whole(element.get("r"), self._row + 2) - 1, -1
        by_default = self._hides_rows and not any(each in element.attributes for each in _ROW_SHOWN)
        if by_default or is_true(element.get("hidden")) or _is_none(element, "ht"):
            self._sheet.hide_rows(range(self._row, self._row + 1))
        for each in element.elements:
            self._row, column = _cell(each.get("r")) or (self._row, column + 1)
            code, marks = self._styles.of(each.get("s"))
            value, formula = each.child("v"), self._formula(each.child("f"), column)
            shown = self._shown(each, value.text(), code)
            if each.get("vm") in self._pictures:
                shown = self._pictures[each.get("vm")]
                self._gathered.leave_out("picture", place=self._sheet.name)
            elif not shown and not value.name and formula:
                shown = f"={formula}"
            elif not shown and self._shown(each, value.text(), GENERAL) not in ("", "0"):
                self._sheet.hide_cell(self._row, column)
            if shown:
                self._sheet.put(self._row, column, lowered([(shown, marks)]) if marks != PLAIN else shown)
                self._sheet.put_link(self._row, column, link_address(formula))

    def _formula(self, element: Element, column: int) -> str:
        """The formula of a cell, which may share that of another one."""
        formula, kind, key = element.text(), element.get("t"), element.get("si")
        if kind == "shared" and formula:
            self._formulas[key] = self._row, column, formula
        elif kind == "shared" and key in self._formulas:
            row, left, shared = self._formulas[key]
            return shifted(shared, self._row - row, column - left)
        elif kind == "dataTable":
            inputs = ",".join(element.get(each) for each in ("r1", "r2") if element.get(each))
            formula = formula or f"TABLE({inputs})"
        if kind in ("array", "dataTable") and len(self._arrays) < _MOST_ARRAYS:
            first_cell, _, last_cell = element.get("ref").partition(":")
            if (first := _cell(first_cell)) and (last := _cell(last_cell or first_cell)):
                rows, columns = (range(a, b + 1) for a, b in zip(first, last))
                self._arrays.append((rows, columns, formula))
        elif not element.name:
            of_areas = (
                text for rows, columns, text in self._arrays if self._row in rows and column in columns
            )
            return next(of_areas, "")
        return formula

    def _shown(self, cell: Element, value: str, code: str) -> str:
        match cell.get("t", "n"):
            case "s":
                number = whole(value, len(self._shared))
                return text_text(self._shared[number], code) if number < len(self._shared) else ""
            case "inlineStr":
                return text_text(_rich_text(cell.child("is")), code)
            case "b":
                return text_text("TRUE" if is_true(value) else "FALSE" if value else "", code)
            case "e":
                return value
            case "d":
                return value.removesuffix("T00:00:00").replace("T", " ")
            case "n":
                return shown_number(value, code, self._from_1904)
        return text_text(_unescaped(value), code)


def _is_none(element: Element, attribute: str) -> bool:
    """Whether a height or a width is zero."""
    return attribute in element.attributes and not element.get(attribute).strip("0.")


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "_x" in text else text


def _cell(address: str) -> tuple[int, int] | None:
    """Row 2 and column 1 for `B3`; None for another word."""
    if not (found := _ADDRESS.fullmatch(address)):
        return None
    return int(found[2]) - 1, column_number(found[1])
