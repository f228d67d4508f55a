"""Sampler: the verifier's choice at every row of a block. Main thread; lazy MLX arrays.

At temperature 0 the choice is the arg-max. Above it, each row draws once by the Gumbel-max
rule, with noise that depends only on (seed, absolute position of the drawn token). With equal
logits a speculative run therefore equals the plain run token for token, and since one draw is
made a node, whatever was drafted, the output's distribution is the target's (see `accept`).

The repetition penalty of a row sees the last tokens of the prompt and of the path to that row
and nothing else; the frequency and presence penalties (OpenAI's: a logit loses count · frequency and,
where count > 0, presence) count the answer's own tokens up to that row. Penalties and bias come first,
then what a grammar does not allow is ruled out, then top-p, min-p, top-k on the untempered distribution,
then temperature: the order of mlx-lm, whose filters are used (a mask before top-p would shift it).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import mlx.core as mx
import numpy as np
from mlx_lm.sample_utils import apply_min_p, apply_top_k, apply_top_p

from core.settings.sampling import Sampling

# Tokens that the repetition penalty looks back on; the setting's help says so too.
PENALTY_WINDOW_TOKENS = 64
# Odd multiplier of a 64-bit mix (Steele, Lea and Flood's SplitMix64 increment): spreads
# neighbouring (seed, position) pairs over the key space.
_MIX = 0x9E3779B97F4A7C15
# Stands for the choice at a row whose logits are not numbers; no drafted id equals it.
NO_CHOICE = -1


class Rows(NamedTuple):
    """Of w rows. `positions[i]`: where the token stands that row i chooses.

    `windows`: int [w, n], the ids that the repetition penalty of each row looks at. `counts`: float32
    [w, vocabulary], how often each id was said in the answer before. `allowed`: bool
    [w, vocabulary], what a grammar allows. None where nobody asks.
    """

    positions: Sequence[int]
    windows: mx.array | None = None
    counts: mx.array | None = None
    allowed: mx.array | None = None


class Choices(NamedTuple):
    """Lazy: token ids, uint32 [w], and `peaks` [w], which are finite where the row's logits allow a choice.

    A row with a NaN or +∞ has no largest logit that means anything, nor has one of −∞ only: its peak
    shows it, for the largest of a row, or its log-sum, is not a finite number either.
    """

    ids: mx.array
    peaks: mx.array

    def start(self) -> None:
        """Begin computing without waiting for it."""
        mx.async_eval(self.ids, self.peaks)  # type: ignore[no-untyped-call]

    def pull(self) -> list[int]:
        """The ids, `NO_CHOICE` where there is none."""
        mx.eval(self.ids, self.peaks)
        ids: Any = self.ids.tolist()
        peaks: Any = self.peaks.tolist()
        return [token if math.isfinite(peak) else NO_CHOICE for token, peak in zip(ids, peaks)]


class Sampler:
    """`settings` of one request; `bias` is added to the logits of these ids, all inside the vocabulary."""

    def __init__(self, settings: Sampling, bias: Mapping[int, float] | None = None) -> None:
        self._settings = settings
        self.greedy = settings.temperature == 0.0
        self.penalises = settings.repetition_penalty != 1.0
        self.counts = settings.frequency_penalty != 0.0 or settings.presence_penalty != 0.0
        self._bias = dict(bias or {})
        self._biases = mx.array(0.0)

    def choose(self, logits: mx.array, rows: Rows) -> Choices:
        """The choice at each row of `logits` [w, vocabulary]."""
        scores, peaks = self._scores(logits, rows)
        return Choices(mx.argmax(scores, axis=-1), peaks)

    def choose_with_margins(self, logits: mx.array, rows: Rows) -> tuple[Choices, mx.array]:
        """Like `choose`, and by how much each choice won, float32 [w], in units of the logits."""
        scores, peaks = self._scores(logits, rows)
        scores = scores.astype(mx.float32)
        best = mx.topk(scores, 2, axis=-1)
        scale = 1.0 if self.greedy else self._settings.temperature
        margins = mx.abs(best[:, 1] - best[:, 0]) * scale
        return Choices(mx.argmax(scores, axis=-1), peaks), margins

    def _scores(self, logits: mx.array, rows: Rows) -> tuple[mx.array, mx.array]:
        """What the choice is the arg-max of, and the peaks."""
        if rows.windows is not None:
            logits = self._penalise(logits, rows.windows)
        if rows.counts is not None:
            logits = logits - self._penalties(rows.counts)
        if self._bias:
            logits = logits + self._bias_of(logits.shape[-1])
        if rows.allowed is not None:
            # What is ruled out counts for the peak none the less: the row is broken or it is not.
            whole = mx.max(logits, axis=-1).astype(mx.float32)
            scores, peaks = self._filter(mx.where(rows.allowed, logits, -mx.inf), rows.positions)
            return scores, peaks.astype(mx.float32) + whole
        return self._filter(logits, rows.positions)

    def _filter(self, logits: mx.array, positions: Sequence[int]) -> tuple[mx.array, mx.array]:
        if self.greedy:
            return logits, mx.max(logits, axis=-1)
        settings = self._settings
        total = mx.logsumexp(logits, axis=-1, keepdims=True)
        logprobs = logits - total
        if settings.top_p < 1.0:
            logprobs = apply_top_p(logprobs, settings.top_p)
        if settings.min_p > 0.0:
            logprobs = apply_min_p(logprobs, settings.min_p)
        if 0 < settings.top_k < logits.shape[-1]:
            logprobs = apply_top_k(logprobs, settings.top_k)
        scaled = logprobs.astype(mx.float32) * (1.0 / settings.temperature)
        noise = mx.stack([self._noise(position, logits.shape[-1]) for position in positions])
        return scaled + noise, total[:, 0]

    def _noise(self, position: int, vocabulary: int) -> mx.array:
        key = ((self._settings.seed + 1) * _MIX + position * 0xD1342543DE82EF95) & (2**64 - 1)
        key ^= key >> 31
        return mx.random.gumbel((vocabulary,), key=mx.random.key(key))

    def _penalise(self, logits: mx.array, windows: mx.array) -> mx.array:
        penalty = self._settings.repetition_penalty
        picked = mx.take_along_axis(logits, windows, axis=-1)
        picked = mx.where(picked < 0, picked * penalty, picked / penalty)
        return mx.put_along_axis(logits, windows, picked, axis=-1)

    def _penalties(self, counts: mx.array) -> mx.array:
        frequency, presence = self._settings.frequency_penalty, self._settings.presence_penalty
        return counts * frequency + (counts > 0).astype(mx.float32) * presence

    def _bias_of(self, vocabulary: int) -> mx.array:
        if self._biases.shape != (vocabulary,):
            biases = np.zeros(vocabulary, dtype=np.float32)
            biases[list(self._bias)] = list(self._bias.values())
            self._biases = mx.array(biases)
        return self._biases
