"""Pace: how long reading takes on this machine, from timed readings; kept for the next start.

A chunk's time has a part that grows with its tokens and a part that grows with what they look back on:
seconds = a · tokens + b · tokens · context. a and b are the least absolute deviations over the latest chunks,
recent ones weighing more, so that chunks read while another program was busy or the machine slept do not
count as long as they are the minority. That holds for attention and, with b = 0, for recurrent models. Until
enough was timed the pace is None: nothing is decided by a guess. Engine's thread.
"""

from __future__ import annotations

import hashlib
import os
import random
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx
import msgspec
from msgspec import Struct

from core.events import ModelInfo
from core.system.paths import cache_dir

# A machine changes: twenty chunks later a chunk counts for a third, and then for nothing.
_FORGET = 0.95
_MOST_CHUNKS = 24
_FIT_ROUNDS = 12
# A shorter chunk says more about what a forward costs at all than about its tokens.
_LEAST_TOKENS = 64
# A short chunk alone is not enough: multiplied up to a long prompt, the compiling or paging that happened
# during it is hours.
_ENOUGH_TOKENS = 256
# A probe's chunks: short enough that nobody who begins to ask waits for one.
PROBED_TOKENS = 256
_PROBED_CHUNKS = 3
# The two readings of a probed chunk differ by less, or the machine is busy.
_AGREES = 1.3
_IDS = 200
# In the name of the file.
_VERSION = 2
# Of fewer chunks, or of chunks that all looked back on less, it is not believed that looking back costs more
# than the rest before so many tokens.
_FEW, _EARLY_TOKENS = 4, 4096


class Chunk(Struct, frozen=True, array_like=True):
    """`tokens` behind `context_tokens` others took `seconds`."""

    tokens: int
    context_tokens: int
    seconds: float

    @property
    def parts(self) -> tuple[float, float]:
        """What a and b are multiplied with."""
        return _parts(self.tokens, self.context_tokens)


class Pace(Struct, frozen=True):
    """The latest timed chunks of one (model, machine), oldest first."""

    key: str
    chunks: tuple[Chunk, ...] = ()

    def read(self, tokens: int, context_tokens: int, seconds: float) -> Pace:
        """With one more chunk, if it says anything."""
        if tokens < _LEAST_TOKENS or seconds <= 0:
            return self
        return Pace(self.key, (*self.chunks, Chunk(tokens, context_tokens, seconds))[-_MOST_CHUNKS:])

    def seconds(self, tokens: int, context_tokens: int = 0) -> float | None:
        """How long reading all of `tokens` behind `context_tokens` takes; None before enough was timed."""
        if sum(chunk.tokens for chunk in self.chunks) < _ENOUGH_TOKENS:
            return None
        x, y = _parts(tokens, context_tokens)
        ages = reversed(range(len(self.chunks)))
        weights = [_FORGET**age for age in ages]
        factors, spread = list(weights), 1e-3 * min(chunk.seconds for chunk in self.chunks)
        a = b = 0.0
        # Weighted least squares whose weights fall with the residual come to least absolute deviations.
        for _ in range(_FIT_ROUNDS if len(self.chunks) >= _FEW else 1):
            a, b = _fitted(self.chunks, factors)
            missed = [abs(c.seconds - a * c.parts[0] - b * c.parts[1]) for c in self.chunks]
            factors = [weight / max(each, spread) for weight, each in zip(weights, missed, strict=True)]
        return a * x + b * y


def _fitted(chunks: Sequence[Chunk], weights: Sequence[float]) -> tuple[float, float]:
    """a and b, neither negative, by weighted least squares."""
    xx = xy = yy = xt = yt = 0.0
    for chunk, weight in zip(chunks, weights, strict=True):
        x, y = chunk.parts
        xx, xy, yy = xx + weight * x * x, xy + weight * x * y, yy + weight * y * y
        xt, yt = xt + weight * x * chunk.seconds, yt + weight * y * chunk.seconds
    even = xx * yy - xy**2
    # Chunks that look back on equally much do not tell the two parts apart.
    if even > 1e-6 * xx * yy:
        a = (xt * yy - yt * xy) / even
        b = (yt * xx - xt * xy) / even
        farthest = max(chunk.context_tokens + chunk.tokens for chunk in chunks)
        if b > 0 and (len(chunks) < _FEW or farthest < _EARLY_TOKENS) and b * _EARLY_TOKENS > a:
            # Later chunks were slow because they look back on more, or because another program was busy:
            # extrapolated to a long prompt, the one says ten times what the other does.
            early = (xt + yt / _EARLY_TOKENS) / (xx + 2 * xy / _EARLY_TOKENS + yy / _EARLY_TOKENS**2)
            return early, early / _EARLY_TOKENS
        if a >= 0 and b >= 0:
            return a, b
        if a < 0:
            return 0.0, yt / yy
    return xt / xx, 0.0


def _parts(tokens: int, context_tokens: int) -> tuple[float, float]:
    return float(tokens), tokens * (context_tokens + tokens / 2)


def measure_pace(
    pace: Pace,
    model: Callable[..., Any],
    new_cache: Callable[[], list[Any]],
    info: ModelInfo,
    clock: Callable[[], float] = time.perf_counter,
) -> Generator[None, None, Pace]:
    """One chunk of a random prompt a `next()`, all chunks twice; returns `pace` with the faster times.

    The first chunk may compile and is left out. If the two readings of a chunk do not agree, the machine is
    busy and `pace` is returned as it is.
    """
    rng = random.Random(0)
    count = min(_PROBED_CHUNKS, info.context_tokens // PROBED_TOKENS)
    ids = [[rng.randrange(_IDS) for _ in range(PROBED_TOKENS)] for _ in range(count)]
    rounds: list[list[float]] = []
    for _ in range(2):
        cache = new_cache()
        rounds.append([])
        for chunk in ids:
            started = clock()
            # The logits are not needed, as in a reading.
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


def load_pace(key: str) -> Pace:
    """The saved pace with that key; an empty one if there is none."""
    try:
        held = msgspec.json.decode(_path(key).read_bytes(), type=Pace)
    except (OSError, msgspec.DecodeError):
        return Pace(key)  # none yet, or one that cannot be read: it will be measured
    return held if held.key == key else Pace(key)


def save_pace(pace: Pace) -> None:
    """Keep `pace`, atomically. A disk that is full or read-only costs a measurement, no answer."""
    path = _path(pace.key)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(pace))
        os.replace(temporary, path)
    except OSError:
        return


def _path(key: str) -> Path:
    return cache_dir() / "profiles" / f"pace-v{_VERSION}-{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"
