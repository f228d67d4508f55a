"""CachedSequence: the KV cache of one conversation and the token ids it stands for, kept equal.

Invariant: the cache is what reading those of `tokens` that `columns` names, each at its own
position, from nothing would leave. Mostly these are all of them. After a sparse prefill some
are only known, never read: they count for positions and for recognising the context again, and
a sequence with such gaps never serves a request that wants everything read beyond the first gap.
Skipped ones can be inserted later: they saw what was before them by then, and what was already
read behind them is not read again.

A sequence that is closed up reads over its gaps as if nothing had been there: rotary positions are columns,
and its cache is what reading the kept tokens alone would leave. Nothing can be inserted into it.

Everything that puts tokens into the cache or takes them out goes through here or through a
`VerifyBlock` whose outcome is recorded here. Owned by the worker's main thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import mlx.core as mx
import numpy as np
from mlx.utils import tree_map
from mlx_lm.models.cache import CacheList

from core.errors import InternalError
from core.kv.columns import Columns
from core.kv.entries import columns_of, keeps_all, kind_of, leaves, parts, why_no_rollback
from core.kv.positioned import Positioned
from core.kv.snapshots import Snapshot, restore, take_snapshot
from core.kv.told import (
    Append,
    CloseUp,
    Fork,
    Insert,
    KeepSnapshots,
    Skip,
    Stand,
    TakeSnapshot,
    ToldCache,
    Truncate,
    tell,
)

# Limits of a sequence's snapshots; the newest one is always kept. A turn wants up to five.
SNAPSHOTS = 8
SNAPSHOT_BYTES = 1 << 30
# Ids that are compared at a time.
_BLOCK = 4096


class CachedSequence:
    """`new_cache()` makes an empty cache list; it is called again whenever reuse is impossible."""

    def __init__(self, new_cache: Callable[[], list[Any]]) -> None:
        self._new_cache = new_cache
        self.cache = new_cache()
        self.tokens: list[int] = []
        self.columns = Columns()
        self.closed_up = False
        self._snapshots: list[Snapshot] = []
        self.why_no_rollback = why_no_rollback(self.cache)
        self.keeps_all = keeps_all(self.cache)

    @property
    def skipped(self) -> int:
        """How many of `tokens` were never read."""
        return len(self.tokens) - self.columns.count

    @property
    def is_told(self) -> bool:
        """Whether others hold it, too: they must know the ids of a forward before it begins."""
        return isinstance(self.cache, ToldCache)

    @property
    def nbytes(self) -> int:
        """Memory of the cache's arrays and of the snapshots."""
        held = sum(int(entry.nbytes) for entry in leaves(self.cache) if not entry.empty())
        return held + sum(snapshot.nbytes for snapshot in self._snapshots)

    def shared(self, prompt: Sequence[int], *, whole: bool = False) -> int:
        """Length of the prefix of `prompt` that `reuse` would keep; see there."""
        limit = len(prompt) - 1
        if whole and self.columns.whole is not None:
            limit = min(limit, self.columns.whole)
        held = min(limit, len(self.tokens))
        shared = shared_prefix(self.tokens, prompt, held)
        if shared == len(self.tokens) or self.keeps_all:
            return shared
        return max((each.length for each in self._snapshots if each.length <= shared), default=0)

    def reuse(self, prompt: Sequence[int], *, whole: bool = False) -> int:
        """Keep the longest prefix shared with `prompt`, drop the rest; returns its length.

        At most len(prompt) − 1: the last token is always run, because its logits are needed.
        With `whole` no further than to the first token that was skipped. A cache that does not
        keep all positions is reused as a whole or up to a snapshot.
        """
        shared = self.shared(prompt, whole=whole)
        if not shared:
            self.clear()
        elif shared < len(self.tokens):
            self.truncate(shared)
        return shared

    def append(self, tokens: Sequence[int]) -> None:
        """A forward pass has put `tokens` into the cache, at the positions that follow."""
        if isinstance(self.cache, ToldCache):
            self.cache.tell(Append(len(tokens)))
        self.tokens.extend(tokens)
        self.columns.extend(len(tokens))

    def append_at(self, prompt: Sequence[int], positions: np.ndarray[Any, Any]) -> None:
        """A forward pass has put the tokens of `prompt` at `positions` into the cache.

        Ascending, the first one where the sequence ends; what lies between them is skipped.
        """
        for run in np.split(positions, np.flatnonzero(np.diff(positions) > 1) + 1):
            self.skip(prompt[len(self.tokens) : int(run[0])])
            self.append(prompt[int(run[0]) : int(run[-1]) + 1])
        tell(self.cache, Stand())
        self.stand()

    def close_up(self, closed: bool) -> None:
        """Whether gaps to come count for nothing in positions. Only while there are none."""
        if self.columns.whole is not None and closed != self.closed_up:
            raise InternalError("A sequence with gaps was to change its positions.")
        tell(self.cache, CloseUp(closed))
        self.closed_up = closed
        if closed:
            self.cache[:] = [_stock(entry) for entry in self.cache]

    def skip(self, tokens: Sequence[int]) -> None:
        """The context goes on with `tokens`, and they are not read."""
        if not tokens:
            return
        tell(self.cache, Skip(len(tokens)))
        if self.columns.whole is None and not self.closed_up:
            self.cache[:] = [self._positioned(entry) for entry in self.cache]
        self.tokens.extend(tokens)
        self.columns.jump(len(self.tokens))
        self.stand()

    def insert(self, positions: np.ndarray[Any, Any]) -> None:
        """A forward pass has put the skipped tokens at `positions` behind all others in the cache.

        `positions` (int32) ascend. They are moved to where they belong. Only where `keeps_all`.
        """
        tell(self.cache, Insert(tuple(positions.tolist())))
        order = self.columns.insert(positions)
        first = int(np.argmax(order != np.arange(len(order))))
        moved = mx.array(order[first:])
        for entry in leaves(self.cache):
            if not columns_of(entry):
                continue
            for part in parts(entry.keys) + parts(entry.values):
                part[..., first : len(order), :] = mx.take(part, moved, axis=-2)
        self.settle()

    def truncate(self, length: int) -> None:
        """Remove everything from position `length` on. Only where `keeps_all` or at a snapshot."""
        tell(self.cache, Truncate(length))
        self._snapshots = [each for each in self._snapshots if each.length <= length]
        if not self.keeps_all:
            restore(self.cache, next(each for each in self._snapshots if each.length == length))
        self.columns.cut(length)
        for entry in leaves(self.cache):
            if kind_of(entry) != "appending":
                continue
            excess = columns_of(entry) - self.columns.count
            if excess and entry.trim(excess) != excess:
                raise InternalError(f"A {type(entry).__name__} did not take back {excess} tokens.")
        del self.tokens[length:]

    def snapshot(self, wanted: Collection[int] = ()) -> None:
        """Make `truncate` to the present length possible. Does nothing where `keeps_all`.

        If that makes too many snapshots, those that are kept are the new one, those at `wanted` lengths, the
        first one, which chats share, and the latest of the others, in this order.
        """
        if self.keeps_all or not self.tokens:
            return
        self.add_snapshot()
        *others, newest = self._snapshots
        rank = {each.length: (each.length in wanted, each is others[0], each.length) for each in others}
        ranked = sorted(others, key=lambda each: rank[each.length], reverse=True)
        held, kept = newest.nbytes, [newest.length]
        for each in ranked[: SNAPSHOTS - 1]:
            held += each.nbytes
            if held > SNAPSHOT_BYTES:
                break
            kept.append(each.length)
        if len(kept) <= len(others):
            self.keep_snapshots(sorted(kept))

    def add_snapshot(self) -> None:
        """Take a snapshot at the present length. Use `snapshot`, which limits their number."""
        tell(self.cache, TakeSnapshot())
        here = len(self.tokens)
        others = [each for each in self._snapshots if each.length != here]
        self._snapshots = [*others, take_snapshot(self.cache, here)]

    def keep_snapshots(self, lengths: Sequence[int]) -> None:
        """Drop all snapshots but those at `lengths`."""
        tell(self.cache, KeepSnapshots(tuple(lengths)))
        self._snapshots = [each for each in self._snapshots if each.length in lengths]

    def fit_snapshots(self, budget_bytes: int) -> None:
        """Drop snapshots, the oldest first, until the sequence is within the budget; the last one stays."""
        lengths = [each.length for each in self._snapshots]
        excess = self.nbytes - budget_bytes
        for each in self._snapshots[:-1]:
            if excess <= 0:
                break
            excess -= each.nbytes
            lengths.remove(each.length)
        if len(lengths) < len(self._snapshots):
            self.keep_snapshots(lengths)

    def fork(self, length: int) -> CachedSequence:
        """A new sequence of the first `length` tokens; this one stays. Where `truncate` could."""
        other = CachedSequence(self._new_cache)
        if not length:
            return other
        if isinstance(self.cache, ToldCache):
            tell(other.cache, Fork(self.cache.number, length))
        other.tokens, other.columns = self.tokens[:length], self.columns.fork(length)
        other._snapshots = [each for each in self._snapshots if each.length <= length]
        if not self.keeps_all:
            restore(other.cache, next(each for each in self._snapshots if each.length == length))
        for new, entry in zip(leaves(other.cache), leaves(self.cache), strict=True):
            if kind_of(entry) == "appending":
                _copy_head(new, entry, other.columns.count)
        other.closed_up = self.closed_up
        if other.columns.whole is not None and not other.closed_up:
            other.cache[:] = [other._positioned(entry) for entry in other.cache]
        return other

    def settle(self) -> None:
        """Wait until the cache's arrays are computed."""
        mx.eval([entry.state for entry in self.cache])

    def clear(self) -> None:
        """Forget everything; the memory is returned."""
        self.cache = self._new_cache()
        self.tokens = []
        self.columns = Columns()
        self.closed_up = False
        self._snapshots = []
        mx.clear_cache()

    def stand(self) -> None:
        """The next token of every window stands where the sequence ends."""
        if self.closed_up:
            return
        for entry in leaves(self.cache):
            if kind_of(entry) == "window":
                _stand(entry, len(self.tokens))

    def _positioned(self, entry: Any) -> Any:
        if isinstance(entry, CacheList):
            return CacheList(*(self._positioned(child) for child in entry.caches))
        return Positioned(entry, self.columns) if kind_of(entry) == "appending" else entry


def shared_prefix(one: Sequence[int], other: Sequence[int], limit: int | None = None) -> int:
    """Length of the prefix that both have, at most `limit`. Compares blocks: 130,000 ids take some 3 ms."""
    held = min(len(one), len(other)) if limit is None else limit
    for start in range(0, held, _BLOCK):
        end = min(start + _BLOCK, held)
        if list(one[start:end]) != list(other[start:end]):
            return next(at for at in range(start, end) if one[at] != other[at])
    return held


def _stock(entry: Any) -> Any:
    if isinstance(entry, CacheList):
        return CacheList(*(_stock(child) for child in entry.caches))
    return entry.entry if isinstance(entry, Positioned) else entry


def _stand(window: Any, position: int) -> None:
    """The next token of a `RotatingKVCache` stands at `position`, past the columns it has held.

    It takes columns and position for the same number, which only shows before it is full: its
    buffer is cut to what is written, so that it cannot be mistaken for one that has wrapped.
    """
    if window.keys is not None and window._idx != window.keys.shape[2]:
        window.keys = window._temporal_order(window.keys)
        window.values = window._temporal_order(window.values)
        window._idx = window.keys.shape[2]
    window.offset = position


def _copy_head(new: Any, entry: Any, columns: int) -> None:
    """`new`, an empty appending entry, holds the first `columns` of `entry`, in arrays of its own."""
    if columns_of(entry):
        held = (entry.keys, entry.values)
        new.keys, new.values = tree_map(lambda part: part[..., :columns, :], held)
    new.offset = columns
