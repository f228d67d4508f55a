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
from itertools import accumulate, combinations, pairwise
from statistics import median
from typing import Any, Generic, TypeVar, cast

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
from core.prefill.forecast import slowing
from core.prefill.plan import Preference, preference_by_size
from core.system.files import JsonStore

T = TypeVar("T")

# ---- pace: predicted time of a dense prefill, from timed prompt chunks
#
# seconds = tokens · (a + b · context); b is 0 for recurrent models. b is the median slope between two chunks
# and a the median of the remainders (Theil–Sen), so that chunks timed under load or across sleep do not count
# while they are the minority. Without enough chunks the prediction is None: no decision is based on a guess.

_MOST_CHUNKS = 24
# The most that earlier scorings count.
_SCORED_TOKENS = 4096.0
# Tokens of a first timing on a machine that was not measured; the warm-up may compile kernels.
_WARM_TOKENS, _TIMED_TOKENS = 8, 64
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
# else before a context of this length. Another program may have slowed the later chunks of one reading, but
# not those of this many readings.
_FEW, _EARLY_TOKENS, _AGREEING_READINGS = 4, 4096, 3
# Scoring is compared with reading this many tokens without a context.
_COMPARED_TOKENS = 512


class Chunk(Struct, frozen=True, array_like=True):
    """`tokens` after `context_tokens` took `seconds`."""

    tokens: int
    context_tokens: int
    seconds: float


class TimedPace(Struct, frozen=True):
    """The latest timed chunks of one (model, machine), oldest first; accepted guesses and steps by the source
    of a head of the model in `folder`; by scorer, tokens and how many times the model could read
    `_COMPARED_TOKENS` in the time in which they were scored; what asking a drafter adds to a decoding step,
    in plain steps.
    """

    key: str
    chunks: tuple[Chunk, ...] = ()
    folder: str = ""
    heads: dict[str, tuple[int, int]] = {}
    scoring: dict[str, tuple[float, float]] = {}
    asking: float | None = None

    def read(self, tokens: int, context_tokens: int, seconds: float) -> TimedPace:
        """This pace with one more chunk; unchanged if the chunk is too short."""
        if tokens < _LEAST_TOKENS or seconds <= 0:
            return self
        chunks = (*self.chunks, Chunk(tokens, context_tokens, seconds))[-_MOST_CHUNKS:]
        return replace(self, chunks=chunks)

    def scored(self, scorer: str, tokens: float, seconds: float, chunk: Chunk) -> TimedPace:
        """This pace with one more scoring, just before `chunk` was read; unchanged if it is too short.

        It is kept as a share of the pace, because another program slows both. Older ones count less.
        """
        fitted = self.fitted()
        if fitted is None or tokens < _LEAST_TOKENS or min(seconds, chunk.seconds) <= 0:
            return self
        slowed = chunk.seconds / fitted.seconds(chunk.tokens, chunk.context_tokens)
        readings = seconds / slowed / fitted.seconds(_COMPARED_TOKENS)
        before, before_readings = self.scoring.get(scorer, (0.0, 0.0))
        kept = min(1.0, _SCORED_TOKENS / before) if before else 0.0
        found = kept * before + tokens, kept * before_readings + readings
        return replace(self, scoring=self.scoring | {scorer: found})

    def scoring_s(self, scorer: str) -> float | None:
        """Predicted seconds a token of `scorer`; None before it was measured."""
        tokens, readings = self.scoring.get(scorer, (0.0, 0.0))
        fitted = self.fitted()
        return readings / tokens * fitted.seconds(_COMPARED_TOKENS) if tokens and fitted else None

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
        is_early = len(timed) < _FEW or farthest < _EARLY_TOKENS
        if b * _EARLY_TOKENS > a and is_early and self._longer_readings() < _AGREEING_READINGS:
            # Later chunks were slow because of their context or because of another program; for a long prompt
            # the predictions differ by a factor of ten.
            a = _median((token_s / (1 + context / _EARLY_TOKENS), n) for context, token_s, n in timed)
            b = a / _EARLY_TOKENS
        return ReadingPace(a, b)

    def _longer_readings(self) -> int:
        """How many readings had several chunks."""
        follows = [
            late.context_tokens == early.context_tokens + early.tokens
            for early, late in pairwise(self.chunks)
        ]
        return sum(follow and not before for before, follow in pairwise((False, *follows)))


def _median(weighed: Iterable[tuple[float, float]]) -> float:
    """The lower median of values with weights."""
    ordered = sorted(weighed)
    half = sum(weight for _, weight in ordered) / 2
    reached = accumulate(weight for _, weight in ordered)
    return next(value for (value, _), weight in zip(ordered, reached) if weight >= half)


def measure_pace(
    pace: TimedPace,
    model: LanguageModel,
    new_cache: Callable[[], Cache],
    info: ModelInfo,
    clock: Callable[[], float] = time.perf_counter,
) -> Generator[None, None, TimedPace]:
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
    """`entries` with the gain of each of their heads, once it drafted in enough steps."""
    counted = {(pace.folder, source): use for pace in PACES.all() for source, use in pace.heads.items()}
    for entry in entries:
        uses = [counted.get((entry.path, head.source), (0, 0)) for head in entry.heads]
        gains = [tokens / steps if steps >= _ENOUGH_STEPS else 0.0 for tokens, steps in uses]
        yield replace(entry, heads=tuple(replace(h, gain=g) for h, g in zip(entry.heads, gains)))


# The version changes with the meaning of the figures.
PACES = JsonStore("pace-v3", TimedPace)


# ---- all measurements of a model

# After a failure; then a measurement is not made again in this run.
_WAITS_S = (60.0, 240.0)


class Measurement(Generic[T]):
    """A value that `load` finds on the disk, or that is measured in pieces. `clock` gives seconds.

    `begin` starts the measurement; `keep` stores a result, or returns False if it is unreliable. One that
    fails is made again after `_WAITS_S`.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        load: Callable[[], T | None],
        begin: Callable[..., Generator[None, None, T]],
        keep: Callable[[T], bool],
    ) -> None:
        self._clock = clock
        self._load = load
        self._begin = begin
        self._keep = keep
        self._value: T | None = None
        self._asked = False
        self._steps: Generator[None, None, T] | None = None
        self.forget_failures()

    @property
    def value(self) -> T | None:
        """The value of this or an earlier run; None if there is none. Asks the disk once."""
        if self._value is None and not self._asked:
            self._asked, self._value = True, self._load()
        return self._value

    @property
    def due_s(self) -> float | None:
        """Seconds until the next try; None after no failure or too many."""
        return max(0.0, self._next_s - self._clock()) if math.isfinite(self._next_s) else None

    def forget_failures(self) -> None:
        self._waits_s, self._next_s = [*_WAITS_S], -math.inf

    def some(self) -> bool:
        """Runs the next piece if a value is missing; returns whether a piece was run."""
        if self._steps is None:
            if self._clock() < self._next_s:
                return False
            self._value = self._value or self._load()
            if self._value is not None:
                return False
            self._steps = self._begin()
        try:
            try:
                next(self._steps)
            finally:
                surface()  # a fault is this piece's, and its result is not kept
        except StopIteration as done:
            self._steps = None
            if not self._take(done.value):
                self._failed()
        except Exception:
            self._steps = None
            self._failed()
            raise
        return True

    def now(self) -> T:
        """The value, measured now if there is none. For measurements that are always kept."""
        self.forget_failures()
        while self.some():
            pass
        return cast(T, self.value)

    def anew(self, *given: Any) -> T:
        """Measured now, also if there is a value, and again while it is unreliable. `begin` gets `given`."""
        self._steps = None  # half done in idle time, it would replace the new value
        for _ in range(1 + len(_WAITS_S)):
            found = finished(self._begin(*given))
            if self._take(found):
                break
        return found

    def _take(self, found: T) -> bool:
        kept = self._keep(found)
        if kept:
            self._value = found
            self.forget_failures()
        return kept

    def _failed(self) -> None:
        self._next_s = self._clock() + self._waits_s.pop(0) if self._waits_s else math.inf


def finished(steps: Generator[object, None, T]) -> T:
    """The result of `steps`, all of which are run."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return cast(T, done.value)


class KeptPace:
    """How fast one model reads on this machine, and passages are scored for it; saved with `keep_pace`."""

    def __init__(self, info: ModelInfo) -> None:
        self._info = info
        self._pace: TimedPace | None = None
        self._timed = False  # whether the pace holds more than the disk
        self._just_scored: tuple[str, float, float] | None = None

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
        pace = before.read(tokens, context_tokens, seconds)
        if pace is before:
            return
        if self._just_scored is not None:
            pace = pace.scored(*self._just_scored, pace.chunks[-1])
            self._just_scored = None
        self._pace, self._timed = pace, True

    def scoring_s(self, scorer: str) -> float | None:
        """Predicted seconds a token of `scorer`; None before it was measured."""
        return self._held_pace().scoring_s(scorer)

    def scored(self, scorer: str, tokens: float, seconds: float) -> None:
        """Records the time in which `scorer` scored `tokens`, with the next chunk that is read."""
        self._just_scored = scorer, tokens, seconds

    def probe(self) -> ReadingPace | None:
        """The pace by a short timing; None if that is not possible."""
        return None

    def count_head(self, source: str, tokens: int, steps: int) -> None:
        """Records the accepted guesses of the head `source` in an answer of `steps`."""
        before = self._held_pace()
        known = before.heads.get(source, (0, 0))
        counted = before.heads | {source: (known[0] + tokens, known[1] + steps)}
        self._pace = replace(before, folder=self._info.path, heads=counted)
        self._timed = True

    def keep_pace(self) -> None:
        """Saves the pace if chunks were timed or a head was counted since it was last saved."""
        if self._timed:
            self._timed = False
            PACES.save(self._held_pace())

    def _held_pace(self) -> TimedPace:
        if self._pace is None:
            key = machine_key(self._info)
            self._pace = PACES.load(key) or TimedPace(key)
        return self._pace


class MachineProfile(KeptPace):
    """Measurements of one loaded model. `clock` gives seconds, for failed measurements."""

    def __init__(self, loaded: LoadedModel, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(loaded.info)
        self._loaded = loaded
        self.widths = ExactWidths(loaded)
        info = loaded.info
        self._trials = Measurement(clock, lambda: load_verdict(info), self._try, self._keep_verdict)
        self._pacing = Measurement(clock, self._timed_pace, self._measure_pace, self._keep_pace)
        self._costs = Measurement(clock, lambda: load_costs(info), self._measure, self._keep_costs)
        self._live: LiveCost | None = None  # of the last answer
        self._readings = Measurement(clock, self._load_readings, self._try_readings, TRIALS.save)

    def costs_anew(self, contexts: Sequence[int] = CONTEXTS) -> CostProfile:
        """Measures T(w) now, also if there is a profile (some seconds); whether of trees is tried before.

        If the rounds never agree, the profile says so in `doubt` and is not kept.
        """
        self.try_out()
        return self._costs.anew(contexts)

    def try_out(self) -> Verdict:
        """The verdict on trees and drafts, tried now if there is none (some seconds)."""
        return self._trials.now()

    def some(self) -> bool:
        """Runs the next piece of a measurement that is missing; returns whether there was one.

        The pace comes before the costs: without it a document that could be read whole in time is read
        sparsely, while T(w) has a usable guess.
        """
        return self._trials.some() or self._pacing.some() or self._costs.some() or self.widths.some()

    def some_readings(self) -> bool:
        """Runs the next piece of the trial of readings if that is missing; returns whether there was one."""
        return not self._loaded.info.machines and self._readings.some()

    def readings_anew(self) -> ReadingTrial:
        """Tries the ways of reading now, also if that was done before."""
        return self._readings.anew()

    @property
    def preference(self) -> Preference:
        """Whether the model answers better from passages; judged by its size until it was tried."""
        info, held = self._loaded.info, self._readings.value
        return preference_by_size(info.parameters) if held is None else held.preference(info)

    def due_s(self) -> float | None:
        """Seconds until a measurement that failed is made again; None if none is waiting."""
        due = (each.due_s for each in (self._costs, self._pacing, self._trials, self._readings))
        return min((each for each in due if each is not None), default=None)

    def probe(self) -> ReadingPace:
        """The pace by a timing of some tokens, too short to be kept."""
        cache = self._loaded.new_cache()
        for tokens in (_WARM_TOKENS, _TIMED_TOKENS):
            started = time.perf_counter()
            self._loaded.model(mx.array(random_ids(random.Random(0), tokens))[None], cache=cache)
            mx.eval([entry.state for entry in cache])
        return slowing((time.perf_counter() - started) / _TIMED_TOKENS)

    def cost(self, context_tokens: int, *, runs_ahead: bool = True) -> LiveCost:
        """T(w) at that context length; a guess until it was measured.

        `runs_ahead`: the loop can run one step ahead. Then the cost of calling a drafter is at first that
        of the last such answer, also of an earlier session; else 0.
        """
        self._keep_asking()
        held, first = self._costs.value, self._held_pace().asking if runs_ahead else 0.0
        if held is None or not held.contexts:
            made = LiveCost(first_overhead=first)
        else:
            near = held.plain_s(context_tokens)
            made = LiveCost(held.at(context_tokens), held.tree_factor(context_tokens), near, first)
        self._live = made if runs_ahead else self._live
        return made

    def keep_pace(self) -> None:
        """Saves the pace, and the cost of calling a drafter in the last answer, if they changed."""
        self._keep_asking()
        super().keep_pace()

    def _keep_asking(self) -> None:
        before, found = self._held_pace(), self._live.overhead if self._live else None
        if found is not None and round(found, 2) != before.asking:
            self._pace, self._timed = replace(before, asking=round(found, 2)), True

    def why_no_trees(self) -> str:
        """Why trees are not verified, in words; empty if they are."""
        verdict = self._trials.value
        return NOT_TRIED if verdict is None else verdict.why_no_trees

    def why_not_split(self, tokens: int) -> str:
        """Why nothing is drafted nor reused in a context that may grow to `tokens`; empty if it is."""
        verdict = self._trials.value
        if verdict is None:
            return "" if is_tried(self._loaded.info) else NOT_TRIED
        return verdict.why_not_split(tokens)

    # ---- how each is measured and kept

    def _try(self) -> Generator[None, None, Verdict]:
        loaded = self._loaded
        splits = yield from try_splits(loaded.model, loaded.new_cache, loaded.info.context_tokens)
        yield
        refused = yield from try_trees(loaded.model, loaded.new_cache())
        return Verdict(verdict_key(loaded.info), refused, splits)

    def _keep_verdict(self, found: Verdict) -> bool:
        self._loaded.settle()
        return VERDICTS.save(found)

    def _measure(self, contexts: Sequence[int] = CONTEXTS) -> Generator[None, None, CostProfile]:
        loaded, trees = self._loaded, not self.why_no_trees()
        return measure(loaded.model, loaded.new_cache, loaded.info, contexts, trees=trees)

    def _keep_costs(self, found: CostProfile) -> bool:
        return not found.doubt and COSTS.save(found)

    def _load_readings(self) -> ReadingTrial | None:
        return TRIALS.load(machine_key(self._loaded.info))

    def _try_readings(self) -> Generator[None, None, ReadingTrial]:
        return try_readings(self._loaded, machine_key(self._loaded.info))

    def _timed_pace(self) -> TimedPace | None:
        """The pace if chunks were timed, or if none can be."""
        pace = self._held_pace()
        return pace if pace.chunks or self._loaded.info.context_tokens < 2 * PROBED_TOKENS else None

    def _measure_pace(self) -> Generator[None, None, TimedPace]:
        return measure_pace(self._held_pace(), self._loaded.model, self._loaded.new_cache, self._loaded.info)

    def _keep_pace(self, found: TimedPace) -> bool:
        if found.chunks and not self._held_pace().chunks:  # an answer may have timed its reading meanwhile
            self._pace = replace(self._held_pace(), chunks=found.chunks)
            PACES.save(self._pace)
        return bool(found.chunks)
