"""Reads a prompt, all of it or chosen positions, through the model in chunks.

All but the last token are read here; the last one belongs to the first decode step, whose logits give the
first token (as in mlx-lm). A caller may stop between two chunks: the sequence then holds exactly the chunks
that were read. Kept tokens are read as if they were the whole text, by stock forwards, so that every
architecture supports it. Worker's main thread.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, nullcontext
from itertools import pairwise
from typing import Any

import mlx.core as mx
import numpy as np
from msgspec import Struct

from core.decoding.answer import ImageRows, Pace
from core.kv.cached_sequence import CachedSequence
from core.models.parts import StateReceiver

Positions = np.ndarray[Any, Any]

# Target time of the parts of a chunk, after each of which progress is reported.
_PART_S = 0.5


class ReadProgress(Struct, frozen=True):
    """`done_tokens` of `total_tokens` are in the cache. `part_tokens`: how far the next chunk is."""

    done_tokens: int
    total_tokens: int
    part_tokens: float = 0.0


ReadSteps = Generator[ReadProgress, None, None]


def read_prompt(
    model: Callable[..., Any],
    sequence: CachedSequence,
    prompt: Sequence[int],
    *,
    chunk_tokens: int,
    snapshots: Sequence[int] = (),
    states: StateReceiver | None = None,
    sight: ImageRows | None = None,
    clock: Callable[[], float] | None = None,
) -> ReadSteps:
    """Bring `sequence` from a prefix of `prompt` to all of it but the last token.

    Yields before the first chunk and after each, and with `clock` (seconds) twice a second within a
    chunk, which is read to its end if the iterator is closed then. A chunk ends at each of the lengths
    `snapshots` (ascending), where the sequence takes a snapshot. `states` receives the hidden states.
    `sight`: the images of the prompt.
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
        if sight is not None:
            end = sight.end(prompt, at, end)
        chunk = np.arange(at, end, dtype=np.int32)
        yield from _read_chunk(model, sequence, prompt, chunk, total_tokens, snapshots, states, sight, clock)


def read_kept(
    model: Callable[..., Any],
    sequence: CachedSequence,
    prompt: Sequence[int],
    kept: Positions,
    *,
    chunk_tokens: int,
    snapshots: Sequence[int] = (),
    states: StateReceiver | None = None,
    sight: ImageRows | None = None,
    clock: Callable[[], float] | None = None,
) -> ReadSteps:
    """Like `read_prompt`, but reads only the positions `kept`; the sequence records the others as skipped.

    `kept` (ascending int32) begins at or after the sequence's end and ends with the next-to-last position of
    `prompt`. Snapshots are taken at those of the lengths `snapshots` that follow a kept position.
    """
    if states is not None:
        states.begin(sequence, prompt)
    total_tokens = sequence.columns.count + len(kept)
    yield ReadProgress(sequence.columns.count, total_tokens)
    chunks = _chunks(kept, chunk_tokens, snapshots)
    for chunk in chunks if sight is None else _undivided(chunks, prompt, sight):
        yield from _read_chunk(model, sequence, prompt, chunk, total_tokens, snapshots, states, sight, clock)


def timed_steps(steps: ReadSteps, pace: Pace | None, clock: Callable[[], float] | None) -> ReadSteps:
    """`steps`, which are closed at the end; `pace` receives the time of each chunk."""
    before, chunk_s = None, 0.0
    with closing(steps):
        started = clock() if clock else 0.0
        for step in steps:
            chunk_s += clock() - started if clock else 0.0
            if before is not None and step.done_tokens > before and pace and clock:
                pace.timed(step.done_tokens - before, before, chunk_s)
            if not step.part_tokens:
                before, chunk_s = step.done_tokens, 0.0
            yield step
            started = clock() if clock else 0.0  # without the caller's time between steps


def _read_chunk(
    model: Callable[..., Any],
    sequence: CachedSequence,
    prompt: Sequence[int],
    positions: Positions,
    total_tokens: int,
    snapshots: Sequence[int],
    states: StateReceiver | None,
    sight: ImageRows | None,
    clock: Callable[[], float] | None,
) -> ReadSteps:
    """Read the tokens of `prompt` at `positions`; take a snapshot if they end at one of `snapshots`."""
    ids = [prompt[at] for at in positions]
    # The logits are not evaluated, so MLX never computes the output layer.
    found, is_closed = None, False
    with nullcontext((mx.array(ids)[None], {})) if sight is None else sight.reading(sequence, ids) as passed:
        block, given = passed
        if states is None:
            model(block, cache=sequence.cache, **given)
        else:
            _, found = states.read(block, sequence.cache, **given)
    if clock is not None:
        try:
            for share in _evaluated(sequence, clock):
                yield ReadProgress(sequence.columns.count, total_tokens, share * len(ids))
        except GeneratorExit:  # the cache must not hold half a chunk
            is_closed = True
    sequence.settle()
    sequence.append_at(prompt, positions)
    if states is not None and found is not None:
        states.receive(positions.tolist(), ids, found)
    if len(sequence.tokens) in snapshots:
        sequence.snapshot(snapshots)
    mx.clear_cache()
    if not is_closed:
        yield ReadProgress(sequence.columns.count, total_tokens)


def _evaluated(sequence: CachedSequence, clock: Callable[[], float]) -> Iterator[float]:
    """Evaluate the cache from the first layer to the last; yields the share that is done.

    The layers' computation is the same as in one evaluation. Waiting for a layer costs a fraction of a
    millisecond, so as many are evaluated at a time as take about `_PART_S`.
    """
    states = [entry.state for entry in sequence.cache]
    done, last, started = 0, len(states) - 1, clock()
    while done < last:
        each_s = (clock() - started) / done if done else 0.0
        count = max(1, int(_PART_S / each_s)) if each_s else 1
        mx.eval(states[done : done + count + 1])  # a layer's keys depend on the layers before it
        done += count
        if done < last:
            yield done / last


def _undivided(chunks: Sequence[Positions], prompt: Sequence[int], sight: ImageRows) -> list[Positions]:
    """`chunks` with images undivided where that is needed. All rows of an image are kept."""
    found: list[Positions] = []
    left = np.concatenate(chunks)
    for chunk in chunks:
        if not len(left) or chunk[-1] < left[0]:
            continue
        start, last = int(left[0]), int(chunk[-1]) + 1
        cut = int(np.searchsorted(left, sight.end(prompt, start, last)))
        found.append(left[:cut])
        left = left[cut:]
    return [*found, left] if len(left) else found


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
