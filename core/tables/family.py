"""Family: what is in memory of one tokenizer family: its tables' lives and `auto`'s calibration.

Reads them from a folder and makes the pages that have to be written there. Takes no lock and
writes nothing itself. Engine's thread, but for `Page`s, which whoever writes them works on alone.

TableMetadata: what is known of one table in memory beside its content: teachers, days, what was saved.

Counters of a table only grow; here their growth is credited to the model that was loaded and to
the day. Knows no file.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from core.drafting.calibration import Calibration
from core.drafting.ngram_table import ID_END, NgramTable, NgramTables
from core.events import TableDay, TableFigures, TableInfo, TableTeacher
from core.tables.container import Refused
from core.tables.folder import Found, TableFolder, TableKey
from core.tables.table_file import (
    DAYS_KEPT,
    MOST_BYTES,
    MOST_CALIBRATION_BYTES,
    SavedTable,
    TableHeader,
    decode_calibration,
    decode_table,
    encode_calibration,
    encode_table,
    make_header,
)

State = NDArray[np.float64]


class Page(Struct):
    """One file to write, from copies of what was in memory; `saved(bytes, now_s)` is told once it is."""

    name: str
    entries: int
    content: Callable[[], bytes]
    saved: Callable[[int, float], None]


class Family:
    """`tables` are those of all families. `why_not_saved` is empty where this process saves."""

    def __init__(self, fingerprint: str, name: str, vocabulary: int, tables: NgramTables) -> None:
        self.fingerprint = fingerprint
        self.name = name
        self.vocabulary = vocabulary
        self.model: str = ""
        self.why_not_saved: str = ""
        self.calibration = Calibration()
        self._saved_calibration: State = self.calibration.state()
        self._tables = tables
        self._lives: dict[TableKey, TableMetadata] = {}

    # ---- looking in

    def lives(self) -> tuple[TableMetadata, ...]:
        """Of every table in memory. Registers those that drafters made since: engine's thread only."""
        for table in self._tables.for_family(self.fingerprint):
            key = TableKey(self.fingerprint, table.n, table.slots)
            if key not in self._lives:
                self._lives[key] = TableMetadata(table, time.time())
        return tuple(self._lives.values())

    def life(self, key: TableKey) -> TableMetadata | None:
        """Of the table of that shape, if it is in memory."""
        self.lives()
        return self._lives.get(key)

    @property
    def entries(self) -> int:
        """Used slots of all its tables."""
        return sum(life.table.used for life in self.lives())

    @property
    def is_saved(self) -> bool:
        return self._is_calibration_saved and all(life.is_saved for life in self.lives())

    def infos(self, folder: TableFolder | None) -> tuple[TableInfo, ...]:
        """Descriptions of its tables that `lives` returned so far. Any thread."""
        return tuple(
            life.info(
                self.fingerprint,
                self.name,
                has_previous=folder is not None and folder.has_previous(self._key(life).file),
                why_not_saved=self.why_not_saved,
            )
            for life in tuple(self._lives.values())
        )

    @property
    def is_calibrated(self) -> bool:
        """Whether `auto` has learned anything about its guesses."""
        return bool(self.calibration.state()[:-1].any())

    @property
    def _is_calibration_saved(self) -> bool:
        return np.array_equal(self.calibration.state(), self._saved_calibration)

    # ---- changes

    def learn(self, day: str) -> None:
        """An answer ended on `day`."""
        for life in self.lives():
            life.credit(self.model, day)

    def forget(self) -> None:
        """Nothing was ever learned."""
        self._tables.forget(self.fingerprint)
        self._lives, self.calibration = {}, Calibration()
        self._saved_calibration = self.calibration.state()

    def take(self, saved: SavedTable, size_bytes: int) -> None:
        """A table from a file of this family replaces the one of its shape."""
        header = saved.header
        table = self._tables.table(self.fingerprint, header.n, header.slots)
        table.restore(saved.entries, header.figures)
        self._lives[TableKey(self.fingerprint, header.n, header.slots)] = TableMetadata(
            table, time.time(), header, size_bytes
        )

    # ---- files

    @property
    def calibration_file(self) -> str:
        return f"{self.fingerprint[:16]}-auto.safetensors"

    def read(self, folder: TableFolder) -> list[str]:
        """Replace all of it by what is saved. Returns what was refused, in sentences."""
        self.forget()
        notes: list[str] = []
        for named in folder.keys(self.fingerprint):
            key = TableKey(self.fingerprint, named.n, named.slots)
            saved, found = read_table(folder, key, self.vocabulary)
            notes += found.notes
            if saved is not None:
                self.take(saved, found.size_bytes)
            elif found.notes:
                notes.append("A fresh table takes its place.")
        state, other = folder.read(
            self.calibration_file, self.fingerprint, self._calibration_of, MOST_CALIBRATION_BYTES
        )
        if state is not None and state[0] is not None:
            self.calibration.restore(state[0])
            self._saved_calibration = state[0]
        return notes + other.notes

    def pages(self, *, all_of_it: bool = False) -> list[Page]:
        """What has to be written, or all tables; copies."""
        pages = [self._table_page(life) for life in self.lives() if all_of_it or not life.is_saved]
        if not self._is_calibration_saved:
            pages.append(self._calibration_page(self.calibration.state()))
        return pages

    def encoded(self, life: TableMetadata) -> bytes:
        """One of its tables as the content of a file."""
        return self._table_page(life).content()

    def _table_page(self, life: TableMetadata) -> Page:
        mark, copy = life.mark(), life.table.copy()
        header = life.header(self.fingerprint, self.name, time.time())
        return Page(
            self._key(life).file,
            copy.used,
            # Finding the used slots of a large table takes 10 ms, the copy 1 to 8: the writer finds them.
            lambda: encode_table(SavedTable(header, copy.entries())),
            lambda size_bytes, now_s: life.saved(mark, size_bytes, now_s),
        )

    def _calibration_page(self, state: State) -> Page:
        def saved(size_bytes: int, now_s: float) -> None:
            self._saved_calibration = state

        family, name, now_s = self.fingerprint, self.name, time.time()
        return Page(
            self.calibration_file,
            0,
            lambda: encode_calibration(state, family=family, family_name=name, updated_s=now_s),
            saved,
        )

    def _calibration_of(self, content: bytes) -> tuple[State | None]:
        header, state = decode_calibration(content)
        if header.family != self.fingerprint:
            raise Refused(f"belongs to another tokenizer family, {header.family_name}")
        return (state,)

    def _key(self, life: TableMetadata) -> TableKey:
        return TableKey(self.fingerprint, life.table.n, life.table.slots)


def read_table(
    folder: TableFolder, key: TableKey, vocabulary: int = ID_END
) -> tuple[SavedTable | None, Found]:
    """The newest table of `key` that is no file of something else, and can be used."""

    def decode(content: bytes) -> SavedTable:
        table = decode_table(content, vocabulary=vocabulary)
        header = table.header
        if not header.family.startswith(key.family):
            raise Refused(f"belongs to another tokenizer family, {header.family_name}")
        if (header.n, header.slots) != (key.n, key.slots):
            raise Refused(f"holds a table of another shape, n {header.n} with {header.slots:,} slots")
        return table

    saved, found = folder.read(key.file, key.family, decode, MOST_BYTES)
    if saved is not None and found.notes:
        found.notes.append("The generation saved before it is used.")
    return saved, found


class TableMetadata:
    """Of one `table`. `header` is that of the file it was read from, if it was."""

    def __init__(
        self, table: NgramTable, now_s: float, header: TableHeader | None = None, size_bytes: int = 0
    ) -> None:
        self.table = table
        self.created_s = header.created_s if header else now_s
        self.updated_s = header.updated_s if header else 0.0
        self.size_bytes = size_bytes
        self._teachers = {t.model: t.entries for t in header.learned_from} if header else {}
        self._days: list[TableDay] = list(header.days) if header else []
        # Nothing is credited yet of a table that was not read: a drafter made it during an answer.
        figures = table.figures() if header else TableFigures()
        self._credited = self._saved_changes = table.changes if header else 0
        self._tested, self._accepted = figures.tested, figures.accepted
        self._saved_activity = (figures.inserts, figures.lookups)

    def credit(self, model: str, day: str) -> None:
        """What was learned since the last call, `model` taught on `day` (like 2026-11-21)."""
        changes = self.table.changes - self._credited
        figures = self.table.figures()
        if changes:
            self._teachers[model] = self._teachers.get(model, 0) + changes
        tested, accepted = figures.tested - self._tested, figures.accepted - self._accepted
        if changes or tested:
            if self._days and self._days[-1].day == day:
                last = self._days.pop()
                tested, accepted = tested + last.tested, accepted + last.accepted
            self._days.append(TableDay(day, figures.used, tested, accepted))
            del self._days[:-DAYS_KEPT]
        self._credited, self._tested, self._accepted = self.table.changes, figures.tested, figures.accepted

    @property
    def is_saved(self) -> bool:
        """Whether nothing happened since the last save. A table that was never used needs none."""
        return self._activity() == self._saved_activity

    def mark(self) -> tuple[int, tuple[int, int]]:
        """What to give to `saved` once the content of now is on disk."""
        return self.table.changes, self._activity()

    def saved(self, mark: tuple[int, tuple[int, int]], size_bytes: int, now_s: float) -> None:
        """The content at `mark` is on disk."""
        self._saved_changes, self._saved_activity = mark
        self.size_bytes, self.updated_s = size_bytes, now_s

    def header(self, family: str, family_name: str, now_s: float) -> TableHeader:
        """The header for a file with the content of now."""
        return make_header(
            family,
            family_name,
            self.table.n,
            self.table.figures(),
            self.teachers,
            tuple(self._days),
            self.created_s,
            now_s,
        )

    def info(self, family: str, family_name: str, *, has_previous: bool, why_not_saved: str) -> TableInfo:
        """All of it, for people."""
        return TableInfo(
            family,
            family_name,
            self.table.n,
            self.table.figures(),
            self.teachers,
            tuple(self._days),
            self.created_s,
            self.updated_s,
            self.size_bytes,
            has_previous,
            True,
            self.table.changes - self._saved_changes,
            why_not_saved,
        )

    @property
    def teachers(self) -> tuple[TableTeacher, ...]:
        """Models by what they taught, most first."""
        most_first = sorted(self._teachers.items(), key=lambda pair: -pair[1])
        return tuple(TableTeacher(model, entries) for model, entries in most_first)

    def _activity(self) -> tuple[int, int]:
        figures = self.table.figures()
        return figures.inserts, figures.lookups


def saved_info(header: TableHeader, *, size_bytes: int, has_previous: bool) -> TableInfo:
    """A table that is on disk and not in memory."""
    return TableInfo(
        header.family,
        header.family_name,
        header.n,
        TableFigures(**_as_dict(header.figures)),
        tuple(TableTeacher(t.model, t.entries) for t in header.learned_from),
        tuple(TableDay(d.day, d.used, d.tested, d.accepted) for d in header.days),
        header.created_s,
        header.updated_s,
        size_bytes,
        has_previous,
    )


def _as_dict(figures: TableFigures) -> dict[str, int]:
    return {name: getattr(figures, name) for name in TableFigures.__struct_fields__}
