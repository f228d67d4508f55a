"""CachedSequence: the KV cache of one conversation together with its token ids.

Invariant: the cache equals a cold prefill of those of `tokens` that `columns` names, without the others.
Usually these are all. After a sparse prefill some tokens were skipped: they count for positions in `tokens`
and for prefix comparison, but not for the model, which reads the kept tokens as if they were the whole text.
A sequence with gaps never serves a request that requires every token beyond the first gap. With a quantised
cache the cold prefill is one with the same bits from the same column on.

All changes to the cache go through this class, or through a `VerifyBlock` whose outcome is recorded here.
Worker's main thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import mlx.core as mx
import numpy as np
from mlx.utils import tree_map
from msgspec.structs import replace
from numpy.typing import NDArray

from core.errors import InternalError
from core.kv.mirrored import (
    Append,
    Fork,
    KeepSnapshots,
    MirroredCache,
    Skip,
    TakeSnapshot,
    Truncate,
    mirror,
)
from core.kv.mlx_lm_caches import (
    Cache,
    KeysAndValues,
    KvQuantisation,
    Snapshot,
    columns_of,
    is_appending,
    is_plain,
    keeps_all,
    leaves,
    quantise,
    restore,
    take_snapshot,
    why_no_rollback,
)
from core.kv.positions import Columns, Positioned

# Limits of a sequence's snapshots; the newest one is always kept. A turn takes up to five.
SNAPSHOTS = 8
SNAPSHOT_BYTES = 1 << 30
# Ids per comparison.
_BLOCK = 4096


class CachedSequence:
    """`new_cache()` returns an empty cache; it is called again whenever reuse is impossible.

    `kv`: when and how the cache is quantised; None: never. Not for mirrored caches.
    """

    def __init__(self, new_cache: Callable[[], Cache], kv: KvQuantisation | None = None) -> None:
        self._new_cache = new_cache
        self.kv = kv
        self.cache = self._empty_cache()
        self.tokens: list[int] = []
        self.columns = Columns()
        self._snapshots: list[Snapshot] = []
        # The chat that it belongs to, empty if none, and the number of columns that were loaded from disk, or
        # read before a question, and that no answer has counted yet.
        self.chat = ""
        self.loaded_columns = self.ahead_columns = 0
        # The cache of the model's head for the same tokens, which may lack some of them, and the newest
        # hidden state [1, size] that it has not read, with its position. None if no head drafts.
        self.head: CachedSequence | None = None
        self.state: tuple[int, mx.array] | None = None
        self.head_source = ""  # of the head that these are for
        self.why_no_rollback = why_no_rollback(self.cache)
        self.keeps_all = keeps_all(self.cache)

    @classmethod
    def restored(
        cls,
        new_cache: Callable[[], Cache],
        cache: Cache,
        tokens: Sequence[int],
        columns: Columns,
        snapshots: Sequence[Snapshot],
        kv: KvQuantisation | None = None,
    ) -> CachedSequence:
        """The sequence of a cache that was loaded; the parts must fit together. `kv`: if it is quantised."""
        sequence = cls(new_cache, kv)
        sequence.cache, sequence.tokens, sequence.columns = cache, list(tokens), columns
        sequence._snapshots = list(snapshots)
        sequence.loaded_columns = columns.count
        return sequence

    def serve_head(self, source: str) -> None:
        """Drops rows and states of another head than that of `source`."""
        if self.head_source not in ("", source):
            self.head = self.state = None
            self._snapshots = [replace(each, newest=None) for each in self._snapshots]
        self.head_source = source

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """The snapshots, ascending by length."""
        return tuple(self._snapshots)

    @property
    def skipped(self) -> int:
        return len(self.tokens) - self.columns.count

    def held_tokens(self, prompt_tokens: int) -> int:
        """How many tokens of a prompt that begins with `tokens` the cache holds once the rest is read.

        Skipped tokens have no columns, so they take no room in the context.
        """
        return prompt_tokens - self.skipped

    @property
    def is_mirrored(self) -> bool:
        """Whether other machines hold copies; they need the ids of a forward pass before it begins."""
        return isinstance(self.cache, MirroredCache)

    @property
    def nbytes(self) -> int:
        held = sum(int(entry.nbytes) for entry in leaves(self.cache) if not entry.empty())
        own = self.head.nbytes if self.head is not None else 0
        return held + own + sum(snapshot.nbytes for snapshot in self._snapshots)

    def shared(self, prompt: Sequence[int], *, whole: bool = False) -> int:
        """Length of the prefix of `prompt` that `reuse` would keep."""
        return self.shared_as(self.kv, prompt, whole=whole)

    def shared_as(self, kv: KvQuantisation | None, prompt: Sequence[int], *, whole: bool = False) -> int:
        """Length of the prefix of `prompt` that `reuse` would keep after `follow(kv)`."""
        lengths = None if self.keeps_all else [each.length for each in self._snapshots]
        return reusable(self.tokens, self.columns, lengths, prompt, whole=whole, held=self.kv, wanted=kv)

    def follow(self, kv: KvQuantisation | None) -> None:
        """Quantises as in `kv` from now on. If that changes, the sequence is cleared."""
        if kv != self.kv:
            self.kv = kv
            self.clear()

    def _empty_cache(self) -> Cache:
        cache = self._new_cache()
        if self.kv is not None:
            quantise(cache, self.kv)
        return cache

    def reuse(self, prompt: Sequence[int], *, whole: bool = False) -> int:
        """Keeps the longest prefix shared with `prompt` and drops the remainder; returns its length.

        At most len(prompt) − 1, because the logits of the last token are needed. With `whole`, at most up to
        the first skipped token. A cache that does not keep all positions is reused entirely or up to a
        snapshot.
        """
        shared = self.shared(prompt, whole=whole)
        if not shared:
            self.clear()
        elif shared < len(self.tokens):
            self.truncate(shared)
        return shared

    def append(self, tokens: Sequence[int]) -> None:
        """Records that a forward pass wrote `tokens` to the cache at the next positions."""
        if isinstance(self.cache, MirroredCache):
            self.cache.mirror(Append(len(tokens)))
        self.tokens.extend(tokens)
        self.columns.extend(len(tokens))

    def append_at(self, prompt: Sequence[int], positions: NDArray[np.int32]) -> None:
        """Records that a forward pass wrote the tokens of `prompt` at `positions` to the cache.

        `positions` ascend from the end of the sequence; the tokens between them are skipped.
        """
        for run in np.split(positions, np.flatnonzero(np.diff(positions) > 1) + 1):
            self.skip(prompt[len(self.tokens) : int(run[0])])
            self.append(prompt[int(run[0]) : int(run[-1]) + 1])

    def skip(self, tokens: Sequence[int]) -> None:
        """Appends `tokens` to the context without reading them."""
        if not tokens:
            return
        mirror(self.cache, Skip(len(tokens)))
        self.tokens.extend(tokens)
        self.columns.jump(len(self.tokens))

    def truncate(self, length: int) -> None:
        """Removes everything from position `length` on. Requires `keeps_all` or a snapshot at `length`."""
        mirror(self.cache, Truncate(length))
        self._snapshots = [each for each in self._snapshots if each.length <= length]
        newest = None
        if not self.keeps_all:
            found = next(each for each in self._snapshots if each.length == length)
            restore(self.cache, found)
            newest = found.newest
        self.columns.cut(length)
        for entry in leaves(self.cache):
            if not is_appending(entry):
                continue
            excess = columns_of(entry) - self.columns.count
            if excess and entry.trim(excess) != excess:
                raise InternalError(f"A {type(entry).__name__} did not trim {excess} tokens.")
        del self.tokens[length:]
        if self.head is not None and len(self.head.tokens) > length:
            self.head.truncate(length)
        if self.state is not None and self.state[0] >= length:
            self.state = newest

    def snapshot(self, wanted: Collection[int] = ()) -> None:
        """Takes a snapshot, so that `truncate` can return to the current length. No effect if `keeps_all`.

        Above the limits, snapshots are kept in this order: the new one, those at `wanted` lengths, the first
        one, which chats share, and the latest of the others.
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
        """Takes a snapshot at the current length without a limit; use `snapshot`."""
        mirror(self.cache, TakeSnapshot())
        here = len(self.tokens)
        others = [each for each in self._snapshots if each.length != here]
        self._snapshots = [*others, take_snapshot(self.cache, here, self.state)]

    def keep_snapshots(self, lengths: Sequence[int]) -> None:
        """Drops all snapshots except those at `lengths`."""
        mirror(self.cache, KeepSnapshots(tuple(lengths)))
        self._snapshots = [each for each in self._snapshots if each.length in lengths]

    def fit_snapshots(self, budget_bytes: int) -> None:
        """Drops the oldest snapshots until the sequence fits the budget; keeps the last one."""
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
        """A copy of the first `length` tokens. Same requirements as `truncate`."""
        other = CachedSequence(self._new_cache, self.kv)
        if not length:
            return other
        if isinstance(self.cache, MirroredCache):
            mirror(other.cache, Fork(self.cache.number, length))
        other.tokens, other.columns = self.tokens[:length], self.columns.fork(length)
        other.chat, other.loaded_columns = self.chat, min(self.loaded_columns, other.columns.count)
        other._snapshots = [each for each in self._snapshots if each.length <= length]
        newest = None
        if not self.keeps_all:
            found = next(each for each in self._snapshots if each.length == length)
            restore(other.cache, found)
            newest = found.newest
        for new, entry in zip(leaves(other.cache), leaves(self.cache), strict=True):
            if is_appending(new) and is_appending(entry):
                _copy_head(new, entry, other.columns.count)
        if self.head is not None:
            other.head = self.head.fork(min(length, len(self.head.tokens)))
        is_newest = self.state is not None and self.state[0] < length
        other.state = self.state if is_newest else newest
        other.head_source = self.head_source
        return other

    @property
    def can_select(self) -> bool:
        """Whether `selected` supports the cache: each layer has plain attention, and nothing was skipped."""
        return not self.skipped and not self.is_mirrored and all(map(is_plain, self.cache))

    def selected(self, positions: NDArray[np.int32]) -> CachedSequence:
        """A sequence of the same tokens whose cache has only the columns at `positions` (ascending).

        These stay as they were read, among all others and at their positions: later tokens attend to them as
        with a mask over the whole cache, and follow its last position whatever is skipped. So it is not the
        reading of the kept tokens alone; it serves one answer and no other prompt. Requires `can_select`.
        """
        other, columns = CachedSequence(self._new_cache, self.kv), Columns.at(positions)
        columns.jump(len(self.tokens))
        index = mx.array(positions)
        for number, entry in enumerate(self.cache):
            new: Any = other.cache[number]
            held = (entry.keys, entry.values)  # type: ignore[attr-defined]
            new.keys, new.values = tree_map(lambda part: mx.take(part, index, axis=-2), held)
            new.offset = len(positions)
            other.cache[number] = Positioned(new, columns)
        other.tokens, other.columns = list(self.tokens), columns.fork(len(self.tokens))
        if self.head is not None:
            other.head = self.head.fork(len(self.head.tokens))
        other.state, other.head_source = self.state, self.head_source
        other.settle()
        return other

    def settle(self) -> None:
        mx.eval([entry.state for entry in self.cache])

    def clear(self) -> None:
        self.cache = self._empty_cache()
        self.tokens = []
        self.columns = Columns()
        self._snapshots = []
        self.loaded_columns = self.ahead_columns = 0
        self.head = self.state = None
        self.head_source = ""
        mx.clear_cache()


def reusable(
    tokens: Sequence[int],
    columns: Columns,
    lengths: Sequence[int] | None,
    prompt: Sequence[int],
    *,
    whole: bool,
    held: KvQuantisation | None,
    wanted: KvQuantisation | None,
) -> int:
    """Length of the prefix of `prompt` that a cache of `tokens` can serve; at most len(prompt) − 1.

    `lengths`: those that the cache can return to; None: any. `whole`: at most up to the first skipped token.
    `held`: how the cache is quantised now; `wanted`: how the request quantises it.
    """
    limit = min(len(prompt) - 1, len(tokens))
    if whole and columns.whole is not None:
        limit = min(limit, columns.whole)
    if held != wanted:
        return 0
    shared = shared_prefix(tokens, prompt, limit)
    if shared < len(tokens) and lengths is not None:
        shared = max((length for length in lengths if length <= shared), default=0)
    return shared


def shared_prefix(one: Sequence[int], other: Sequence[int], limit: int | None = None) -> int:
    """Length of the common prefix, at most `limit`. Compares blocks: about 3 ms for 130,000 ids."""
    held = min(len(one), len(other)) if limit is None else limit
    for start in range(0, held, _BLOCK):
        end = min(start + _BLOCK, held)
        if list(one[start:end]) != list(other[start:end]):
            return next(at for at in range(start, end) if one[at] != other[at])
    return held


def _copy_head(new: KeysAndValues, entry: KeysAndValues, columns: int) -> None:
    """Copies the first `columns` columns of `entry` to the empty appending entry `new`."""
    if columns_of(entry):
        held = (entry.keys, entry.values)
        new.keys, new.values = tree_map(lambda part: part[..., :columns, :], held)
    new.offset = columns


# ---- prefix cache


class PrefixCache:
    """The cached sequences of several contexts, for prefix reuse. Worker's main thread.

    Chats with a common prefix share it: if truncating another chat's sequence to the prefix would lose more
    tokens than the prefix has, the prefix is copied, else the sequence is truncated. All sequences together
    stay within a budget; the least recently used ones are dropped first, the current one never. `new_cache()`
    returns an empty cache.
    """

    def __init__(self, new_cache: Callable[[], Cache]) -> None:
        self._new_cache = new_cache
        self._sequences = [CachedSequence(new_cache)]  # the current one is the last

    @property
    def current(self) -> CachedSequence:
        """The most recently taken sequence."""
        return self._sequences[-1]

    @property
    def nbytes(self) -> int:
        return sum(sequence.nbytes for sequence in self._sequences)

    @property
    def sequences(self) -> tuple[CachedSequence, ...]:
        """All sequences, the most recently used one last."""
        return tuple(self._sequences)

    def __len__(self) -> int:
        return len(self._sequences)

    def take(
        self, prompt: Sequence[int], *, whole: bool = False, kv: KvQuantisation | None = None
    ) -> CachedSequence:
        """Makes the best sequence for `prompt` the current one and returns it; call its `reuse` next.

        `whole` as in `CachedSequence.reuse`. The sequence is quantised as in `kv`. Among equal prefixes, one
        without gaps is preferred.
        """
        shares = [sequence.shared_as(kv, prompt, whole=whole) for sequence in self._sequences]
        shared, best = max(zip(shares, self._sequences), key=lambda found: (found[0], -found[1].skipped))
        if len(best.tokens) - shared <= shared or not best.tokens:
            self._sequences.remove(best)
        else:
            best = best.fork(shared) if shared else CachedSequence(self._new_cache)
        best.follow(kv)
        self._sequences.append(best)
        return best

    def add(self, sequence: CachedSequence) -> None:
        self._sequences.append(sequence)

    def fit(self, budget_bytes: int) -> None:
        """Drops the least recently used sequences until all fit the budget.

        If the current sequence alone exceeds it, its older snapshots are dropped.
        """
        while len(self._sequences) > 1 and (self.nbytes > budget_bytes or not self._sequences[0].tokens):
            self._sequences.pop(0)
            mx.clear_cache()
        if self.nbytes > budget_bytes:
            self.current.fit_snapshots(budget_bytes)

    def clear(self) -> None:
        self._sequences = [CachedSequence(self._new_cache)]
        mx.clear_cache()
