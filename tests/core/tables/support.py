"""Tables to save and load: filled at random, of families that exist nowhere."""

from __future__ import annotations

import random
from pathlib import Path

from core.drafting.ngram_mod import NgramTable
from core.drafting.shared_tables import NgramTables
from core.events import TableStatus
from core.settings import Settings, assign
from core.tables.files import TableFolder
from core.tables.memory import TableMemory

FAMILY = "ab" * 32
OTHER = "cd" * 32
N, SLOTS, VOCABULARY = 16, 2**12, 1000
FILE = f"{FAMILY[:16]}-n16-4096.safetensors"
QUIET = assign(Settings(), "tables.learn", False)


def fill(table: NgramTable, count: int, seed: int = 0, vocabulary: int = VOCABULARY) -> None:
    """So many inserts."""
    rng = random.Random(seed)
    table.insert_all([(rng.getrandbits(64), rng.randrange(vocabulary)) for _ in range(count)])


def content(table: NgramTable) -> dict[int, int]:
    """Slot → token."""
    entries = table.entries()
    return dict(zip(entries.slots.tolist(), entries.tokens.tolist()))


class Home:
    """A memory on a folder, what it said, and its one table."""

    def __init__(self, folder: Path) -> None:
        self.said: list[TableStatus] = []
        self.folder = folder
        self.memory = TableMemory(TableFolder(folder), self.said.append)

    def open(self, family: str = FAMILY) -> Home:
        self.memory.open(family, f"Name of {family[:2]}", VOCABULARY)
        return self

    @property
    def tables(self) -> NgramTables:
        return self.memory.tables

    @property
    def table(self) -> NgramTable:
        return self.memory.tables.table(FAMILY, N, SLOTS)

    def learn(self, count: int = 50, seed: int = 0) -> Home:
        """An answer that taught the table."""
        fill(self.table, count, seed)
        self.memory.answer_finished(Settings())
        return self

    @property
    def notes(self) -> str:
        return " ".join(note for status in self.said for note in status.notes)

    @property
    def moments(self) -> list[str]:
        return [status.moment for status in self.said]


def files(folder: Path) -> list[str]:
    """Names of what is there, but the locks."""
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock") if folder.exists() else []
