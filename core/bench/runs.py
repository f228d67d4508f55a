"""One measured answer, by Draftlight or by mlx-lm, both timed the same way.

Decode speed is the tokens after the first step over the time from its end to the last token's,
so that neither prefill nor a lucky first draft enters it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from core.events import Effective, Event, Finished, Generate, Message, Stats, Token
from core.settings import Settings

if TYPE_CHECKING:  # importing it loads MLX, which a bench must prepare first
    from core.engine.engine import Engine


class BenchRun(Struct, frozen=True):
    """One answer. `stats` and `effective` are None for mlx-lm's."""

    tokens: list[int]
    ttft_s: float
    tokens_per_s: float
    stats: Stats | None = None
    effective: Effective | None = None


def draftlight(engine: Engine, ids: Sequence[int], settings: Settings, *, forget: bool = True) -> BenchRun:
    """An answer by the engine.

    It starts from nothing, for a table that kept the last run's answer would know this one; with
    `forget` off it goes on with what the conversation left.
    """
    if forget:
        engine.forget(tables=True)
    return _collect(engine.generate_ids(ids, settings))


def draftlight_chat(engine: Engine, messages: tuple[Message, ...], settings: Settings) -> BenchRun:
    """Like `draftlight` from nothing, but from messages, so that the engine knows document from question."""
    engine.forget(tables=True)
    return _collect(engine.generate(Generate("bench", messages, settings)))


def _collect(events: Iterable[Event]) -> BenchRun:
    tokens = []
    end: Finished | None = None
    for event in events:
        if isinstance(event, Token):
            tokens.append(event.id)
        elif isinstance(event, Finished):
            end = event
    assert end is not None
    return BenchRun(tokens, end.stats.ttft_s, end.stats.tokens_per_s, end.stats, end.effective)


def mlx_lm(engine: Engine, ids: Sequence[int], max_tokens: int, **options: Any) -> BenchRun:
    """An answer by `mlx_lm.stream_generate` on the engine's own model object.

    `options` are its keyword arguments (`draft_model`, `num_draft_tokens`). Its speculative path
    yields a whole round at one time, so the first round counts as its first step.
    """
    from mlx_lm import stream_generate

    loaded = engine.loaded
    started = time.perf_counter()
    tokens, times = [], []
    for response in stream_generate(
        loaded.model, loaded.tokenizer, list(ids), max_tokens=max_tokens, **options
    ):
        tokens.append(int(response.token))
        times.append(time.perf_counter() - started)
    elapsed = times[-1] - times[0]
    return BenchRun(tokens, times[0], (len(tokens) - 1) / elapsed if elapsed > 0 else 0.0)


def joined(runs: Sequence[BenchRun]) -> BenchRun:
    """Several answers as one: all tokens, the first one's TTFT, speed over all decoding."""
    tokens = [token for run in runs for token in run.tokens]
    with_time = [run for run in runs if run.tokens_per_s]
    timed = sum(len(run.tokens) - 1 for run in with_time)
    elapsed = sum((len(run.tokens) - 1) / run.tokens_per_s for run in with_time)
    stats = [run.stats for run in runs if run.stats is not None]
    total: Stats | None = None
    if stats:
        tested, steps = sum(each.tested for each in stats), sum(each.steps for each in stats)
        total = replace(
            stats[-1],
            acceptance=sum(each.accepted for each in stats) / tested if tested else 0.0,
            mean_per_step=sum(each.tokens for each in stats) / steps if steps else 0.0,
            positions=(),
        )
    speed = timed / elapsed if elapsed else 0.0
    return BenchRun(tokens, runs[0].ttft_s, speed, total, runs[-1].effective)


def first_difference(one: Sequence[int], other: Sequence[int]) -> int | None:
    """The first index at which two answers differ, one being longer included; None if equal."""
    for index, (a, b) in enumerate(zip(one, other)):
        if a != b:
            return index
    return None if len(one) == len(other) else min(len(one), len(other))
