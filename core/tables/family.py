"""Family: what is in memory of one tokenizer family: its tables' lives and `auto`'s calibration.

Reads them from a folder and makes the pages that have to be written there. Takes no lock and
writes nothing itself. Engine's thread, but for `Page`s, which whoever writes them works on alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from core.drafting.evidence.calibration import Calibration
from core.drafting.tables.ngram_table import ID_END, NgramTables
from core.events import TableInfo
from core.tables import calibration_file
from core.tables.calibration_file import decode_calibration, encode_calibration
from core.tables.container import Refused
from core.tables.folder import Found, TableFolder, TableKey
from core.tables.metadata import TableMetadata
from core.tables.table_file import MOST_BYTES, SavedTable, decode_table, encode_table

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
        for table in self._tables.of_family(self.fingerprint):
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
            self.calibration_file, self.fingerprint, self._calibration_of, calibration_file.MOST_BYTES
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
