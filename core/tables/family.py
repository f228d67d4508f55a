"""Tables of one tokenizer family in memory, and the metadata of each table.

Reads them from a folder and prepares the files to write; takes no lock. Engine's thread, except for
`PendingFile`s, which belong to the thread that writes them.
"""

from __future__ import annotations

import time

from msgspec import Struct
from msgspec.structs import replace

from core.drafting.shared_tables import NgramTables, SharedTable
from core.events import TableInfo
from core.tables.files import SavedTable, TableFolder, TableHeader, TableKey, encode_table, make_header


class PendingFile(Struct):
    """The file of the table `record`, with a copy of its content at `mark`."""

    record: TableMetadata
    mark: Mark
    header: TableHeader
    copy: SharedTable

    def content(self) -> bytes:
        # Finding the used slots of a large table takes 10 ms, the copy 1 to 8: the writing thread finds them.
        return encode_table(SavedTable(self.header, self.copy.entries()))

    def write(self, folder: TableFolder) -> None:
        """Raises `TableError`."""
        content = self.content()
        folder.write(self.record.key.file, content)
        self.record.saved(self.mark, len(content), time.time())


class Family:
    """One tokenizer family. `tables` holds the tables of all families.

    `why_not_saved` is empty if this process saves the family.
    """

    def __init__(self, fingerprint: str, name: str, vocabulary: int, tables: NgramTables) -> None:
        self.fingerprint = fingerprint
        self.name = name
        self.vocabulary = vocabulary
        self.why_not_saved: str = ""
        self._tables = tables
        self._lives: dict[TableKey, TableMetadata] = {}

    # ---- looking in

    def records(self) -> tuple[TableMetadata, ...]:
        """Metadata of every table in memory, including those that drafters made since the last call. Engine's
        thread.
        """
        for table in self._tables.for_family(self.fingerprint):
            key = TableKey(self.fingerprint, table.n, table.slots)
            if key not in self._lives:
                self._lives[key] = TableMetadata(key, table)
        return tuple(self._lives.values())

    def record(self, key: TableKey) -> TableMetadata | None:
        """Metadata of the table with that shape, if it is in memory."""
        self.records()
        return self._lives.get(key)

    @property
    def entries(self) -> int:
        """Used slots of all its tables."""
        return sum(record.table.used for record in self.records())

    @property
    def is_saved(self) -> bool:
        return all(record.is_saved for record in self.records())

    def infos(self, folder: TableFolder | None) -> tuple[TableInfo, ...]:
        """Descriptions of the tables that the last `records` returned. Any thread."""
        return tuple(
            record.info(
                self.name,
                has_previous=folder is not None and folder.has_previous(record.key.file),
                why_not_saved=self.why_not_saved,
            )
            for record in tuple(self._lives.values())
        )

    # ---- changes

    def forget(self) -> None:
        """Drops all tables from memory."""
        self._tables.forget(self.fingerprint)
        self._lives = {}

    def install(self, saved: SavedTable, size_bytes: int) -> None:
        """Replaces the table of the same shape by one from a file of this family."""
        header = saved.header
        key = TableKey(self.fingerprint, header.n, header.slots)
        table = self._tables.shared(key.family, key.n, key.slots)
        table.restore(saved.entries, header.figures)
        self._lives[key] = TableMetadata(key, table, header, size_bytes)

    # ---- files

    def read(self, folder: TableFolder) -> list[str]:
        """Replaces everything by the saved files. Returns a sentence for each problem."""
        self.forget()
        notes: list[str] = []
        for named in folder.keys(self.fingerprint):
            key = TableKey(self.fingerprint, named.n, named.slots)
            saved, found = folder.read(key, self.vocabulary)
            notes += found.notes
            if saved is not None:
                self.install(saved, found.size_bytes)
            elif found.notes:
                notes.append("A new table takes its place.")
        return notes

    def pending_files(self, *, force: bool = False) -> list[PendingFile]:
        """The files that have to be written, from copies; `force` includes unchanged tables."""
        return [self._pending_table(record) for record in self.records() if force or not record.is_saved]

    def encode_table_of(self, record: TableMetadata) -> bytes:
        """The content of a file with this table."""
        return self._pending_table(record).content()

    def _pending_table(self, record: TableMetadata) -> PendingFile:
        return PendingFile(record, record.mark(), record.header(self.name, time.time()), record.table.copy())


# Counters that identify the content of a table in memory: changes, inserts and look-ups.
Mark = tuple[int, int, int]


class TableMetadata:
    """Times of one table in memory, and its saved state.

    `header` is that of the file from which the table was read, if any.
    """

    def __init__(
        self, key: TableKey, table: SharedTable, header: TableHeader | None = None, size_bytes: int = 0
    ) -> None:
        self.key = key
        self.table = table
        self.size_bytes = size_bytes
        self._created_s = header.created_s if header else time.time()
        self._updated_s = header.updated_s if header else 0.0
        # Nothing is saved of a table that a drafter made during an answer.
        self._saved: Mark = self.mark() if header else (0, 0, 0)

    @property
    def is_saved(self) -> bool:
        """Whether there was no activity since the last save. An unused table needs none."""
        return self.mark() == self._saved

    def mark(self) -> Mark:
        """Identifies the current content; pass it to `saved` once that is on disk."""
        figures = self.table.figures()
        return self.table.changes, figures.inserts, figures.lookups

    def saved(self, mark: Mark, size_bytes: int, now_s: float) -> None:
        """Records that the content at `mark` is on disk."""
        self._saved, self.size_bytes, self._updated_s = mark, size_bytes, now_s

    def header(self, family_name: str, updated_s: float) -> TableHeader:
        """The header of a file with the current content."""
        table = self.table
        return make_header(self.key.family, family_name, table.n, table.figures(), self._created_s, updated_s)

    def info(self, family_name: str, *, has_previous: bool, why_not_saved: str) -> TableInfo:
        """A description for the user interface."""
        header = self.header(family_name, self._updated_s)
        return replace(
            saved_info(header, size_bytes=self.size_bytes, has_previous=has_previous),
            loaded=True,
            unsaved=self.table.changes - self._saved[0],
            why_not_saved=why_not_saved,
        )


def saved_info(header: TableHeader, *, size_bytes: int, has_previous: bool) -> TableInfo:
    """The description of a table that is only on disk."""
    return TableInfo(
        header.family,
        header.family_name,
        header.n,
        header.figures,
        header.created_s,
        header.updated_s,
        size_bytes,
        has_previous,
    )
