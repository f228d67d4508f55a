"""One sheet of a spreadsheet: its cells by row and column, and how they become text. Pure.

A heading with the name and the range of the used cells, such as `## Budget (B2:F40)`, and a line per row with
tabs between cells; the first line is the first row of the range, so that the address of a cell can be
counted. Comments and text boxes follow the rows. Rows and columns that the file hides are left out and named.
"""

from __future__ import annotations

from core.documents import strings
from core.documents.formulas import column_letters
from core.documents.limits import DamagedError, Gathered, TooLongError
from core.documents.writer import with_address

MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384
# More empty rows than this become a line that says so.
_MOST_EMPTY_ROWS = 3
_MOST_NAMED = 10  # cells that show nothing


class Sheet:
    """Rows and columns are counted from 0."""

    def __init__(self, name: str, most_characters: int, *, hidden: bool = False) -> None:
        self.name = one_line(name)
        self.hidden = hidden
        self._left = most_characters
        self._rows: dict[int, dict[int, str]] = {}
        self._hidden_rows = range(0)  # the last ones
        self._hidden_columns = bytearray(MOST_COLUMNS)  # 1 for a hidden one
        # Rows and columns with a cell that is left out.
        self._rows_left_out: set[int] = set()
        self._columns_left_out: set[int] = set()
        self._cells_left_out: list[str] = []
        self._asides: list[str] = []

    @property
    def has_cells(self) -> bool:
        """Whether a cell, or a text next to the cells, is shown."""
        return bool(self._rows or self._asides)

    def hide_rows(self, rows: range) -> None:
        """Leave out the cells of these rows; called before they are put, from the top down."""
        self._hidden_rows = rows

    def hide_columns(self, columns: range, *, hidden: bool = True) -> None:
        """Leave out the cells of these columns, or not; called before they are put."""
        columns = columns[: max(0, MOST_COLUMNS - columns.start)]
        self._hidden_columns[columns.start : columns.stop] = bytes([hidden]) * len(columns)

    def hide_cell(self, row: int, column: int) -> None:
        """Record a cell whose format hides its value."""
        if row not in self._hidden_rows and 0 <= column < MOST_COLUMNS and not self._hidden_columns[column]:
            self._cells_left_out.append(_address(row, column))

    def put(self, row: int, column: int, text: str) -> None:
        """Show `text` in a cell. Raises `TooLongError`, and `DamagedError` outside of any sheet."""
        if not (0 <= row < MOST_ROWS and 0 <= column < MOST_COLUMNS):
            raise DamagedError
        if not (text := one_line(text)):
            return
        # Hidden cells count as well: an .ods file can repeat one without end.
        self._left -= len(text) + 1
        if self._left < 0:
            raise TooLongError
        if row in self._hidden_rows:
            self._rows_left_out.add(row)
        elif self._hidden_columns[column]:
            self._columns_left_out.add(column)
        else:
            self._rows.setdefault(row, {})[column] = text

    def put_link(self, row: int, column: int, address: str) -> None:
        """Add the address of a link to a cell that is shown."""
        cells = self._rows.get(row, {})
        if column in cells:
            cells[column] = with_address(cells[column], address)

    def add_aside(self, kind: str, text: str, cell: tuple[int, int] | None = None) -> None:
        """A comment or a text box, which follows the rows, with the row and the column that it is about."""
        if text := "\n".join(line.rstrip() for line in text.strip().split("\n")):
            self._left -= len(text)
            if self._left < 0:
                raise TooLongError
            self._asides.append(f"[{kind}{f' {_address(*cell)}' if cell else ''}] {text}")

    def write(self, gathered: Gathered) -> None:
        """Add the heading, the rows and the texts next to them. Raises `TooLongError`."""
        if self.hidden:
            gathered.leave_out("hidden sheet", place=self.name)
            gathered.add(f"{strings.hidden_sheet(self.name)}\n")
            return
        shown = [range(row, row + 1) for row in self._rows]
        runs = sorted([*shown, *_runs(self._rows_left_out)], key=lambda rows: rows.start)
        left = min(map(min, self._rows.values()), default=0)
        if runs:
            right = max(map(max, self._rows.values()), default=0)
            cells = f"{_address(runs[0].start, left)}:{_address(runs[-1].stop - 1, right)}"
            gathered.add(f"## {self.name} ({cells})\n\n")
        else:
            gathered.add(f"## {self.name}\n\n")
        following = runs[0].start if runs else 0
        for rows in runs:
            empty = rows.start - following
            following = rows.stop
            if empty > _MOST_EMPTY_ROWS:
                gathered.add(f"{strings.empty_rows(rows.start - empty + 1, rows.start)}\n")
            else:
                gathered.add("\n" * empty)
            if (row := self._rows.get(rows.start)) is None:
                place = strings.rows(rows.start + 1, rows.stop)
                gathered.leave_out("hidden row", len(rows), f"{self.name}, {place}")
                gathered.add(f"{strings.hidden(place)}\n")
            else:
                gathered.add("\t".join(row.get(each, "") for each in range(left, max(row) + 1)) + "\n")
        for columns in _runs(self._columns_left_out):
            place = strings.columns(column_letters(columns.start), column_letters(columns.stop - 1))
            gathered.leave_out("hidden column", len(columns), f"{self.name}, {place}")
            gathered.add(f"{strings.hidden(place)}\n")
        if self._cells_left_out:
            count = len(self._cells_left_out)
            named = ", ".join([*self._cells_left_out[:_MOST_NAMED], *["…"] * (count > _MOST_NAMED)])
            gathered.leave_out("hidden cell", count, f"{self.name}, {named}")
            gathered.add(f"{strings.hidden(strings.cells(count, named))}\n")
        gathered.add("".join(f"{aside}\n" for aside in self._asides) + "\n")


def _runs(numbers: set[int]) -> list[range]:
    """The runs of consecutive numbers, in order."""
    starts = sorted(number for number in numbers if number - 1 not in numbers)
    ends = sorted(number + 1 for number in numbers if number + 1 not in numbers)
    return list(map(range, starts, ends))


def one_line(text: str) -> str:
    """`text` without tabs and line breaks, which separate cells and rows."""
    return " ".join(text.split()) if set(text) & set("\t\n\r\v\f") else text


def _address(row: int, column: int) -> str:
    """`B3` for row 2 and column 1."""
    return f"{column_letters(column)}{row + 1}"
