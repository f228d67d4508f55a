"""ChatCount: how many chats there are, remembered beside their database.

An empty database opens as a whole one, so what is not in it has to be known from elsewhere. Invariant:
the number is never more than what is in the database, however a process ends: it is lowered before chats
are deleted and raised after new ones are written. So fewer chats than remembered means that some were
lost.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
from msgspec import Struct


class _File(Struct, frozen=True):
    chats: int


class ChatCount:
    """Of the database at `database`. One process at a time writes it: the one that has the lock."""

    def __init__(self, database: Path) -> None:
        self._path = database.with_suffix(".count")

    def read(self) -> int | None:
        """The number; None if none was ever remembered, or it cannot be read."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=_File).chats
        except (OSError, ValueError):
            return None

    def write(self, chats: int) -> None:
        """Remember `chats`. Raises `OSError`."""
        fresh = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        fresh.write_bytes(msgspec.json.encode(_File(max(0, chats))))
        os.replace(fresh, self._path)

    def add(self, chats: int) -> None:
        """That many more, or fewer. Raises `OSError`."""
        if chats and (known := self.read()) is not None:
            self.write(known + chats)
