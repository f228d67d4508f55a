"""Journal: results of a bench, each written down at once so that a stopped run can go on.

The file's first line says under which conditions its results were made; a file made under others
is refused, never mixed.
"""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct

from core.errors import RequestError


class Entry(Protocol):
    """A result, a `Struct`; no two of one journal have the same `key`."""

    @property
    def key(self) -> tuple[Hashable, ...]: ...


E = TypeVar("E", bound=Entry)


class _Header(Struct, frozen=True):
    conditions: str


class Journal(Generic[E]):
    """The results of one file, all of `kind`. Raises `RequestError` for a file not of these conditions."""

    def __init__(self, path: Path, conditions: str, kind: type[E]) -> None:
        self.path = path
        self._held: dict[tuple[Hashable, ...], E] = {}
        if path.exists():
            self._load(conditions, kind)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._write(_Header(conditions))

    @property
    def all(self) -> tuple[E, ...]:
        """In the order of writing."""
        return tuple(self._held.values())

    def has(self, *key: Hashable) -> bool:
        """Whether this was measured already."""
        return key in self._held

    def add(self, entry: E) -> None:
        """Keep it, and write it down now."""
        self._held[entry.key] = entry
        self._write(entry)

    def _write(self, record: object) -> None:
        with self.path.open("ab") as file:
            file.write(msgspec.json.encode(record) + b"\n")

    def _load(self, conditions: str, kind: type[E]) -> None:
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]  # it may have been stopped in the middle of a line
        first, *lines = whole.splitlines() or [b""]
        try:
            header = msgspec.json.decode(first, type=_Header)
            entries = [msgspec.json.decode(line, type=kind) for line in lines]
        except msgspec.DecodeError as error:
            raise RequestError(
                f"{self.path} holds no results of this bench: {error}.", "Choose another --out."
            ) from None
        if header.conditions != conditions:
            raise RequestError(
                f"{self.path} holds results of other conditions ({header.conditions}).",
                "Choose another --out, or the same options as before.",
            )
        self._held = {entry.key: entry for entry in entries}
        if whole != content:
            self.path.write_bytes(whole)
