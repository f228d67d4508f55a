"""Reads a prompt, all of it or chosen positions, through the model in chunks.

All but the last token are read here; the last one belongs to the first decode step, whose logits give the
first token (as in mlx-lm). A caller may stop between two chunks: the sequence then holds exactly the chunks
that were read. Kept tokens are read as if they were the whole text, by stock forwards, so that every
architecture supports it. Worker's main thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import mlx.core as mx
import numpy as np
from msgspec import Struct

from core.kv.cached_sequence import CachedSequence
from core.models.parts import StateReceiver

Positions = np.ndarray[Any, Any]


class ReadProgress(Struct, frozen=True):
    """`done_tokens` of `total_tokens` are in the cache."""

    done_tokens: int
    total_tokens: int


def read_prompt(
    model: Callable[..., Any],
    sequence: CachedSequence,
    prompt: Sequence[int],
    *,
    chunk_tokens: int,
    snapshots: Sequence[int] = (),
    states: StateReceiver | None = None,
) -> Iterator[ReadProgress]:
    """Bring `sequence` from a prefix of `prompt` to all of it but the last token.

    Yields before the first chunk and after each. A chunk ends at each of the lengths `snapshots` (ascending),
    where the sequence takes a snapshot. `states` receives the hidden states.
    """
    if states is not None:
        states.begin(sequence, prompt)
    total_tokens = len(prompt) - 1 - sequence.skipped
    if len(sequence.tokens) in snapshots:
        sequence.snapshot(snapshots)
    yield ReadProgress(sequence.columns.count, total_tokens)
    while len(sequence.tokens) < len(prompt) - 1:
        at = len(sequence.tokens)
        ends = [length for length in snapshots if at < length] + [len(prompt) - 1]
        end = min(at + chunk_tokens, *ends)
        _read_chunk(model, sequence, prompt, np.arange(at, end, dtype=np.int32), snapshots, states)
        yield ReadProgress(sequence.columns.count, total_tokens)


def read_kept(
    model: Callable[..., Any],
    sequence: CachedSequence,
    prompt: Sequence[int],
    kept: Positions,
    *,
    chunk_tokens: int,
    snapshots: Sequence[int] = (),
    states: StateReceiver | None = None,
) -> Iterator[ReadProgress]:
    """Like `read_prompt`, but reads only the positions `kept`; the sequence knows the others as skipped.

    `kept` (ascending int32) begins at or after the sequence's end and ends with the next-to-last position of
    `prompt`. Snapshots are taken at those of the lengths `snapshots` that follow a kept position.
    """
    if states is not None:
        states.begin(sequence, prompt)
    total_tokens = sequence.columns.count + len(kept)
    yield ReadProgress(sequence.columns.count, total_tokens)
    for chunk in _chunks(kept, chunk_tokens, snapshots):
        _read_chunk(model, sequence, prompt, chunk, snapshots, states)
        yield ReadProgress(sequence.columns.count, total_tokens)


def _read_chunk(
    model: Callable[..., Any],
    sequence: CachedSequence,
    prompt: Sequence[int],
    positions: Positions,
    snapshots: Sequence[int],
    states: StateReceiver | None,
) -> None:
    """Read the tokens of `prompt` at `positions`; take a snapshot if they end at one of `snapshots`."""
    ids = [prompt[at] for at in positions]
    # The logits are not evaluated, so MLX never computes the output layer.
    block, found = mx.array(ids)[None], None
    if states is None:
        model(block, cache=sequence.cache)
    else:
        _, found = states.read(block, sequence.cache)
    sequence.settle()
    sequence.append_at(prompt, positions)
    if states is not None and found is not None:
        states.receive(positions.tolist(), ids, found)
    if len(sequence.tokens) in snapshots:
        sequence.snapshot(snapshots)
    mx.clear_cache()


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
