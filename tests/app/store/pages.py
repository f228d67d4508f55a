"""The pages of a chat database that have each row, found without reading SQLite's format."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from core.system.sqlite_pages import PAGE_BYTES

_WINDOW = 20
_KEYS = {"chats": "id", "turns": "chat, place", "parts": "chat, turn", "projects": "id"}


def pages_of_rows(path: Path) -> dict[tuple[object, ...], frozenset[int]]:
    """The pages of all rows of a table with the same key: an id, or a chat and a turn's place."""
    data = path.read_bytes()
    found: dict[tuple[object, ...], frozenset[int]] = {}
    with closing(sqlite3.connect(path)) as connection:
        for table, key in _KEYS.items():
            for *name, state in connection.execute(f"SELECT {key}, state FROM {table}"):
                row = (table, *name)
                found[row] = found.get(row, frozenset()) | _pages_with(state, data)
    return found


def _pages_with(state: bytes, data: bytes) -> frozenset[int]:
    """The pages with pieces that only this row has, found without reading the format."""
    starts = {*range(0, len(state) - _WINDOW, 60), *range(30, len(state) - _WINDOW, 60)}
    pieces = (state[at : at + _WINDOW] for at in starts)
    return frozenset(data.index(piece) // PAGE_BYTES + 1 for piece in pieces if data.count(piece) == 1)
