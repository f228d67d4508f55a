"""The sheets of Excel 2003's files of XML ("XML Spreadsheet 2003")."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator

from core.documents.flat import SPREADSHEET_XML
from core.documents.formulas import link_address
from core.documents.limits import Gathered, Told
from core.documents.number_formats import GENERAL, shown_number, text_text
from core.documents.parts import Element, read_elements, whole
from core.documents.sheet import MOST_COLUMNS, Sheet

_SS = "urn:schemas-microsoft-com:office:spreadsheet "
_FORMATS = {
    **dict.fromkeys(("General Date", "Short Date", "Medium Date", "Long Date"), "yyyy-mm-dd"),
    "Percent": "0.00%", "Fixed": "0.00", "Standard": "#,##0.00", "Currency": "$#,##0.00",
    "Scientific": "0.00E+00",
}  # fmt: skip


def xml_sheets(archive: zipfile.ZipFile, told: Told, gathered: Gathered) -> Iterator[Sheet]:
    """The sheets in the file's order. Raises as `read_elements` does."""
    sheets: list[Sheet] = []
    codes: dict[str, str] = {}
    row = column = -1
    pieces = ("Style", "Column", "Row", "WorksheetOptions")
    for each in read_elements(archive, SPREADSHEET_XML, pieces, heads=("Worksheet",), told=told):
        match each.tag:
            case "Style":
                code = each.child("NumberFormat").get(_SS + "Format", GENERAL)
                codes[each.get(_SS + "ID")] = _FORMATS.get(code, code)
            case "Worksheet":
                sheets.append(Sheet(each.get(_SS + "Name"), gathered.left))
                row = column = -1
            case _ if not sheets:
                continue
            case "Column":
                first = _place(each, column)
                column = first + _count(each, "Span")
                if each.get(_SS + "Hidden") == "1" or not each.get(_SS + "Width", "1").strip("0."):
                    sheets[-1].hide_columns(range(first, column + 1))
            case "Row":
                row = _place(each, row)
                if each.get(_SS + "Hidden") == "1" or not each.get(_SS + "Height", "1").strip("0."):
                    sheets[-1].hide_rows(range(row, row + 1))
                _read_row(each, row, sheets[-1], codes)
            case "WorksheetOptions":
                sheets[-1].hidden = each.line("Visible") in ("SheetHidden", "SheetVeryHidden")
    yield from sheets


def _read_row(element: Element, row: int, sheet: Sheet, codes: dict[str, str]) -> None:
    column, across = -1, 0
    for cell in element.elements:
        column, across = _place(cell, column + across), _count(cell, "MergeAcross")
        data, comment = cell.child("Data"), cell.child("Comment")
        code = codes.get(cell.get(_SS + "StyleID"), GENERAL)
        formula, shown = cell.get(_SS + "Formula"), _shown(data, code)
        if not shown and data.line() not in ("", "0"):
            sheet.hide_cell(row, column)
        sheet.put(row, column, shown if data.name else formula)
        sheet.put_link(row, column, cell.get(_SS + "HRef") or link_address(formula))
        sheet.add_aside("comment", comment.child("Data").line() or comment.line(), (row, column))


def _shown(data: Element, code: str) -> str:
    text = data.line()
    match data.get(_SS + "Type"):
        case "Boolean":
            return text_text("TRUE" if text == "1" else "FALSE", code)
        case "DateTime":
            return text.removesuffix(".000").removesuffix("T00:00:00").replace("T", " ")
        case "Number":
            return shown_number(text, code)
        case "String":
            return text_text(text, code)
    return text


def _place(element: Element, before: int) -> int:
    """The row or column after `before`, from 0, or the one that the element names from 1."""
    index = _count(element, "Index")
    return index - 1 if index else before + 1


def _count(element: Element, name: str) -> int:
    return min(whole(element.get(_SS + name)), MOST_COLUMNS * 64)
