"""MirroredCache: a cache list with copies on other machines, which repeat each change.

If a model runs over several ranks (`core.cluster`), each holds its part of every cache. Every change to a
cache other than by a forward pass is reported as a `Change`, in order, to a `CacheMirror`, which sends it to
the other ranks. On one machine a cache is a plain list and nothing is reported.

The docstring of each change names what makes it. Positions and lengths are equal on all machines, so no
change carries an array. Imports no MLX. Worker's main thread.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from core.kv.mlx_lm_caches import Cache


class Append(Struct, frozen=True, tag=True, array_like=True):
    """`CachedSequence.append` of this many tokens."""

    tokens: int


class Skip(Struct, frozen=True, tag=True, array_like=True):
    """`CachedSequence.skip` of this many tokens."""

    tokens: int


class Truncate(Struct, frozen=True, tag=True, array_like=True):
    """`CachedSequence.truncate`."""

    length: int


class TakeSnapshot(Struct, frozen=True, tag=True, array_like=True):
    """`CachedSequence.add_snapshot`."""


class KeepSnapshots(Struct, frozen=True, tag=True, array_like=True):
    """`CachedSequence.keep_snapshots`."""

    lengths: tuple[int, ...]


class Fork(Struct, frozen=True, tag=True, array_like=True):
    """This cache is `CachedSequence.fork(length)` of the cache numbered `of`."""

    of: int
    length: int


class Copy(Struct, frozen=True, tag=True, array_like=True):
    """This cache is a deep copy of the cache numbered `of`."""

    of: int


class Fill(Struct, frozen=True, tag=True, array_like=True):
    """`core.machine.trials.fill`."""

    start: int
    read_tokens: int
    most_tokens: int


class StandAt(Struct, frozen=True, tag=True, array_like=True):
    """`core.machine.trials.stand_at`."""

    position: int


class BlockBegun(Struct, frozen=True, tag=True, array_like=True):
    """A `VerifyBlock` is created for the next forward pass."""


class Keep(Struct, frozen=True, tag=True, array_like=True):
    """`VerifyBlock.keep`."""

    width: int
    rows: tuple[int, ...]


class TreeBegun(Struct, frozen=True, tag=True, array_like=True):
    """The next forward pass verifies a tree (`core.decoding.tree`)."""

    parents: tuple[int, ...]
    lead: int


Change = (
    Append
    | Skip
    | Truncate
    | TakeSnapshot
    | KeepSnapshots
    | Fork
    | Copy
    | Fill
    | StandAt
    | BlockBegun
    | Keep
    | TreeBegun
)


class CacheMirror(Protocol):
    """Receives changes, on the thread that owns the caches."""

    def begin(self, cache: MirroredCache) -> int:
        """Registers a new, empty cache until the object is collected; returns its unique number."""

    def mirror(self, number: int, change: Change) -> None:
        """Applies `change` to the copies of the cache with that number."""


class MirroredCache(list[Any]):
    """This machine's cache entries, as from `make_prompt_cache`. The object's identity does not change."""

    def __init__(self, entries: Iterable[Any], cache_mirror: CacheMirror) -> None:
        super().__init__(entries)
        self._cache_mirror = cache_mirror
        self.number = cache_mirror.begin(self)

    def mirror(self, change: Change) -> None:
        """Apply `change` to the copies of this cache on the other machines."""
        self._cache_mirror.mirror(self.number, change)

    def __deepcopy__(self, memo: dict[int, Any]) -> MirroredCache:
        other = MirroredCache((deepcopy(entry, memo) for entry in self), self._cache_mirror)
        other.mirror(Copy(self.number))
        return other


def mirror(cache: Cache, change: Change) -> None:
    """Reports a change of `cache` if it is mirrored."""
    if isinstance(cache, MirroredCache):
        cache.mirror(change)
