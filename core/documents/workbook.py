"""Workbooks of Excel (.xlsx, .xlsm) to sheets of shown cells, part by part.

Comments, text boxes, form fields and the titles of charts follow the cells; pictures are marked.

The parts of each sheet are parsed in pieces, and only its visible cells are held, as text. A formula without
a stored result, which programs write that do not calculate, is shown itself.
"""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Iterator
from typing import NamedTuple

from core.documents.limits import DamagedError, Gathered, Told
from core.documents.number_formats import BUILT_IN, GENERAL, number_text, text_text
from core.documents.parts import Elements, R, Relations, parse_part
from core.documents.sheet import Sheet
from core.documents.slides import DrawnText
from core.documents.writer import PLAIN, Marks, Run, lowered, numbers_page

_MAIN = "xl/workbook.xml"
# The XML of one part; a zip can claim any size.
MOST_PART_BYTES = 256 * 1024 * 1024
_ADDRESS = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")
_HEADERS = {"oddHeader": "page header", "oddFooter": "page footer"}
# Positions, fonts, colors and numbers of pages in a header.
_HEADER_CODE = re.compile(r'&(?:"[^"]*"|K[0-9A-F]{6}|\d{1,3}|[A-Z&])')
# A character that XML does not allow.
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")


def workbook_sheets(archive: zipfile.ZipFile, told: Told, gathered: Gathered) -> Iterator[Sheet]:
    """The sheets with cells, in the file's order; hidden ones are not read. Raises as `parse_part` does."""
    main = Relations(archive, "").by_kind.get("officeDocument", _MAIN)
    book, parts = _Book(), Relations(archive, main)
    parse_part(archive, main, book, MOST_PART_BYTES)
    if not book.sheets:
        raise DamagedError
    styles, strings = _Styles(), _Strings()
    for kind, elements in (("styles", styles), ("sharedStrings", strings)):
        if (name := parts.by_kind.get(kind, "")) in archive.NameToInfo:
            parse_part(archive, name, elements, MOST_PART_BYTES)
    for name, identifier, hidden in book.sheets:
        part = parts.by_id.get(identifier, "")
        sheet = Sheet(name, gathered.left, hidden=hidden)
        if not hidden:
            cells = _Cells(sheet, strings.all, styles, book.from_1904)
            parse_part(archive, part, cells, MOST_PART_BYTES, told)
            beside = Relations(archive, part)
            for (row, column), identifier in cells.links.items():
                sheet.put_link(row, column, beside.external.get(identifier, ""))
            _add_asides(archive, beside, sheet, gathered)
            # Sheets of charts and dialogs have no cells.
            if not cells.is_worksheet and not sheet.has_cells:
                continue
        yield sheet


def _add_asides(archive: zipfile.ZipFile, beside: Relations, sheet: Sheet, gathered: Gathered) -> None:
    """Comments, drawings and form fields of a sheet."""
    # Newer comments come with a copy for older programs.
    for kind in ("threadedComment", "comments"):
        comments = _Comments()
        for part in beside.texts(kind, archive):
            parse_part(archive, part, comments, MOST_PART_BYTES)
        for row, column, text in comments.all:
            sheet.add_aside("comment", text, (row, column))
        if comments.all:
            break
    drawn = ""
    for part in beside.texts("drawing", archive):
        drawing = DrawnText(archive, Relations(archive, part), gathered)
        parse_part(archive, part, drawing, MOST_PART_BYTES)
        drawn = drawing.text()
        # The data of a chart are on a sheet; its titles are not.
        sheet.add_aside("text box", "\n".join(line for line in drawn.split("\n") if "\t" not in line))
    for part in beside.texts("vmlDrawing", archive):
        fields = _FormFields()
        try:
            parse_part(archive, part, fields, MOST_PART_BYTES)
        except DamagedError:  # old programs wrote HTML into it
            gathered.leave_out("object", place=sheet.name)
        for text in fields.all:
            sheet.add_aside("form", text)


class _Listed(NamedTuple):
    name: str
    identifier: str
    hidden: bool


class _Book(Elements):
    """Reads the workbook's part."""

    def __init__(self) -> None:
        self.sheets: list[_Listed] = []
        self.from_1904 = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(" ")[2]
        if tag == "workbookPr":
            self.from_1904 = _is_true(attributes.get("date1904"))
        elif tag == "sheet":
            hidden = attributes.get("state", "visible") != "visible"
            self.sheets.append(_Listed(attributes.get("name", ""), attributes.get(R + "id", ""), hidden))


class _Comments(Elements):
    """Reads comments: the row and column of their cell, and their text."""

    def __init__(self) -> None:
        self.all: list[tuple[int, int, str]] = []
        self._cell = (0, 0)
        self._text: list[str] = []
        self._inside = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(" ")[2]
        if tag in ("comment", "threadedComment"):
            found = _ADDRESS.fullmatch(attributes.get("ref", ""))
            self._cell = (int(found[2]) - 1, _column(found[1])) if found else (0, 0)
            self._text = []
        self._inside = tag == "t" or (tag == "text" and not self._text)

    def end(self, name: str) -> None:
        tag = name.rpartition(" ")[2]
        self._inside = False
        if tag in ("comment", "threadedComment") and (text := " ".join("".join(self._text).split())):
            self.all.append((*self._cell, text))

    def characters(self, text: str) -> None:
        if self._inside:
            self._text.append(text)


class _FormFields(Elements):
    """Reads check boxes and their labels from a drawing of older programs, which every workbook has."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._label: list[str] = []
        self._kind = self._inside = ""
        self._is_on = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._inside = name.rpartition(" ")[2]
        if self._inside == "shape":
            self._label, self._kind, self._is_on = [], "", False
        elif self._inside == "ClientData":
            self._kind = attributes.get("ObjectType", "")

    def end(self, name: str) -> None:
        tag = name.rpartition(" ")[2]
        if tag == "shape" and self._kind in ("Checkbox", "Radio"):
            label = " ".join("".join(self._label).split())
            self.all.append(f"[{'x' if self._is_on else ' '}] {label}".rstrip())
        self._inside = "" if tag in ("Checked", "ClientData") else self._inside

    def characters(self, text: str) -> None:
        if self._inside == "Checked":
            self._is_on = text.strip() == "1"
        elif not self._kind:
            self._label.append(text)


class _Styles(Elements):
    """Reads the format code and the marks of each style."""

    def __init__(self) -> None:
        self._codes = dict(BUILT_IN)
        self._identifiers: list[tuple[int, int]] = []  # of the code and of the font
        self._fonts: list[Marks] = []
        self._inside = ""

    def code(self, style: str | None) -> str:
        """The format code of a cell's style."""
        number = _whole(style)
        identifier = self._identifiers[number][0] if number < len(self._identifiers) else 0
        return self._codes.get(identifier, GENERAL)

    def marks(self, style: str | None) -> Marks:
        """The marks of a cell's whole text."""
        number = _whole(style)
        font = self._identifiers[number][1] if number < len(self._identifiers) else 0
        return self._fonts[font] if font < len(self._fonts) else PLAIN

    def start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(" ")[2]
        if tag in ("numFmts", "cellXfs", "fonts"):
            self._inside = tag
        elif tag == "font" and self._inside == "fonts":
            self._fonts.append(PLAIN)
        elif self._inside == "fonts" and self._fonts:
            self._fonts[-1] = _marked(self._fonts[-1], tag, attributes)
        elif tag == "numFmt" and self._inside == "numFmts":
            self._codes[_whole(attributes.get("numFmtId"))] = attributes.get("formatCode", GENERAL)
        elif tag == "xf" and self._inside == "cellXfs":
            self._identifiers.append((_whole(attributes.get("numFmtId")), _whole(attributes.get("fontId"))))

    def end(self, name: str) -> None:
        if name.rpartition(" ")[2] == self._inside:
            self._inside = ""


def _marked(marks: Marks, tag: str, attributes: dict[str, str]) -> Marks:
    """`marks` with the property `tag` of a font."""
    if tag == "strike":
        return marks._replace(struck=_is_true(attributes.get("val", "1")))
    value = attributes.get("val", "")
    if tag == "vertAlign" and value in ("superscript", "subscript"):
        return marks._replace(script=value.removesuffix("script"))
    return marks


class _Text:
    """Gathers the runs of a text, without the readings above Japanese words."""

    def __init__(self) -> None:
        self._runs: list[Run] = []
        self._marks = PLAIN
        self._in_run = False
        self._readings = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "rPh":
            self._readings += 1
        self._marks = PLAIN if tag == "r" else _marked(self._marks, tag, attributes)
        self._in_run = tag == "t" and not self._readings

    def end(self, tag: str) -> None:
        if tag == "rPh":
            self._readings -= 1
        self._in_run = False

    def characters(self, text: str) -> None:
        if self._in_run:
            self._runs.append((text, self._marks))

    def take(self) -> str:
        """The text, which is empty afterwards."""
        text = lowered(self._runs) if self._runs else ""
        self._runs, self._marks = [], PLAIN
        return _unescaped(text)


class _Strings(Elements):
    """Reads the texts that cells share."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._text = _Text()

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._text.start(name.rpartition(" ")[2], attributes)

    def end(self, name: str) -> None:
        tag = name.rpartition(" ")[2]
        self._text.end(tag)
        if tag == "si":
            self.all.append(self._text.take())

    def characters(self, text: str) -> None:
        self._text.characters(text)


class _Cells(Elements):
    """Reads the cells of a sheet's part into `sheet`."""

    def __init__(self, sheet: Sheet, shared: list[str], styles: _Styles, from_1904: bool) -> None:
        self.is_worksheet = False
        self.links: dict[tuple[int, int], str] = {}  # ids of relations by row and column
        self._has_value = False
        self._header = ""
        self._sheet = sheet
        self._shared = shared
        self._styles = styles
        self._from_1904 = from_1904
        self._row = self._column = -1
        self._attributes: dict[str, str] = {}
        self._inside = ""
        self._value: list[str] = []
        self._formula: list[str] = []
        self._text = _Text()

    def start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(" ")[2]
        if tag == "c":
            self._attributes = attributes
            if found := _ADDRESS.fullmatch(attributes.get("r", "")):
                self._row, self._column = int(found[2]) - 1, _column(found[1])
            else:
                self._column += 1
        elif tag == "row":
            self._row = _whole(attributes.get("r"), self._row + 2) - 1
            self._column = -1
            if _is_true(attributes.get("hidden")):
                self._sheet.hide_rows(range(self._row, self._row + 1))
        elif tag == "col":
            if _is_true(attributes.get("hidden")):
                first, last = (_whole(attributes.get(each)) for each in ("min", "max"))
                self._sheet.hide_columns(range(max(first - 1, 0), max(last, 0)))
        elif tag == "worksheet":
            self.is_worksheet = True
        elif tag == "hyperlink":
            if found := _ADDRESS.match(attributes.get("ref", "")):
                self.links[int(found[2]) - 1, _column(found[1])] = attributes.get(R + "id", "")
        else:
            self._inside = tag
            self._text.start(tag, attributes)
            self._has_value = self._has_value or tag == "v"

    def end(self, name: str) -> None:
        tag = name.rpartition(" ")[2]
        self._text.end(tag)
        self._inside = ""
        if tag in _HEADERS:
            text, self._header = " ".join(_HEADER_CODE.sub(" ", self._header).split()), ""
            self._sheet.add_aside(_HEADERS[tag], "" if numbers_page(text) else text)
        if tag == "c":
            value, formula, text = "".join(self._value), "".join(self._formula), self._text.take()
            self._value, self._formula = [], []
            if shown := self._shown(value, text) or (
                f"={formula}" if formula and not self._has_value else ""
            ):
                marks = self._styles.marks(self._attributes.get("s"))
                self._sheet.put(
                    self._row, self._column, lowered([(shown, marks)]) if marks != PLAIN else shown
                )
            self._has_value = False

    def characters(self, text: str) -> None:
        if self._inside == "v":
            self._value.append(text)
        elif self._inside == "f":
            self._formula.append(text)
        elif self._inside in _HEADERS:
            self._header += text
        else:
            self._text.characters(text)

    def _shown(self, value: str, inline: str) -> str:
        kind = self._attributes.get("t", "n")
        code = self._styles.code(self._attributes.get("s"))
        if kind == "s":
            number = _whole(value, len(self._shared))
            return text_text(self._shared[number], code) if number < len(self._shared) else ""
        if kind == "inlineStr":
            return text_text(inline, code)
        if kind == "b":
            return "TRUE" if _is_true(value) else "FALSE" if value else ""
        if kind == "d":
            return value.removesuffix("T00:00:00").replace("T", " ")
        if kind != "n":
            return text_text(_unescaped(value), code)
        try:
            number_value = float(value)
        except ValueError:
            return value
        return number_text(number_value, code, self._from_1904) if math.isfinite(number_value) else value


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "_x" in text else text


def _column(letters: str) -> int:
    """1 for `B`."""
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


def _is_true(value: str | None) -> bool:
    return value in ("1", "true", "on")


def _whole(value: str | None, otherwise: int = 0) -> int:
    """The number that `value` writes in at most seven digits, else `otherwise`."""
    return int(value) if value and value.isascii() and value.isdigit() and len(value) < 8 else otherwise
