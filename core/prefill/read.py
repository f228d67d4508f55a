"""Read: a prompt, all of it or chosen positions, through the model in chunks that can be cancelled.

All but the last token are read here; the last one belongs to the first decode step, whose
logits give the first token (as in mlx-lm). Between two chunks the caller may stop listening:
the sequence then holds exactly the chunks that were read.

A chunk with gaps stands at its true positions by two hooks that are taken off again: rotary
modules turn each row to its own position, and windows count positions, not columns. Attention
over the whole past needs no mask of its own, since columns are in order of position, unless
skipped tokens are inserted between others; recurrent state simply advances on what is read. That a model
goes by position and nothing else is for `core.prefill.gap_probe` to find out. Worker's main thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import mlx.core as mx
import numpy as np
from msgspec import Struct

from core.errors import InternalError
from core.kv.cached_sequence import CachedSequence
from core.kv.mirrored import MirroredCache, Placed
from core.kv.mlx_lm_caches import columns_of, kind_of, leaves, masked, window_columns
from core.kv.positions import window_mask
from core.models.rope import Rotation, Steps, standing

Positions = np.ndarray[Any, Any]


class ReadProgress(Struct, frozen=True):
    """`done_tokens` of `total_tokens` are in the cache; `seconds_left` None before the first chunk."""

    done_tokens: int
    total_tokens: int
    seconds_left: float | None


def read_prompt(
    model: Callable[..., Any],
    sequence: CachedSequence,
    prompt: Sequence[int],
    *,
    chunk_tokens: int,
    snapshots: Sequence[int] = (),
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[ReadProgress]:
    """Bring `sequence` from a prefix of `prompt` to all of it but the last token.

    Yields before the first chunk and after each. A chunk ends at each of the lengths `snapshots` (ascending),
    where the sequence takes a snapshot.
    """
    estimate = _Estimate(len(prompt) - 1 - sequence.skipped, sequence.columns.count, clock)
    if len(sequence.tokens) in snapshots:
        sequence.snapshot(snapshots)
    yield estimate.progress(sequence.columns.count)
    while len(sequence.tokens) < len(prompt) - 1:
        at = len(sequence.tokens)
        ends = [length for length in snapshots if at < length] + [len(prompt) - 1]
        chunk = list(prompt[at : min(at + chunk_tokens, *ends)])
        # Nobody asks for these logits, so MLX never computes the output projection.
        model(mx.array(chunk)[None], cache=sequence.cache)
        sequence.settle()
        sequence.append(chunk)
        if len(sequence.tokens) in snapshots:
            sequence.snapshot(snapshots)
        mx.clear_cache()
        yield estimate.progress(sequence.columns.count)


def read_kept(
    model: Callable[..., Any],
    sequence: CachedSequence,
    prompt: Sequence[int],
    kept: Positions,
    found: Sequence[Rotation],
    *,
    chunk_tokens: int,
    snapshots: Sequence[int] = (),
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[ReadProgress]:
    """Like `read_prompt`, but only the positions `kept` are read; the others are known and skipped.

    Where the sequence is closed up, the kept tokens are read as if they were the whole text. Snapshots are
    taken at those of the lengths `snapshots` that follow a kept position.

    `kept` (ascending int32) begins at or after the sequence's end and has the next-to-last position
    of `prompt` as its last. `found` is what `rotations(model)` gave.
    """
    estimate = _Estimate(sequence.columns.count + len(kept), sequence.columns.count, clock)
    yield estimate.progress(sequence.columns.count)
    for chunk in _chunks(kept, chunk_tokens, snapshots):
        ids = mx.array([prompt[i] for i in chunk])[None]
        if sequence.closed_up:
            model(ids, cache=sequence.cache)
        else:
            sequence.skip(prompt[len(sequence.tokens) : int(chunk[0])])
            with placed(sequence, chunk, found):
                model(ids, cache=sequence.cache)
        sequence.settle()
        sequence.append_at(prompt, chunk)
        if len(sequence.tokens) in snapshots:
            sequence.snapshot(snapshots)
        mx.clear_cache()
        yield estimate.progress(sequence.columns.count)


def read_skipped(
    model: Callable[..., Any],
    sequence: CachedSequence,
    skipped: Positions,
    found: Sequence[Rotation],
    *,
    chunk_tokens: int,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[ReadProgress]:
    """Insert tokens that `sequence` skipped, at the positions `skipped` (ascending int32).

    Each sees what is before it and has been read by then. Only where `sequence.keeps_all`, and where
    `core.prefill.gap_probe.why_no_insertion` says nothing against it.
    """
    estimate = _Estimate(sequence.columns.count + len(skipped), sequence.columns.count, clock)
    yield estimate.progress(sequence.columns.count)
    for chunk in _chunks(skipped, chunk_tokens):
        try:
            with placed(sequence, chunk, found):
                model(mx.array([sequence.tokens[i] for i in chunk])[None], cache=sequence.cache)
            sequence.settle()
        except BaseException:
            sequence.truncate(len(sequence.tokens))  # some layers hold the chunk, and others do not
            raise
        sequence.insert(chunk)
        mx.clear_cache()
        yield estimate.progress(sequence.columns.count)


@contextmanager
def placed(sequence: CachedSequence, chunk: Positions, found: Sequence[Rotation]) -> Iterator[None]:
    """While open, the rows of a forward over `sequence` stand at `chunk`, and see what is before them.

    Its first position is where the sequence ends, or all are of skipped tokens. `found` is what
    `rotations(model)` gave. Raises `InternalError` if the model rotates and did not do so here.
    """
    if isinstance(sequence.cache, MirroredCache):
        sequence.cache.mirror(Placed(tuple(chunk.tolist())))
    steps = Steps(chunk - sequence.columns.next)  # entries say that the next token stands at the end
    with standing(found, steps), masked(_masks(sequence, chunk)):
        yield
        if found and not steps.rotated:
            raise InternalError("The model has rotary modules and called none of them.")


def _chunks(kept: Positions, chunk_tokens: int, ends: Sequence[int] = ()) -> list[Positions]:
    """`kept` in chunks, one of which ends before each position of `ends` where that is possible.

    No chunk has one token: a window handles single tokens in another way.
    """
    cuts = [int(np.searchsorted(kept, end)) for end in ends]
    cuts = [cut for before, cut in pairwise([0, *cuts]) if cut - before > 1 and len(kept) - cut > 1]
    found: list[Positions] = []
    for part in np.split(kept, cuts):
        chunks = np.split(part, range(chunk_tokens, len(part), chunk_tokens))
        if len(chunks) > 1 and len(chunks[-1]) == 1:
            chunks[-2:] = [np.concatenate(chunks[-2:])]
        found += chunks
    return found


def _masks(sequence: CachedSequence, chunk: Positions) -> list[tuple[Any, Callable[..., Any]]]:
    """Masks by position for all entries that could have a window."""
    return [
        (e, _by_position(e, sequence, chunk)) for e in leaves(sequence.cache) if kind_of(e) != "recurrent"
    ]


def _by_position(entry: Any, sequence: CachedSequence, chunk: Positions) -> Callable[..., Any]:
    own = entry.make_mask

    def make_mask(width: int, window_size: int | None = None, return_array: bool = False) -> Any:
        is_window = kind_of(entry) == "window"
        if window_size is None and not is_window and chunk[0] >= sequence.columns.next:
            return own(width, window_size=None, return_array=return_array)
        past = window_columns(entry) if is_window else columns_of(entry)
        held = sequence.columns.count
        columns = np.append(sequence.columns.places(held - past, held), chunk)
        return window_mask(chunk, columns, window_size or (entry.max_size if is_window else None))

    return make_mask


class _Estimate:
    """Progress and how long the rest takes, at the pace so far."""

    def __init__(self, total_tokens: int, started_at: int, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._total = total_tokens
        self._started_at = started_at
        self._started_s = clock()

    def progress(self, done: int) -> ReadProgress:
        """`done` tokens are in the cache."""
        if done == self._started_at:
            return ReadProgress(done, self._total, None)
        rate = (done - self._started_at) / (self._clock() - self._started_s)
        return ReadProgress(done, self._total, (self._total - done) / rate)
