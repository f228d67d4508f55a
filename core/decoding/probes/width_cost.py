"""T(w): what a verify block of w tokens costs here, in plain steps; measured, cached, kept honest.

`measure` times blocks of several widths at two context
lengths. It is a generator that does a forward or a few at a time, so that the worker can run it
between two commands, and takes a few seconds in all for a small model. The result is
cached by (model, dtype, machine, mlx version).

`LiveCost` is T while an answer is written: the profile (or a guess where there is none yet) as a
prior, corrected by the times of the steps themselves, each width by its own.
"""

from __future__ import annotations

import hashlib
import os
import random
import statistics
import tempfile
import time
from bisect import bisect_left
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import msgspec
from msgspec import Struct

from core.decoding.probes.exactness import machine_key
from core.drafting.gate import default_cost
from core.events import ModelInfo
from core.system.paths import cache_dir

WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16)
CONTEXTS = (256, 1024)
_REPEATS = 3
_IDS = 200
# How many steps of a width the prior counts for, and how fast old steps are forgotten.
_PRIOR_STEPS = 4.0
_DECAY = 0.98
# One pause of the machine must not look like the price of a width.
_OUTLIER = 3.0


class ContextCost(Struct, frozen=True):
    """Median seconds of a forward at each width, at one context length."""

    context_tokens: int
    seconds: dict[int, float]


class CostProfile(Struct, frozen=True):
    """The measurement of one (model, dtype, machine, mlx version)."""

    key: str
    contexts: tuple[ContextCost, ...]

    def at(self, context_tokens: int) -> Callable[[int], float]:
        """T for a context of that length: that of the nearest measured one."""
        nearest = min(self.contexts, key=lambda each: abs(each.context_tokens - context_tokens))
        base = nearest.seconds[1]
        widths = sorted(nearest.seconds)
        costs = [nearest.seconds[width] / base for width in widths]
        return lambda width: _interpolated(widths, costs, width)


class LiveCost:
    """T of one answer. `step` it with what each step took."""

    def __init__(self, prior: Callable[[int], float] = default_cost) -> None:
        self._prior = prior
        self._plain_s: float | None = None
        self._weights: dict[int, float] = {}
        self._sums: dict[int, float] = {}

    def __call__(self, width: int) -> float:
        """T(width), in plain steps."""
        weight = self._weights.get(width, 0.0)
        return (self._prior(width) * _PRIOR_STEPS + self._sums.get(width, 0.0)) / (_PRIOR_STEPS + weight)

    def step(self, width: int, seconds: float) -> None:
        """A step over `width` tokens took so long. Plain steps set the unit."""
        if width == 1:
            if self._plain_s is None or seconds < _OUTLIER * self._plain_s:
                before = seconds if self._plain_s is None else self._plain_s
                self._plain_s = 0.9 * before + 0.1 * seconds
            return
        if self._plain_s is None:
            return
        ratio = seconds / self._plain_s
        if ratio < _OUTLIER * self(width):
            self._weights[width] = self._weights.get(width, 0.0) * _DECAY + 1.0
            self._sums[width] = self._sums.get(width, 0.0) * _DECAY + ratio


def load_profile(info: ModelInfo) -> CostProfile | None:
    """The cached profile of this model on this machine, if there is one."""
    key = machine_key(info)
    try:
        held = msgspec.json.decode(_path(key).read_bytes(), type=CostProfile)
    except (OSError, msgspec.DecodeError):
        return None  # none yet, or one that cannot be read: it will be measured
    return held if held.key == key else None


def save_profile(profile: CostProfile) -> None:
    """Cache `profile`, atomically."""
    path = _path(profile.key)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(profile)))
    os.replace(temporary, path)


def measure(
    model: nn.Module,
    new_cache: Callable[[], list[Any]],
    info: ModelInfo,
    contexts: Sequence[int] = CONTEXTS,
) -> Generator[None, None, CostProfile]:
    """One forward a `next()`; returns the profile. Contexts longer than the model's are left out."""
    rng = random.Random(0)
    found = []
    for context in contexts:
        if context + sum(WIDTHS) * (_REPEATS + 1) > info.context_tokens:
            continue
        cache = new_cache()
        for _ in range(context // 128):
            _forward(model, [rng.randrange(_IDS) for _ in range(128)], cache)
            yield
        seconds: dict[int, float] = {}
        for width in WIDTHS:
            times = []
            for _ in range(_REPEATS + 1):
                block = [rng.randrange(_IDS) for _ in range(width)]
                started = time.perf_counter()
                _forward(model, block, cache)
                times.append(time.perf_counter() - started)
                yield
            seconds[width] = statistics.median(times[1:])  # the first may compile
        found.append(ContextCost(context, seconds))
    return CostProfile(machine_key(info), tuple(found))


def _forward(model: Callable[..., Any], ids: list[int], cache: list[Any]) -> None:
    logits: mx.array = model(mx.array(ids)[None], cache=cache)
    mx.eval(mx.argmax(logits, axis=-1), [entry.state for entry in cache])


def _path(key: str) -> Path:
    return cache_dir() / "profiles" / f"cost-{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"


def _interpolated(widths: Sequence[int], costs: Sequence[float], width: int) -> float:
    at = bisect_left(widths, width)
    if at < len(widths) and widths[at] == width:
        return costs[at]
    at = min(max(at, 1), len(widths) - 1)
    (w0, w1), (c0, c1) = widths[at - 1 : at + 1], costs[at - 1 : at + 1]
    return max(1.0, c0 + (c1 - c0) * (width - w0) / (w1 - w0))
