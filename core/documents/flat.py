"""Documents that are one file of XML: those of Excel 2003 and Word 2003, flat OpenDocument and Open XML.

`packaged` puts them into a zip as their newer forms have it, so that the same readers read them; `xml_sheets`
reads the sheets of Excel 2003, which has no newer form of that kind.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from typing import IO
from xml.etree import ElementTree

from core.documents.limits import DamagedError, Gathered, Told
from core.documents.number_formats import GENERAL, number_text
from core.documents.opendocument import CONTENT
from core.documents.parts import MOST_XML_BYTES, Elements, parse_part
from core.documents.sheet import MOST_COLUMNS, Sheet

SPREADSHEET_XML = "spreadsheet.xml"
_ROOT = re.compile(rb"<(?:[\w.-]{1,40}:)?(document|Workbook|wordDocument|package)[\s>]")
_KINDS = {
    b"Workbook": (b"urn:schemas-microsoft-com:office:spreadsheet", "sheets", SPREADSHEET_XML),
    b"wordDocument": (b"office/word/2003/wordml", "word", "word/document.xml"),
    b"document": (b"urn:oasis:names:tc:opendocument:xmlns:office", "opendocument", CONTENT),
    b"package": (b"schemas.microsoft.com/office/2006/xmlPackage", "", ""),
}
_PACKAGE = "{http://schemas.microsoft.com/office/2006/xmlPackage}"
_SS = "urn:schemas-microsoft-com:office:spreadsheet "
_FORMATS = {
    **dict.fromkeys(("General Date", "Short Date", "Medium Date", "Long Date"), "yyyy-mm-dd"),
    "Percent": "0.00%", "Fixed": "0.00", "Standard": "#,##0.00", "Currency": "$#,##0.00",
    "Scientific": "0.00E+00",
}  # fmt: skip


def flat_kind(head: bytes) -> str:
    """The kind of document that a file of XML with this beginning is; empty if it is none."""
    head = head.replace(b"\0", b"")  # UTF-16
    found = _ROOT.search(head)
    if found is None:
        return ""
    space, kind, _ = _KINDS[found[1]]
    if space not in head:
        return ""
    if kind == "opendocument" and b"opendocument.spreadsheet" in head:
        return "sheets"
    return kind or ("word" if b"/word/" in head else "slides" if b"/ppt/" in head else "sheets")


def packaged(data: bytes) -> IO[bytes]:
    """The file as a zip. Raises `DamagedError`."""
    found = _ROOT.search(data.replace(b"\0", b"") if data[:2] in (b"\xff\xfe", b"\xfe\xff") else data)
    assert found
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        if part := _KINDS[found[1]][2]:
            archive.writestr(part, data)
        else:
            try:
                for each in ElementTree.fromstring(data).iter(f"{_PACKAGE}part"):
                    for inside in each.findall(f"{_PACKAGE}xmlData/*"):
                        archive.writestr(
                            each.get(f"{_PACKAGE}name", "").lstrip("/"), ElementTree.tostring(inside)
                        )
            except ElementTree.ParseError as error:
                raise DamagedError from error
    out.seek(0)
    return out


def xml_sheets(archive: zipfile.ZipFile, told: Told, gathered: Gathered) -> Iterator[Sheet]:
    """The sheets in the file's order. Raises as `parse_part` does."""
    book = _Workbook(gathered)
    parse_part(archive, SPREADSHEET_XML, book, MOST_XML_BYTES, told)
    yield from book.sheets


class _Workbook(Elements):
    """Reads SpreadsheetML: styles, then sheets."""

    def __init__(self, gathered: Gathered) -> None:
        self.sheets: list[Sheet] = []
        self._gathered = gathered
        self._codes: dict[str, str] = {}
        self._style = self._kind = self._formula = self._link = ""
        self._row = self._column = -1
        self._across = 0
        self._text: list[str] = []
        self._inside = ""
        self._has_value = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        of = {key.removeprefix(_SS): value for key, value in attributes.items()}
        match name.rpartition(" ")[2]:
            case "Style":
                self._style = of.get("ID", "")
            case "NumberFormat":
                code = of.get("Format", GENERAL)
                self._codes[self._style] = _FORMATS.get(code, code)
            case "Worksheet":
                self.sheets.append(Sheet(of.get("Name", ""), self._gathered.left))
                self._row = -1
            case "Column":
                first = _place(of.get("Index"), self._column)
                self._column = first + _count(of.get("Span"))
                if of.get("Hidden") == "1" and self.sheets:
                    self.sheets[-1].hide_columns(range(first, self._column + 1))
            case "Table":
                self._column = -1
            case "Row":
                self._row, self._column, self._across = _place(of.get("Index"), self._row), -1, 0
                if of.get("Hidden") == "1" and self.sheets:
                    self.sheets[-1].hide_rows(range(self._row, self._row + 1))
            case "Cell":
                self._column = _place(of.get("Index"), self._column + self._across)
                self._across = _count(of.get("MergeAcross"))
                self._style, self._formula = of.get("StyleID", ""), of.get("Formula", "")
                self._link, self._has_value = of.get("HRef", ""), False
            case "Data" | "Comment" as tag:
                self._inside, self._kind, self._text = tag, of.get("Type", ""), []
                self._has_value = self._has_value or tag == "Data"
            case "Author":
                self._inside = "Author"

    def end(self, name: str) -> None:
        tag = name.rpartition(" ")[2]
        text = " ".join("".join(self._text).split()) if tag in ("Data", "Comment", "WorksheetOptions") else ""
        if tag in ("Data", "Comment"):
            self._inside = ""
        if not self.sheets:
            return
        sheet = self.sheets[-1]
        if tag == "Data" and text:
            sheet.put(self._row, self._column, self._shown(text))
            sheet.put_link(self._row, self._column, self._link)
        elif tag == "Cell" and self._formula and not self._has_value:
            sheet.put(self._row, self._column, self._formula)
        elif tag == "Comment":
            sheet.add_aside("comment", text, (self._row, self._column))
        elif tag == "Visible" and "".join(self._text).strip() in ("SheetHidden", "SheetVeryHidden"):
            sheet.hidden = True

    def characters(self, text: str) -> None:
        self._text = self._text if self._inside else []
        if self._inside != "Author":
            self._text.append(text)

    def _shown(self, text: str) -> str:
        if self._kind == "Boolean":
            return "TRUE" if text == "1" else "FALSE"
        if self._kind == "DateTime":
            return text.removesuffix(".000").removesuffix("T00:00:00").replace("T", " ")
        try:
            return (
                number_text(float(text), self._codes.get(self._style, GENERAL))
                if self._kind == "Number"
                else text
            )
        except (ValueError, OverflowError):
            return text


def _place(index: str | None, before: int) -> int:
    """The row or column after `before`, from 0, or the one that `index` names from 1."""
    return _count(index) - 1 if _count(index) else before + 1


def _count(value: str | None) -> int:
    return (
        min(int(value), MOST_COLUMNS * 64)
        if value and value.isascii() and value.isdigit() and len(value) < 8
        else 0
    )
