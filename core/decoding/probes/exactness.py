"""Exactness: how a model's logits depend on the width of the block, measured, not promised.

Kernels for one token and for several sum in different orders, so a token's logits at width 1 and
at width w may differ in their last bits, and a near-tie may flip (the parity failures of the prompt-lookup
study; MLX offers no batch-invariant mode). `probe` compares them on three inputs, the state each block
leaves in the cache included, and `Exactness` is what a mode makes of the result:

    fast     any width, the choice as it falls
    guarded  any width; a choice whose margin is within twice the largest difference seen is made
             again by a pass of width 1
    exact    only widths whose logits were the same bits on every input; none: no drafts

A difference can move both contenders, hence twice. Probed noise is an observation, not a bound.
"""

from __future__ import annotations

import hashlib
import os
import platform
import random
import tempfile
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mlx.core as mx
import msgspec
from msgspec import Struct

from core.decoding.probes.agreement import differences
from core.events import ModelInfo
from core.models.runtime.blas import threads_at_start
from core.settings.decoding import ExactnessMode
from core.system.paths import cache_dir

WIDTHS = (2, 3, 4, 5, 6, 8, 12, 16)
_INPUTS = 3
_CONTEXT_TOKENS = 64
_IDS = 200


class WidthProbe(Struct, frozen=True):
    """One width: whether every logit was bit-identical, and the largest difference."""

    width: int
    identical: bool
    max_difference: float


class Profile(Struct, frozen=True):
    """The probe's result for one (model, dtype, machine, mlx version)."""

    key: str
    inputs: int
    widths: tuple[WidthProbe, ...]

    @property
    def noise(self) -> float:
        """The largest difference at any width."""
        return max((probe.max_difference for probe in self.widths), default=0.0)

    @property
    def exact_width(self) -> int:
        """The largest width up to which every probed width was bit-identical; 1 if none was."""
        widest = 1
        for probe in self.widths:
            if not probe.identical:
                break
            widest = probe.width
        return widest


class Exactness(Struct, frozen=True):
    """What the decode loop is to do. `width_limit` None is any; `noise` 0 is no re-check."""

    mode: ExactnessMode
    width_limit: int | None = None
    noise: float = 0.0


FAST = Exactness("fast")


def exactness(mode: ExactnessMode, profile: Callable[[], Profile]) -> Exactness:
    """`profile` is asked only where the mode needs it."""
    if mode == "fast":
        return FAST
    found = profile()
    if mode == "guarded":
        return Exactness(mode, None, 2.0 * found.noise)
    return Exactness(mode, found.exact_width, 0.0)


def profile(model: Callable[..., Any], new_cache: Callable[[], list[Any]], info: ModelInfo) -> Profile:
    """The cached profile of this model on this machine, measured if there is none (some seconds)."""
    key = machine_key(info)
    path = cache_dir() / "profiles" / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"
    try:
        held = msgspec.json.decode(path.read_bytes(), type=Profile)
        if held.key == key:
            return held
    except (OSError, msgspec.DecodeError):
        pass  # no profile yet, or one that cannot be read: measure
    measured = probe(model, new_cache, key)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(measured)))
    os.replace(temporary, Path(path))
    return measured


def probe(
    model: Callable[..., Any], new_cache: Callable[[], list[Any]], key: str, widths: Sequence[int] = WIDTHS
) -> Profile:
    """Measure. Each block is followed by one token at width 1, which shows what it left in the cache."""
    identical = dict.fromkeys(widths, True)
    largest = dict.fromkeys(widths, 0.0)
    for number in range(_INPUTS):
        rng = random.Random(number)
        context, block = _ids(rng, _CONTEXT_TOKENS), _ids(rng, max(widths) + 1)
        cache = _filled(model, new_cache, context)
        rows = [_logits(model, [token], cache)[0] for token in block]
        for width in widths:
            cache = _filled(model, new_cache, context)
            got = [*_logits(model, block[:width], cache), _logits(model, [block[width]], cache)[0]]
            for one, other in zip(rows, got):
                difference = float(differences(one, other)[0].max())
                identical[width] &= difference == 0.0
                largest[width] = max(largest[width], difference)
    return Profile(key, _INPUTS, tuple(WidthProbe(w, identical[w], largest[w]) for w in widths))


def machine_key(info: ModelInfo) -> str:
    """Names a model as it runs here: model, dtype, machines, threads of OpenBLAS and mlx version."""
    parts = (info.path, info.architecture, info.size_bytes, info.dtype, info.quantisation)
    machine = (platform.node(), platform.machine(), os.cpu_count(), version("mlx"), mx.default_device())
    return " ".join(map(str, (*parts, *machine, threads_at_start(), *info.machines)))


def _filled(model: Callable[..., Any], new_cache: Callable[[], list[Any]], context: list[int]) -> list[Any]:
    cache = new_cache()
    _logits(model, context, cache)
    return cache


def _logits(model: Callable[..., Any], ids: list[int], cache: list[Any]) -> list[mx.array]:
    logits: mx.array = model(mx.array(ids)[None], cache=cache)[0]
    mx.eval(logits, [entry.state for entry in cache])
    return [logits[row] for row in range(len(ids))]


def _ids(rng: random.Random, count: int) -> list[int]:
    return [rng.randrange(_IDS) for _ in range(count)]
