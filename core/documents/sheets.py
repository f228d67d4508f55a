"""Spreadsheets (.xlsx, .xlsm, .xlsb, .xls, .ods, and the XML of Excel 2003) to text.

Each sheet is a heading and its rows (`sheet.py`). Cells of .xlsx, .xlsm and .ods files are as their program
shows them, except dates, which are ISO 8601. The binary files (.xlsb, .xls) are read by calamine, which has
no formats: numbers as stored, results instead of formulas, nothing for errors. calamine is native code that
holds a whole sheet, so it runs only in the bounded reader process.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import IO

from core.documents.flat import SPREADSHEET_XML
from core.documents.limits import DamagedError, Gathered, LockedError, Told, UnpacksError, UnreadableError
from core.documents.number_formats import stored
from core.documents.opendocument_sheets import opendocument_sheets
from core.documents.parts import MOST_XML_BYTES, Package
from core.documents.sheet import Sheet
from core.documents.workbook import workbook_sheets
from core.documents.xml_sheets import xml_sheets

Cell = int | float | str | bool | datetime.time | datetime.date | datetime.datetime | datetime.timedelta

_TELL_EVERY_ROWS = 2_000
_BINARY = "xl/workbook.bin"
_OPEN_DOCUMENT = "content.xml"


def sheets_text(stream: IO[bytes], told: Told, gathered: Gathered) -> str:
    """All visible sheets in their order, and the names of hidden ones. Raises `UnreadableError`, OSError."""
    hidden: list[Sheet] = []
    has_cells = False
    try:
        for sheet in _sheets(stream, told, gathered):
            if sheet.hidden:
                hidden.append(sheet)
            else:
                has_cells = has_cells or sheet.has_cells
                sheet.write(gathered)
        for sheet in hidden:
            sheet.write(gathered)
    except (UnreadableError, OSError, MemoryError):
        raise
    except Exception as error:  # a damaged zip fails in as many ways as there are places to damage
        raise DamagedError from error
    return gathered.text().strip("\n") if has_cells else ""


def _sheets(stream: IO[bytes], told: Told, gathered: Gathered) -> Iterator[Sheet]:
    is_zip = stream.read(2) == b"PK"
    stream.seek(0)
    if not is_zip:
        yield from _binary_sheets(stream, told, gathered)
        return
    with Package(stream) as archive:
        if SPREADSHEET_XML in archive.NameToInfo:
            yield from xml_sheets(archive, told, gathered)
            return
        if _OPEN_DOCUMENT in archive.NameToInfo:
            yield from opendocument_sheets(archive, told, gathered)
            return
        if _BINARY not in archive.NameToInfo:
            yield from workbook_sheets(archive, told, gathered)
            return
        largest = max(info.file_size for info in archive.infolist())
    if largest > MOST_XML_BYTES:
        raise UnpacksError(largest, MOST_XML_BYTES)
    stream.seek(0)
    yield from _binary_sheets(stream, told, gathered)


def _binary_sheets(stream: IO[bytes], told: Told, gathered: Gathered) -> Iterator[Sheet]:
    import python_calamine

    told(0, 1, "bytes")
    try:
        book = python_calamine.CalamineWorkbook.from_filelike(stream)
        for metadata in book.sheets_metadata:
            is_hidden = metadata.visible != python_calamine.SheetVisibleEnum.Visible
            sheet = Sheet(metadata.name, gathered.left, hidden=is_hidden)
            if not is_hidden and metadata.typ != python_calamine.SheetTypeEnum.WorkSheet:
                continue
            if not is_hidden:
                read = book.get_sheet_by_name(metadata.name)
                left = read.start[1] if read.start else 0
                # The rows begin at the sheet's first one, their cells at the range's first column.
                for number, row in enumerate(read.iter_rows()):
                    if number % _TELL_EVERY_ROWS == 0:
                        told(number, read.total_height, "bytes")
                    for column, cell in enumerate(row, left):
                        sheet.put(number, column, _shown(cell))
            yield sheet
    except python_calamine.PasswordError as error:
        raise LockedError from error
    except python_calamine.CalamineError as error:
        raise DamagedError from error
    except BaseException as error:
        # A panic of native code is not an Exception.
        if type(error).__name__ == "PanicException":
            raise DamagedError from error
        raise


def _shown(cell: Cell) -> str:
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, float):
        return stored(cell)
    if isinstance(cell, datetime.datetime):
        if cell.time() == datetime.time():
            return cell.date().isoformat()
        return cell.isoformat(" ")
    return cell.isoformat() if isinstance(cell, datetime.date | datetime.time) else str(cell)
