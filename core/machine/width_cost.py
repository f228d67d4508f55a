"""T(w): the cost of a verify block of w tokens on this machine, in plain steps.

`measure` times blocks of several widths at two context lengths, in rounds over all widths, so that temporary
load slows all widths alike. A low quantile of each width counts, because other programs only ever add time. A
block never costs less than a narrower one, so the quantiles are made monotone (pool adjacent violators).
`why_unreliable` then decides whether the rounds agree; a failed measurement is discarded and repeated later.
A result is cached by (model, dtype, machine, mlx version). Trees are timed as well as chains: their masks are
arrays, so Metal takes other kernels for them (mlx#4459, mlx#3658).

`LiveCost` is T while an answer is generated: the profile, or a default, is the prior, and the times of recent
steps override it, however wrong it is.
"""

from __future__ import annotations

import random
import statistics
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import nullcontext
from itertools import product

import mlx.core as mx
import mlx.nn as nn
from msgspec import Struct

from core.decoding.answer import Pipeline
from core.decoding.tree import tree_pass
from core.drafting.gate import default_cost
from core.events import ModelInfo
from core.kv.mlx_lm_caches import Cache, LanguageModel, why_no_rollback
from core.kv.verify_block import VerifyBlock
from core.machine.compare import random_ids
from core.machine.exactness import machine_key
from core.models.parts import rotations
from core.system.files import JsonStore

WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16)
CONTEXTS = (256, 1024)
_ROUNDS = 8
_WARM_ROUNDS = 2
# Rank of the counted round of a width (0: the fastest), and how many rounds must be near it.
_QUANTILE = 1
_NEAR_ROUNDS = 4
_NEAR = 1.3
# Largest factor by which the monotone fit may change a width: some kernels really are a little faster.
_MOVED = 1.35
# Largest cost of a block of w tokens per w plain steps; above it, one of the two was mistimed.
_MOST_PER_TOKEN = 2.0
# Weight of the prior in steps of a width, and the factor from which steps disprove it.
_PRIOR_STEPS = 4.0
_DISPROVED = 1.5
_DISPROVING_STEPS = 6
_RECENT = 16
_RECENT_PLAIN = 15
_DISPROVING_LOW_STEPS = 2
# Plain steps running ahead after which their time is known.
_PRICED_STEPS = 3
# Plain steps after which a narrow block is tried if its width has hardly been timed, and blocks after which a
# plain step is made: before there is a unit, and later to renew it.
_TRY_BLOCK_STEPS = 128
_TRY_WIDTH = 3
_FIRST_PLAIN_BLOCKS = 32
_NEXT_PLAIN_BLOCKS = 256


class ContextCost(Struct, frozen=True):
    """Seconds of a forward pass at each width, at one context length. `trees`: empty if not measured."""

    context_tokens: int
    seconds: dict[int, float]
    trees: dict[int, float] = {}


class CostProfile(Struct, frozen=True):
    """The measurement of one (model, dtype, machine, mlx version).

    `doubt` says why its rounds do not agree; such a profile is not saved. Empty if they do.
    """

    key: str
    contexts: tuple[ContextCost, ...]
    doubt: str = ""

    def at(self, context_tokens: int) -> Callable[[int], float]:
        """T for that context length: the nearest measured one's."""
        return _curve(self._nearest(context_tokens).seconds)

    def tree_factor(self, context_tokens: int) -> Callable[[int], float]:
        """Cost of a tree by that of a chain of its width; 1 if trees were not measured."""
        nearest = self._nearest(context_tokens)
        chains, trees = _curve(nearest.seconds), _curve(nearest.trees or nearest.seconds)
        return lambda width: trees(width) / chains(width)

    def plain_s(self, context_tokens: int) -> float:
        """Seconds of a plain step at that context length."""
        return self._nearest(context_tokens).seconds[1]

    def _nearest(self, context_tokens: int) -> ContextCost:
        return min(self.contexts, key=lambda each: abs(each.context_tokens - context_tokens))


def _curve(seconds: Mapping[int, float]) -> Callable[[int], float]:
    widths = sorted(seconds)
    costs = [seconds[width] / seconds[1] for width in widths]
    return lambda width: _interpolated(widths, costs, width)


def low_times(rounds: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """A low quantile of each width's seconds; each of `rounds` holds all widths."""
    return {width: sorted(each[width] for each in rounds)[_QUANTILE] for width in rounds[0]}


def monotone(seconds: Mapping[int, float]) -> dict[int, float]:
    """The nearest times (least squares of the logarithm) that do not decrease with the width."""
    widths = sorted(seconds)
    pools: list[tuple[float, int]] = []  # geometric mean, count
    for width in widths:
        pools.append((seconds[width], 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (one, n), (two, m) = pools[-2:]
            pools[-2:] = [((one**n * two**m) ** (1 / (n + m)), n + m)]
    means = [mean for mean, count in pools for _ in range(count)]
    return dict(zip(widths, means, strict=True))


def why_unreliable(rounds: Sequence[Mapping[int, float]]) -> str:
    """Why a measurement is not usable; empty if it is."""
    low = low_times(rounds)
    if reason := _why_implausible(low):
        return reason
    for width, seconds in low.items():
        near = sum(each[width] <= _NEAR * seconds for each in rounds)
        if near < min(_NEAR_ROUNDS, len(rounds)):
            return f"only {near} of {len(rounds)} times of width {width} agree"
    half = len(rounds) // 2
    early, late = low_times(rounds[:half]), low_times(rounds[half:])
    for width in low:
        one, two = early[width] / early[1], late[width] / late[1]
        if max(one, two) > _MOVED * min(one, two):
            return f"width {width} cost {one:.2f} plain steps in the first rounds and {two:.2f} in the last"
    return ""


def _why_implausible(seconds: Mapping[int, float]) -> str:
    """Why the times of several widths cannot be those of one idle machine; empty if they can."""
    if 1 not in seconds or not all(0 < each < float("inf") for each in seconds.values()):
        return "a time is missing or not positive"
    fitted = monotone(seconds)
    for width, each in seconds.items():
        if max(each / fitted[width], fitted[width] / each) > _MOVED:
            return f"width {width} took {each / seconds[1]:.2f} plain steps, out of order with other widths"
        if each > _MOST_PER_TOKEN * width * seconds[1]:
            return f"width {width} took {each / seconds[1]:.1f} plain steps"
    return ""


class LiveCost:
    """T of one answer. Call `step` with the time of each step, from token to token.

    The unit is a plain step that runs ahead. T(1) is that of a plain step that does not, because the drafter
    was called; the difference, `overhead`, is added to the prior of each block, too. Until both were timed,
    `overhead` is that of an earlier answer (`first_overhead`; None: not known, and 0 until then).

    The cost of a width is the median of its recent steps divided by the median of the recent plain steps,
    mixed with the prior while there are few. Steps that disprove the prior by more than half replace it, and
    shift it for the widths without steps. A tree of `width` tokens takes `tree_factor(width)` times as long
    as a chain.
    """

    def __init__(
        self,
        prior: Callable[[int], float] = default_cost,
        tree_factor: Callable[[int], float] = lambda width: 1.0,
        measured_plain_s: float = 0.0,
        first_overhead: float | None = None,
    ) -> None:
        self._prior_cost = prior
        self._first_overhead = self._overhead = first_overhead
        self._ahead: deque[float] = deque(maxlen=_RECENT_PLAIN)
        self._tree_factor = tree_factor
        self._plain: deque[float] = deque(maxlen=_RECENT_PLAIN)
        self._plain_s = 0.0
        self._measured_plain_s = measured_plain_s
        self._blocks: dict[int, deque[float]] = {}
        self._seconds: dict[int, float] = {}
        self._costs: dict[int, float] = {}
        self._plain_in_a_row = 0
        self._blocks_in_a_row = 0

    def __call__(self, width: int, tree: bool = False) -> float:
        if tree:
            return self._tree_factor(width) * self(width)
        if width not in self._costs:
            self._costs[width] = self._cost(width)
        cost = self._costs[width]
        # With a prior that is too high, blocks would never be tried and hence never timed.
        if width <= _TRY_WIDTH and self._plain_in_a_row >= _TRY_BLOCK_STEPS:
            few = len(self._blocks.get(width, ())) < _DISPROVING_LOW_STEPS
            return min(cost, default_cost(width)) if few else cost
        return cost

    @property
    def plain_s(self) -> float:
        """Median seconds of recent plain steps; 0 before the first one."""
        return self._plain_s

    @property
    def plain_tokens_per_s(self) -> float:
        """Speed of recent plain steps, before them as measured in advance; 0 if unknown."""
        seconds = self._plain_s or self._measured_plain_s
        return 1 / seconds if seconds else 0.0

    def needs_plain(self) -> bool:
        """Whether a plain step is due: without one, the times of blocks have no unit."""
        return self._blocks_in_a_row >= (_NEXT_PLAIN_BLOCKS if self._plain_s else _FIRST_PLAIN_BLOCKS)

    @property
    def overhead(self) -> float | None:
        """How much longer a plain step takes if the drafter is called, in plain steps; None if unknown."""
        return self._overhead

    def is_priced(self) -> bool:
        """Whether a plain step that ran ahead was timed, here or in an earlier answer."""
        return self._first_overhead is not None or len(self._ahead) >= _PRICED_STEPS

    def step(self, width: int, seconds: float, *, tree: bool = False, pipeline: Pipeline = "single") -> None:
        """A step over a block of `width` tokens took `seconds`. One that enters or leaves the pipeline is
        neither kind of plain step.
        """
        if pipeline in ("enters", "leaves"):
            return
        if tree:
            seconds /= self._tree_factor(width)
        if width == 1:
            (self._ahead if pipeline == "ahead" else self._plain).append(seconds)
            if self._ahead:
                self._plain_s = statistics.median(self._ahead)
            else:
                self._plain_s = statistics.median(self._plain) / (1.0 + (self._first_overhead or 0.0))
            if self._plain and self._ahead:
                self._overhead = max(0.0, statistics.median(self._plain) / self._plain_s - 1.0)
            self._plain_in_a_row, self._blocks_in_a_row = self._plain_in_a_row + 1, 0
        else:
            times = self._blocks.setdefault(width, deque(maxlen=_RECENT))
            times.append(seconds)
            self._seconds[width] = statistics.median(times)
            self._plain_in_a_row, self._blocks_in_a_row = 0, self._blocks_in_a_row + 1
        self._costs.clear()

    def _cost(self, width: int) -> float:
        prior = self._prior(width)
        if width == 1 or not self._plain_s or not self._blocks:
            return prior
        count = len(self._blocks.get(width, ()))
        if count < _DISPROVING_STEPS and not self._disproves(width):
            prior = max(1.0, prior * self._moved(width))
        if not count:
            return prior
        weight = 0.0 if self._disproves(width) else _PRIOR_STEPS
        return (prior * weight + self._live(width) * count) / (weight + count)

    def _prior(self, width: int) -> float:
        """The prior of a whole step; a block costs at least a plain step."""
        prior = self._prior_cost(width) if width == 1 else max(1.0, self._prior_cost(width))
        return prior + (self.overhead or 0.0)

    def _live(self, width: int) -> float:
        """Median recent cost of `width`, which was timed."""
        return self._seconds[width] / self._plain_s

    def _disproves(self, width: int) -> bool:
        """Whether the steps of `width` contradict its prior. Low times count sooner, because other programs
        only add time.
        """
        count = len(self._blocks.get(width, ()))
        if count < _DISPROVING_LOW_STEPS:
            return False
        factor = self._live(width) / self._prior(width)
        return factor < 1 / _DISPROVED or (factor > _DISPROVED and count >= _DISPROVING_STEPS)

    def _moved(self, width: int) -> float:
        """Factor by which steps of the nearest timed width disproved the prior; 1 if they did not."""
        timed = [each for each, times in self._blocks.items() if len(times) >= _DISPROVING_LOW_STEPS]
        if not timed:
            return 1.0
        nearest = min(timed, key=lambda each: abs(each - width))
        return self._live(nearest) / self._prior(nearest) if self._disproves(nearest) else 1.0


# The version changes with the way of measuring.
COSTS = JsonStore("cost-v3", CostProfile)


def load_costs(info: ModelInfo) -> CostProfile | None:
    """The saved profile of this model on this machine, if there is a valid one."""
    held = COSTS.load(machine_key(info))
    timed = [seconds for each in held.contexts for seconds in (each.seconds, each.trees)] if held else []
    return None if any(map(_why_implausible, filter(None, timed))) else held


def measure(
    model: nn.Module,
    new_cache: Callable[[], Cache],
    info: ModelInfo,
    contexts: Sequence[int] = CONTEXTS,
    clock: Callable[[], float] = time.perf_counter,
    *,
    trees: bool = False,
) -> Generator[None, None, CostProfile]:
    """Runs one forward pass per `next()`; returns the profile. Contexts that do not fit into the model's are
    skipped.

    `trees`: of binary trees, too; only for a model that verifies trees.
    """
    rng = random.Random(0)
    found = []
    rotary = rotations(model) if trees else []
    kinds = (False, True) if trees else (False,)
    for context in contexts:
        cache = new_cache()
        rolls_back = not why_no_rollback(cache)
        grows = (_WARM_ROUNDS + _ROUNDS) * (len(kinds) if rolls_back else sum(WIDTHS)) + WIDTHS[-1]
        if context + grows > info.context_tokens:
            continue
        for _ in range(context // 128):
            _forward(model, random_ids(rng, 128), cache)
            yield
        rounds: dict[bool, list[dict[int, float]]] = {tree: [] for tree in kinds}
        for _ in range(_WARM_ROUNDS + _ROUNDS):
            for timed in rounds.values():
                timed.append({})
            for width, tree in product(WIDTHS, kinds):
                ids = random_ids(rng, width)
                block = VerifyBlock(cache) if width > 1 and rolls_back else None
                parents = [node // 2 - 1 for node in range(width - 1)]
                started = clock()
                with tree_pass(model, cache, parents, 1, rotary) if tree and width > 1 else nullcontext():
                    _forward(model, ids, cache)
                rounds[tree][-1][width] = clock() - started
                if block is not None:
                    block.keep(width, ())
                yield
        # The first rounds load weights and compile kernels.
        counted = [timed[_WARM_ROUNDS:] for timed in rounds.values()]
        found.append(ContextCost(context, *(monotone(low_times(each)) for each in counted)))
        if doubt := next(filter(None, map(why_unreliable, counted)), ""):
            return CostProfile(machine_key(info), tuple(found), doubt=doubt)
    return CostProfile(machine_key(info), tuple(found))


def _forward(model: LanguageModel, ids: list[int], cache: Cache) -> None:
    logits: mx.array = model(mx.array(ids)[None], cache=cache)
    mx.eval(mx.argmax(logits, axis=-1), [entry.state for entry in cache])


def _interpolated(widths: Sequence[int], costs: Sequence[float], width: int) -> float:
    at = bisect_left(widths, width)
    if at < len(widths) and widths[at] == width:
        return costs[at]
    at = min(max(at, 1), len(widths) - 1)
    (w0, w1), (c0, c1) = widths[at - 1 : at + 1], costs[at - 1 : at + 1]
    return max(1.0, c0 + (c1 - c0) * (width - w0) / (w1 - w0))
