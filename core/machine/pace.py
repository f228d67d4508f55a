"""Pace: predicted time of a dense prefill on this machine, fitted to timed prompt chunks and saved.

seconds = a · tokens + b · tokens · context; b is 0 for recurrent models. a and b minimise the weighted
absolute deviations over the latest chunks, recent ones with a greater weight, so that chunks timed under load
or across sleep do not count while they are the minority. Without enough chunks the prediction is None: no
decision is based on a guess. Engine's thread.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator, Sequence

import mlx.core as mx
from msgspec import Struct

from core.events import ModelInfo
from core.kv.mlx_lm_caches import Cache, LanguageModel
from core.system.files import JsonStore

# Weight factor per later chunk: after twenty chunks the weight is a third.
_FORGET = 0.95
_MOST_CHUNKS = 24
_FIT_ROUNDS = 12
# In shorter chunks the fixed cost of a forward pass dominates.
_LEAST_TOKENS = 64
# Minimum tokens in all chunks: compilation or paging during a single short chunk, extrapolated to a long
# prompt, would predict hours.
_ENOUGH_TOKENS = 256
# Chunks of a measurement, short enough not to delay a request.
PROBED_TOKENS = 256
_PROBED_CHUNKS = 3
# Largest ratio of the two times of a measured chunk; above it the machine is busy.
_AGREES = 1.3
_IDS = 200
# With fewer chunks, or only with shorter contexts, b is limited: attention may not cost more than everything
# else before a context of this length.
_FEW, _EARLY_TOKENS = 4, 4096


class Chunk(Struct, frozen=True, array_like=True):
    """`tokens` after `context_tokens` took `seconds`."""

    tokens: int
    context_tokens: int
    seconds: float

    @property
    def parts(self) -> tuple[float, float]:
        """The factors of a and b."""
        return _parts(self.tokens, self.context_tokens)


class Pace(Struct, frozen=True):
    """The latest timed chunks of one (model, machine), oldest first."""

    key: str
    chunks: tuple[Chunk, ...] = ()

    def read(self, tokens: int, context_tokens: int, seconds: float) -> Pace:
        """This pace with one more chunk; unchanged if the chunk is too short."""
        if tokens < _LEAST_TOKENS or seconds <= 0:
            return self
        return Pace(self.key, (*self.chunks, Chunk(tokens, context_tokens, seconds))[-_MOST_CHUNKS:])

    def seconds(self, tokens: int, context_tokens: int = 0) -> float | None:
        """Predicted seconds for `tokens` after `context_tokens`; None until enough chunks were timed."""
        if sum(chunk.tokens for chunk in self.chunks) < _ENOUGH_TOKENS:
            return None
        x, y = _parts(tokens, context_tokens)
        ages = reversed(range(len(self.chunks)))
        weights = [_FORGET**age for age in ages]
        factors, spread = list(weights), 1e-3 * min(chunk.seconds for chunk in self.chunks)
        a = b = 0.0
        # Iteratively reweighted least squares converges to the least absolute deviations.
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
    # With equal contexts the two parts cannot be separated.
    if even > 1e-6 * xx * yy:
        a = (xt * yy - yt * xy) / even
        b = (yt * xx - xt * xy) / even
        farthest = max(chunk.context_tokens + chunk.tokens for chunk in chunks)
        if b > 0 and (len(chunks) < _FEW or farthest < _EARLY_TOKENS) and b * _EARLY_TOKENS > a:
            # Later chunks were slow because of their context or because of another program; for a long prompt
            # the predictions differ by a factor of ten.
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
    ids = [[rng.randrange(_IDS) for _ in range(PROBED_TOKENS)] for _ in range(count)]
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


def load_pace(key: str) -> Pace:
    """The saved pace with that key; an empty one if there is none."""
    return _STORE.load(key) or Pace(key)


def save_pace(pace: Pace) -> None:
    """Saves `pace`."""
    _STORE.save(pace)


# The version changes with the meaning of the figures.
_STORE = JsonStore("pace-v2", Pace)
