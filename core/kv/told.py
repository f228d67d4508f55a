"""ToldCache: a cache list that has twins on other machines, and tells what happens to it.

Where one model runs over several machines each of them holds its part of every cache. What moves a cache
beside a forward is said here as a `Change`, in the order in which it is done; whoever listens (`Teller`)
passes it on, and the twins do the same. Nothing in this room knows who listens, and on one machine a cache is
a plain list and nobody is told anything.

A change stands for the method or function that it is named after; positions and lengths are the same on
every machine, so that no change carries an array of the model. Worker's main thread.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any, Protocol

from msgspec import Struct


class Append(Struct, frozen=True, tag=True, array_like=True):
    """`CachedSequence.append` of so many tokens."""

    tokens: int


class Skip(Struct, frozen=True, tag=True, array_like=True):
    """`CachedSequence.skip` of so many tokens."""

    tokens: int


class Stand(Struct, frozen=True, tag=True, array_like=True):
    """Windows are told where the sequence ends (`CachedSequence.append_at`)."""


class CloseUp(Struct, frozen=True, tag=True, array_like=True):
    """`CachedSequence.close_up`."""

    closed: bool


class Insert(Struct, frozen=True, tag=True, array_like=True):
    """`CachedSequence.insert` at these positions, ascending."""

    positions: tuple[int, ...]


class Truncate(Struct, frozen=True, tag=True, array_like=True):
    """`CachedSequence.truncate`."""

    length: int


class TakeSnapshot(Struct, frozen=True, tag=True, array_like=True):
    """`CachedSequence.add_snapshot`."""


class KeepSnapshots(Struct, frozen=True, tag=True, array_like=True):
    """`CachedSequence.keep_snapshots`: the lengths of those that stay."""

    lengths: tuple[int, ...]


class Fork(Struct, frozen=True, tag=True, array_like=True):
    """This cache is `CachedSequence.fork(length)` of the cache `of`."""

    of: int
    length: int


class Copy(Struct, frozen=True, tag=True, array_like=True):
    """This cache is a deep copy of the cache `of`."""

    of: int


class Fill(Struct, frozen=True, tag=True, array_like=True):
    """`core.kv.fill.fill`."""

    start: int
    read_tokens: int
    most_tokens: int


class StandAt(Struct, frozen=True, tag=True, array_like=True):
    """`core.kv.fill.stand_at`."""

    position: int


class Block(Struct, frozen=True, tag=True, array_like=True):
    """A `VerifyBlock` is made for the next forward."""


class Keep(Struct, frozen=True, tag=True, array_like=True):
    """`VerifyBlock.keep`."""

    width: int
    rows: tuple[int, ...]


class Tree(Struct, frozen=True, tag=True, array_like=True):
    """The next forward verifies a tree (`core.decoding.tree`)."""

    parents: tuple[int, ...]
    lead: int


class Placed(Struct, frozen=True, tag=True, array_like=True):
    """The rows of the next forward stand at these positions (`core.prefill.read.placed`)."""

    positions: tuple[int, ...]


Change = (
    Append
    | Skip
    | Stand
    | CloseUp
    | Insert
    | Truncate
    | TakeSnapshot
    | KeepSnapshots
    | Fork
    | Copy
    | Fill
    | StandAt
    | Block
    | Keep
    | Tree
    | Placed
)


class Teller(Protocol):
    """Who hears of changes. Called on the thread that owns the caches."""

    def begin(self, cache: ToldCache) -> int:
        """A new, empty cache; returns a number that no other one has. It is forgotten with the object."""

    def tell(self, number: int, change: Change) -> None:
        """`change` is done to the cache of that number now."""


class ToldCache(list[Any]):
    """Entries of this machine's part, as `make_prompt_cache` gives them. Stays the same object for life."""

    def __init__(self, entries: Iterable[Any], teller: Teller) -> None:
        super().__init__(entries)
        self._teller = teller
        self.number = teller.begin(self)

    def tell(self, change: Change) -> None:
        """This is done to it now."""
        self._teller.tell(self.number, change)

    def __deepcopy__(self, memo: dict[int, Any]) -> ToldCache:
        other = ToldCache((deepcopy(entry, memo) for entry in self), self._teller)
        other.tell(Copy(self.number))
        return other


def tell(cache: list[Any], change: Change) -> None:
    """Tell it of `cache`, if there is anybody to tell."""
    if isinstance(cache, ToldCache):
        cache.tell(change)
