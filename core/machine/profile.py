"""MachineProfile: trials and measurements of the loaded model on this machine.

Exact block widths (`widths`), T(w), the pace of prefill, and whether trees and splits are exact. Most results
are saved (`core.machine`); the others last as long as the model. Trees, T(w) and the pace are measured only
by `some`, `try_out` and `costs_anew`, so no answer waits for them. A measurement that failed or was
unreliable is discarded and repeated later. Engine's thread.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import accumulate, combinations
from statistics import median
from typing import Generic, TypeVar, cast

import mlx.core as mx
from msgspec import Struct
from msgspec.structs import replace

from core.events import ModelEntry, ModelInfo, ReadingPace
from core.kv.mlx_lm_caches import Cache, LanguageModel
from core.machine.compare import ExactWidths, random_ids
from core.machine.exactness import machine_key
from core.machine.faults import surface
from core.machine.readings import TRIALS, ReadingTrial, try_readings
from core.machine.trials import (
    NOT_TRIED,
    VERDICTS,
    Verdict,
    is_tried,
    load_verdict,
    try_splits,
    try_trees,
    verdict_key,
)
from core.machine.width_cost import CONTEXTS, COSTS, CostProfile, LiveCost, load_costs, measure
from core.models.loader import LoadedModel
from core.prefill.plan import Preference, preference_by_size
from core.system.files import JsonStore

T = TypeVar("T")

# ---- pace: predicted time of a dense prefill, from timed prompt chunks
#
# seconds = tokens · (a + b · context); b is 0 for recurrent models. b is the median slope between two chunks
# and a the median of what remains (Theil–Sen), so that chunks timed under load or across sleep do not count
# while they are the minority. Without enough chunks the prediction is None: no decision is based on a guess.

_MOST_CHUNKS = 24
# In shorter chunks the fixed cost of a forward pass dominates.
_LEAST_TOKENS = 64
# Minimum tokens in all chunks: compilation or paging during a single short chunk, extrapolated to a long
# prompt, would predict hours.
_ENOUGH_TOKENS = 256
# Steps from which on the gain of a head is stated.
_ENOUGH_STEPS = 64
# Chunks of a measurement, short enough not to delay a request.
PROBED_TOKENS = 256
_PROBED_CHUNKS = 3
# Largest ratio of the two times of a measured chunk; above it the machine is busy.
_AGREES = 1.3
# With fewer chunks, or only with shorter contexts, b is limited: attention may not cost more than everything
# else before a context of this length.
_FEW, _EARLY_TOKENS = 4, 4096


class Chunk(Struct, frozen=True, array_like=True):
    """`tokens` after `context_tokens` took `seconds`."""

    tokens: int
    context_tokens: int
    seconds: float


class Pace(Struct, frozen=True):
    """The latest timed chunks of one (model, machine), oldest first; accepted guesses and steps by the source
    of a head of the model in `folder`.
    """

    key: str
    chunks: tuple[Chunk, ...] = ()
    folder: str = ""
    heads: dict[str, tuple[int, int]] = {}

    def read(self, tokens: int, context_tokens: int, seconds: float) -> Pace:
        """This pace with one more chunk; unchanged if the chunk is too short."""
        if tokens < _LEAST_TOKENS or seconds <= 0:
            return self
        chunks = (*self.chunks, Chunk(tokens, context_tokens, seconds))[-_MOST_CHUNKS:]
        return replace(self, chunks=chunks)

    def seconds(self, tokens: int, context_tokens: int = 0) -> float | None:
        """Predicted seconds for `tokens` after `context_tokens`; None until enough chunks were timed."""
        fitted = self.fitted()
        return fitted.seconds(tokens, context_tokens) if fitted else None

    def fitted(self) -> ReadingPace | None:
        """The pace that fits the chunks; None until enough were timed."""
        if sum(chunk.tokens for chunk in self.chunks) < _ENOUGH_TOKENS:
            return None
        timed = [(c.context_tokens + c.tokens / 2, c.seconds / c.tokens, c.tokens) for c in self.chunks]
        slopes = [
            (late - early) / (right - left)
            for (left, early, _), (right, late, _) in combinations(timed, 2)
            if left != right
        ]
        b = max(0.0, median(slopes)) if slopes else 0.0
        a = max(0.0, _median((token_s - b * context, n) for context, token_s, n in timed))
        farthest = max(chunk.context_tokens + chunk.tokens for chunk in self.chunks)
        if b * _EARLY_TOKENS > a and (len(timed) < _FEW or farthest < _EARLY_TOKENS):
            # Later chunks were slow because of their context or because of another program; for a long prompt
            # the predictions differ by a factor of ten.
            a = _median((token_s / (1 + context / _EARLY_TOKENS), n) for context, token_s, n in timed)
            b = a / _EARLY_TOKENS
        return ReadingPace(a, b)


def _median(weighed: Iterable[tuple[float, float]]) -> float:
    """The lower median of values with weights."""
    ordered = sorted(weighed)
    half = sum(weight for _, weight in ordered) / 2
    reached = accumulate(weight for _, weight in ordered)
    return next(value for (value, _), weight in zip(ordered, reached) if weight >= half)


def measure_pace(
    pace: Pace,
    model: LanguageModel,
    new_cache: Callable[[], Cache],
    info: ModelInfo,
    clock: Callable[[], float] = time.perf_counter,
) -> Generator[None, None, Pace]:
    """Reads one chunk of a random prompt per `next()`, each twice; returns `pace` with the faster times.

    The first chunk is left out because it may compile kernels. If the two times of a chunk disagree, the
    machine is busy and `pace` is returned unchanged.
    """
    rng = random.Random(0)
    count = min(_PROBED_CHUNKS, info.context_tokens // PROBED_TOKENS)
    ids = [random_ids(rng, PROBED_TOKENS) for _ in range(count)]
    rounds: list[list[float]] = []
    for _ in range(2):
        cache = new_cache()
        rounds.append([])
        for chunk in ids:
            started = clock()
            # Logits are not evaluated, as in a prefill.
            model(mx.array(chunk)[None], cache=cache)
            mx.eval([entry.state for entry in cache])
            rounds[-1].append(clock() - started)
            yield
    mx.clear_cache()
    times = list(zip(*rounds, strict=True))[1:]
    if any(max(both) > _AGREES * min(both) for both in times):
        return pace
    for number, both in enumerate(times, 1):
        pace = pace.read(PROBED_TOKENS, number * PROBED_TOKENS, min(both))
    return pace


def with_gains(entries: Iterable[ModelEntry]) -> Iterator[ModelEntry]:
    """`entries` with what each of their heads brought, once it drafted in enough steps."""
    counted = {(pace.folder, source): use for pace in PACES.all() for source, use in pace.heads.items()}
    for entry in entries:
        uses = [counted.get((entry.path, head.source), (0, 0)) for head in entry.heads]
        gains = [tokens / steps if steps >= _ENOUGH_STEPS else 0.0 for tokens, steps in uses]
        yield replace(entry, heads=tuple(replace(h, gain=g) for h, g in zip(entry.heads, gains)))


# The version changes with the meaning of the figures.
PACES = JsonStore("pace-v2", Pace)


# ---- all measurements of a model

# After a failure; then a measurement is not made again in this run.
_WAITS_S = (60.0, 240.0)


class Measurement(Generic[T]):
    """A measurement in pieces, made again after `_WAITS_S` if it fails. `clock` gives seconds.

    `is_missing()`: whether it is needed. `begin()` starts it. `keep(result)` stores the result; returns
    False if the result is unreliable.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        is_missing: Callable[[], bool],
        begin: Callable[[], Generator[None, None, T]],
        keep: Callable[[T], bool],
    ) -> None:
        self._clock = clock
        self._is_missing = is_missing
        self._begin = begin
        self._keep = keep
        self._steps: Generator[None, None, T] | None = None
        self.forget_failures()

    def forget_failures(self) -> None:
        self._waits_s, self._next_s = [*_WAITS_S], -math.inf

    @property
    def due_s(self) -> float | None:
        """Seconds until the next try; None after no failure or too many."""
        return max(0.0, self._next_s - self._clock()) if math.isfinite(self._next_s) else None

    @property
    def runs(self) -> bool:
        return self._steps is not None

    def some(self) -> bool:
        """Runs the next piece; returns whether there was one."""
        if self._steps is None:
            if not self._is_missing() or self._clock() < self._next_s:
                return False
            self._steps = self._begin()
        try:
            try:
                next(self._steps)
            finally:
                surface()  # a fault is this piece's, and its result is not kept
        except StopIteration as done:
            self._steps = None
            if self._keep(done.value):
                self.forget_failures()
            else:
                self._failed()
        except Exception:
            self._steps = None
            self._failed()
            raise
        return True

    def _failed(self) -> None:
        self._next_s = self._clock() + self._waits_s.pop(0) if self._waits_s else math.inf


class MachineProfile:
    """Measurements of one loaded model. `clock` gives seconds, for failed measurements."""

    def __init__(self, loaded: LoadedModel, clock: Callable[[], float] = time.monotonic) -> None:
        self._loaded = loaded
        self.widths = ExactWidths(loaded)
        self._costs: CostProfile | None = None
        self._verdict: Verdict | None = None
        self._asked_disk = False
        self._pace: Pace | None = None
        self._timed = False  # whether the pace holds more than the disk
        self._trials = Measurement(clock, self._needs_verdict, self._try, self._keep_verdict)
        self._pacing = Measurement(clock, self._needs_pace, self._measure_pace, self._keep_measured_pace)
        self._measuring = Measurement(clock, self._needs_costs, self._measure, self._keep_costs)
        self._readings: ReadingTrial | None = None
        self._asked_for_readings = False
        self._reading = Measurement(clock, self._needs_readings, self._try_readings, self._keep_readings)

    def costs_anew(self, contexts: Sequence[int] = CONTEXTS) -> CostProfile:
        """Measures T(w) now, also if there is a profile (some seconds); whether of trees is tried before.

        If the rounds never agree, the profile says so in `doubt` and is not kept.
        """
        self.try_out()
        for _ in range(1 + len(_WAITS_S)):
            found = _finished(self._measure(contexts))
            if self._keep_costs(found):
                self._measuring.forget_failures()
                break
        return found

    def try_out(self) -> Verdict:
        """The verdict on trees and drafts, tried now if there is none (some seconds)."""
        self._trials.forget_failures()
        while self._trials.some():
            pass
        return cast(Verdict, self._verdict)

    def some(self) -> bool:
        """Runs the next piece of a measurement that is missing; returns whether there was one.

        The pace comes before the costs: without it a document that could be read whole in time is read
        sparsely, while T(w) has a usable guess.
        """
        return self._trials.some() or self._pacing.some() or self._measuring.some() or self.widths.some()

    def some_readings(self) -> bool:
        """Runs the next piece of the trial of readings if that is missing; returns whether there was one."""
        return self._reading.some()

    def readings_anew(self) -> ReadingTrial:
        """Tries the ways of reading now, also if that was done before."""
        self._keep_readings(_finished(self._try_readings()))
        return cast(ReadingTrial, self._readings)

    @property
    def preference(self) -> Preference:
        """What the model answers better from; by its size before that was tried."""
        info, held = self._loaded.info, self._held_readings()
        return preference_by_size(info.parameters) if held is None else held.preference(info)

    def due_s(self) -> float | None:
        """Seconds until a measurement that failed is made again; None if none is waiting."""
        due = (each.due_s for each in (self._measuring, self._pacing, self._trials))
        return min((each for each in due if each is not None), default=None)

    def _needs_verdict(self) -> bool:
        return self._held_verdict() is None

    def _keep_verdict(self, found: Verdict) -> bool:
        self._verdict = found
        self._loaded.settle()
        VERDICTS.save(found)
        return True

    def _needs_costs(self) -> bool:
        return self._held_costs() is None

    def _keep_costs(self, found: CostProfile) -> bool:
        if found.doubt:
            return False
        self._costs = found
        COSTS.save(found)
        return True

    def _needs_readings(self) -> bool:
        return self._held_readings() is None and not self._loaded.info.machines

    def _try_readings(self) -> Generator[None, None, ReadingTrial]:
        return try_readings(self._loaded, machine_key(self._loaded.info))

    def _keep_readings(self, found: ReadingTrial) -> bool:
        self._readings, self._asked_for_readings = found, True
        TRIALS.save(found)
        return True

    def _held_readings(self) -> ReadingTrial | None:
        if not self._asked_for_readings:
            self._asked_for_readings = True
            self._readings = TRIALS.load(machine_key(self._loaded.info))
        return self._readings

    def _needs_pace(self) -> bool:
        return not self._held_pace().chunks and self._loaded.info.context_tokens >= PROBED_TOKENS

    def _keep_measured_pace(self, found: Pace) -> bool:
        if found.chunks and not self._held_pace().chunks:  # an answer may have timed its reading meanwhile
            self._pace = replace(self._held_pace(), chunks=found.chunks)
            PACES.save(self._pace)
        return bool(found.chunks)

    @property
    def pace(self) -> ReadingPace | None:
        """The pace of prefill; None before it was measured."""
        return self._held_pace().fitted()

    def dense_s(self, tokens: int, context_tokens: int = 0) -> float | None:
        """Predicted seconds for reading `tokens` after `context_tokens`; None before it was measured."""
        return self._held_pace().seconds(tokens, context_tokens)

    def timed(self, tokens: int, context_tokens: int, seconds: float) -> None:
        """Records the time of a prompt chunk of `tokens` after `context_tokens`."""
        before = self._held_pace()
        self._pace = before.read(tokens, context_tokens, seconds)
        self._timed |= self._pace is not before

    def count_head(self, source: str, tokens: int, steps: int) -> None:
        """Records the accepted guesses of the head `source` in an answer of `steps`."""
        before = self._held_pace()
        known = before.heads.get(source, (0, 0))
        counted = before.heads | {source: (known[0] + tokens, known[1] + steps)}
        self._pace = replace(before, folder=self._loaded.info.path, heads=counted)
        self._timed = True

    def keep_pace(self) -> None:
        """Saves the pace if chunks were timed or a head was counted since it was last saved."""
        if self._timed:
            self._timed = False
            PACES.save(self._held_pace())

    def cost(self, context_tokens: int) -> LiveCost:
        """T(w) at that context length; a guess until it was measured."""
        held = self._held_costs()
        if held is None or not held.contexts:
            return LiveCost()
        return LiveCost(held.at(context_tokens), held.tree_factor(context_tokens))

    def why_no_trees(self) -> str:
        """Why trees are not verified, in words; empty if they are."""
        verdict = self._held_verdict()
        return NOT_TRIED if verdict is None else verdict.why_no_trees

    def why_not_split(self, tokens: int) -> str:
        """Why nothing is drafted nor reused in a context that may grow to `tokens`; empty if it is."""
        verdict = self._held_verdict()
        if verdict is None:
            return "" if is_tried(self._loaded.info) else NOT_TRIED
        return verdict.why_not_split(tokens)

    def _measure_pace(self) -> Generator[None, None, Pace]:
        return measure_pace(self._held_pace(), self._loaded.model, self._loaded.new_cache, self._loaded.info)

    def _measure(self, contexts: Sequence[int] = CONTEXTS) -> Generator[None, None, CostProfile]:
        loaded, trees = self._loaded, not self.why_no_trees()
        return measure(loaded.model, loaded.new_cache, loaded.info, contexts, trees=trees)

    def _try(self) -> Generator[None, None, Verdict]:
        loaded = self._loaded
        splits = yield from try_splits(loaded.model, loaded.new_cache, loaded.info.context_tokens)
        yield
        refused = yield from try_trees(loaded.model, loaded.new_cache())
        return Verdict(verdict_key(loaded.info), refused, splits)

    def _held_verdict(self) -> Verdict | None:
        """The verdict of this or an earlier run, or the one that ships; None if there is none."""
        if self._verdict is None and not self._asked_disk:
            self._asked_disk, self._verdict = True, load_verdict(self._loaded.info)
        return self._verdict

    def _held_costs(self) -> CostProfile | None:
        """The cost profile of this or an earlier run; None if there is none."""
        if self._costs is None and not self._measuring.runs:
            self._costs = load_costs(self._loaded.info)
        return self._costs

    def _held_pace(self) -> Pace:
        if self._pace is None:
            key = machine_key(self._loaded.info)
            self._pace = PACES.load(key) or Pace(key)
        return self._pace


def _finished(steps: Generator[None, None, T]) -> T:
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: T = done.value
            return found
