"""Spreadsheets (.xlsx, .xlsm, .xlsb, .xls, .ods) to text, through calamine.

Each sheet is a heading with its name and range, such as `## Budget (B2:F40)`, and a line per row with tabs
between cells; the first line is the first row of the range, so that the address of a cell can be counted.
Values are those that the program stored: numbers without their format, dates as ISO 8601, results instead of
formulas, nothing for errors. Sheets that the file hides are left out and named.

calamine is native code that holds a whole sheet, so it runs only in the bounded reader process.
"""

from __future__ import annotations

import datetime
import zipfile
from collections.abc import Iterable
from typing import IO

from core.documents import strings
from core.documents.limits import DamagedError, Gathered, LockedError, Told, UnpacksError

Cell = int | float | str | bool | datetime.time | datetime.date | datetime.datetime | datetime.timedelta

# The XML of one sheet; a zip can claim any size.
_MOST_PART_BYTES = 256 * 1024 * 1024
_TELL_EVERY_ROWS = 2_000
# More empty rows than this become a line that says so.
_MOST_EMPTY_ROWS = 3
# Digits of a number that spreadsheets keep.
_NUMBER = ".15g"


def sheets_text(stream: IO[bytes], told: Told, gathered: Gathered) -> str:
    """All visible sheets, in the file's order. Raises `UnreadableError`, OSError."""
    import python_calamine

    _check_sizes(stream)
    told(0, 1, "bytes")
    try:
        book = python_calamine.CalamineWorkbook.from_filelike(stream)
        hidden: list[str] = []
        has_cells = False
        for metadata in book.sheets_metadata:
            if metadata.visible != python_calamine.SheetVisibleEnum.Visible:
                hidden.append(metadata.name)
            elif metadata.typ == python_calamine.SheetTypeEnum.WorkSheet:
                sheet = book.get_sheet_by_name(metadata.name)
                has_cells = has_cells or sheet.start is not None
                _sheet(sheet.name, sheet.start, sheet.end, sheet.iter_rows(), told, gathered)
        for name in hidden:
            gathered.add(f"{strings.hidden_sheet(_one_line(name))}\n")
    except python_calamine.PasswordError as error:
        raise LockedError from error
    except python_calamine.CalamineError as error:
        raise DamagedError from error
    except BaseException as error:
        # A panic of native code is not an Exception.
        if type(error).__name__ == "PanicException":
            raise DamagedError from error
        raise
    return gathered.text().strip("\n") if has_cells else ""


def _check_sizes(stream: IO[bytes]) -> None:
    """Raises `UnpacksError` for a zip with a part that is too large to be parsed."""
    try:
        with zipfile.ZipFile(stream) as archive:
            largest = max((info.file_size for info in archive.infolist()), default=0)
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        largest = 0  # an .xls file, or one that calamine refuses
    stream.seek(0)
    if largest > _MOST_PART_BYTES:
        raise UnpacksError(largest, _MOST_PART_BYTES)


def _sheet(
    name: str,
    start: tuple[int, int] | None,
    end: tuple[int, int] | None,
    rows: Iterable[list[Cell]],
    told: Told,
    gathered: Gathered,
) -> None:
    """A heading, and the rows of the used range."""
    if start is None or end is None:
        gathered.add(f"## {_one_line(name)}\n\n")
        return
    (top, left), (bottom, right) = start, end
    gathered.add(f"## {_one_line(name)} ({_address(top, left)}:{_address(bottom, right)})\n\n")
    empty = 0
    # The rows begin at the sheet's first one, their cells at the range's first column.
    for number, row in enumerate(rows):
        if number % _TELL_EVERY_ROWS == 0:
            told(number, bottom + 1, "bytes")
        if number < top:
            continue
        line = "\t".join(map(_shown, row)).rstrip("\t")
        if not line:
            empty += 1
            continue
        if empty > _MOST_EMPTY_ROWS:
            gathered.add(f"{strings.empty_rows(number - empty + 1, number)}\n")
        else:
            gathered.add("\n" * empty)
        empty = 0
        gathered.add(f"{line}\n")
    gathered.add("\n")


def _shown(cell: Cell) -> str:
    if isinstance(cell, str):
        return _one_line(cell)
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else format(cell, _NUMBER)
    if isinstance(cell, datetime.datetime):
        if cell.time() == datetime.time():
            return cell.date().isoformat()
        return cell.isoformat(" ")
    return cell.isoformat() if isinstance(cell, datetime.date | datetime.time) else str(cell)


def _one_line(text: str) -> str:
    """`text` without tabs and line breaks, which separate cells and rows."""
    return " ".join(text.split()) if set(text) & set("\t\n\r\v\f") else text


def _address(row: int, column: int) -> str:
    """`B3` for row 2 and column 1, both from 0."""
    letters = ""
    column += 1
    while column:
        column, letter = divmod(column - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return f"{letters}{row + 1}"
