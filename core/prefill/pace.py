"""Pace: how long reading takes here, from the readings that were timed; kept for the next start.

A chunk's time has a part that goes by its tokens and a part that goes by what they look back on, so
seconds = a · tokens + b · tokens · context, a and b by least squares over the chunks that were read, old
ones counting less and less. That holds for attention and, with b = 0, for recurrent models. What is not known
is None: nothing is decided by a guess. Worker's main thread.
"""

from __future__ import annotations

import hashlib
import os
import random
import tempfile
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import mlx.core as mx
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.events import ModelInfo
from core.system.paths import cache_dir

# A machine changes: twenty chunks later a chunk counts for a third.
_FORGET = 0.95
# A shorter chunk says more about what a forward costs at all than about its tokens.
_LEAST_TOKENS = 64
# A probe's chunks: short enough that nobody who begins to ask waits for one.
_PROBED_TOKENS = 256
_PROBED_CHUNKS = 3
_IDS = 200
# Of fewer chunks it is not believed that looking back costs more than the rest before so many tokens.
_FEW, _EARLY_TOKENS = 4, 4096


class Pace(Struct, frozen=True):
    """Sums of a least squares fit over chunks of n tokens behind c others: x = n, y = n · (c + n ÷ 2)."""

    key: str
    xx: float = 0.0
    xy: float = 0.0
    yy: float = 0.0
    xt: float = 0.0
    yt: float = 0.0
    chunks: float = 0.0  # how many, old ones counting less

    def read(self, tokens: int, context_tokens: int, seconds: float) -> Pace:
        """With one chunk more: `tokens` behind `context_tokens` took so long."""
        if tokens < _LEAST_TOKENS or seconds <= 0:
            return self
        x, y = _parts(tokens, context_tokens)
        return replace(
            self,
            xx=_FORGET * self.xx + x * x,
            xy=_FORGET * self.xy + x * y,
            yy=_FORGET * self.yy + y * y,
            xt=_FORGET * self.xt + x * seconds,
            yt=_FORGET * self.yt + y * seconds,
            chunks=_FORGET * self.chunks + 1,
        )

    def seconds(self, tokens: int, context_tokens: int = 0) -> float | None:
        """How long reading all of `tokens` behind `context_tokens` takes; None before the first chunk."""
        if not self.xx:
            return None
        x, y = _parts(tokens, context_tokens)
        even = self.xx * self.yy - self.xy**2
        # Chunks that look back on equally much do not tell the two parts apart.
        if even > 1e-6 * self.xx * self.yy:
            a = (self.xt * self.yy - self.yt * self.xy) / even
            b = (self.yt * self.xx - self.xt * self.xy) / even
            if b > 0 and self.chunks < _FEW and b * _EARLY_TOKENS > a:
                # The second of two chunks was slow because it looks back on more, or because another program
                # was at work: carried on to a long prompt, the one says ten times what the other does.
                z, zz = x + y / _EARLY_TOKENS, 2 * self.xy / _EARLY_TOKENS + self.yy / _EARLY_TOKENS**2
                return (self.xt + self.yt / _EARLY_TOKENS) / (self.xx + zz) * z
            if a >= 0 and b >= 0:
                return a * x + b * y
            if a < 0:
                return self.yt / self.yy * y
        return self.xt / self.xx * x


def _parts(tokens: int, context_tokens: int) -> tuple[float, float]:
    return float(tokens), tokens * (context_tokens + tokens / 2)


def measure_pace(
    pace: Pace, model: Callable[..., Any], new_cache: Callable[[], list[Any]], info: ModelInfo
) -> Generator[None, None, Pace]:
    """One chunk of a random prompt a `next()`; returns `pace` with all but the first, which may compile."""
    rng = random.Random(0)
    cache = new_cache()
    for number in range(min(_PROBED_CHUNKS, info.context_tokens // _PROBED_TOKENS)):
        ids = [rng.randrange(_IDS) for _ in range(_PROBED_TOKENS)]
        started = time.perf_counter()
        # Nobody asks for these logits, as in a reading.
        model(mx.array(ids)[None], cache=cache)
        mx.eval([entry.state for entry in cache])
        if number:
            pace = pace.read(_PROBED_TOKENS, number * _PROBED_TOKENS, time.perf_counter() - started)
        yield
    mx.clear_cache()
    return pace


def load_pace(key: str) -> Pace:
    """What was found in earlier runs under that key; an empty one if there is none."""
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
    return cache_dir() / "profiles" / f"pace-{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"
