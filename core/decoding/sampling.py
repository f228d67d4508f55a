"""The target's choice at every row of a block: sampling, penalties, ranking and logprobs. Main thread; lazy
MLX arrays.

At temperature 0 the choice is the arg-max. Above it, each row draws once by the Gumbel-max rule, with
noise that depends only on (seed, absolute position of the drawn token). With equal logits a speculative
run therefore equals the plain run token for token, and because each row draws once, whatever was drafted,
the output has the target's distribution (see `accept`).

The repetition penalty of a row covers the last tokens of the prompt and of the path to that row. The
frequency and presence penalties (OpenAI's: a logit loses count · frequency and, if count > 0, presence)
count the answer's tokens up to that row. `no_repeat_ngram_size` excludes each token that would complete a run
of tokens which the answer has before that row; a grammar, which may leave no other choice, turns it off.
Penalties and bias come first, then the grammar's mask, then
top-p, min-p and top-k on the untempered distribution, then temperature: the order of mlx-lm, whose filters
are used (a mask before top-p would shift it).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import mlx.core as mx
import numpy as np
from mlx_lm.sample_utils import apply_min_p, apply_top_k, apply_top_p
from numpy.typing import NDArray

from core.drafting.draft import Draft
from core.events import FIRST_IMAGE_ROW
from core.kv.cached_sequence import CachedSequence
from core.settings.request import Sampling

# Tokens covered by the repetition penalty; the setting's help states the number too.
PENALTY_WINDOW_TOKENS = 64
# Odd multiplier of a 64-bit mix (the increment of Steele, Lea and Flood's SplitMix64): spreads neighbouring
# (seed, position) pairs over the key space.
_MIX = 0x9E3779B97F4A7C15
# Choice at a row whose logits are not numbers; equals no drafted id.
NO_CHOICE = -1


class RowInputs(NamedTuple):
    """Inputs of the choice at w rows, in addition to logits. `positions[i]`: position of the token chosen at
    row i.

    `windows`: int [w, n], ids covered by each row's repetition penalty. `counts`: float32 [w, vocabulary],
    occurrences of each id in the answer before. `allowed`: bool [w, vocabulary], the grammar's mask.
    `repeats`: rows and ids (uint32 [n]) of tokens that may complete a repeated run, and the amounts to add to
    their logits (float32 [n]): −∞ if they do, else 0. None where not needed.
    """

    positions: Sequence[int]
    windows: mx.array | None = None
    counts: mx.array | None = None
    allowed: mx.array | None = None
    repeats: tuple[mx.array, mx.array, mx.array] | None = None


class Choices(NamedTuple):
    """Lazy token ids, uint32 [w], and `peaks` [w], which are finite if the row's logits allow a choice.

    A row with a NaN or +∞, with only −∞ or with equal values only has no meaningful maximum.
    """

    ids: mx.array
    peaks: mx.array

    def start(self, *others: mx.array) -> None:
        """Starts the computation, and that of `others`, without waiting."""
        mx.async_eval(self.ids, self.peaks, *others)

    def pull(self, *others: mx.array) -> list[int]:
        """Waits for the ids, `NO_CHOICE` where there is none, and for `others`: one wait for all."""
        mx.eval(self.ids, self.peaks, *others)
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
        self.no_repeat = settings.no_repeat_ngram_size
        self._bias = dict(bias or {})
        self._biases = mx.array(0.0)

    def choose(self, logits: mx.array, rows: RowInputs) -> Choices:
        scores, peaks = self._scores(logits, rows)
        # Some failed Metal buffers read as zeros, without an error (mlx#3979).
        flat = mx.max(logits, axis=-1) == mx.min(logits, axis=-1)
        return Choices(mx.argmax(scores, axis=-1), mx.where(flat, mx.nan, peaks))

    def _scores(self, logits: mx.array, rows: RowInputs) -> tuple[mx.array, mx.array]:
        """The scores whose arg-max is the choice, and the peaks."""
        if rows.windows is not None:
            logits = self._penalise(logits, rows.windows)
        if rows.counts is not None:
            logits = logits - self._penalties(rows.counts)
        if self._bias:
            logits = logits + self._bias_of(logits.shape[-1])
        if rows.repeats is not None and rows.allowed is None:
            at, ids, amounts = rows.repeats
            logits = logits.at[at, ids].add(amounts.astype(logits.dtype))
        if rows.allowed is not None:
            # The peak includes masked ids: the whole row is valid or broken.
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


class RowHistory:
    """The history of each row of a block, for penalties and positions, during one answer.

    A block is known tokens (the lead) and a draft; its rows are the last known token and the draft's nodes. A
    row's history is the context, the lead and the nodes on the path to it, so drafted and plain runs use the
    same. `sequence` holds the context except its last token; the last `begun` tokens of the context belong to
    the answer.
    """

    def __init__(self, sequence: CachedSequence, sampler: Sampler, begun: int = 0) -> None:
        self._sequence = sequence
        self._sampler = sampler
        self._start = len(sequence.tokens) + 1 - begun
        self._counts = np.zeros(0, dtype=np.float32)
        # Tokens of the answer that are counted.
        self._counted: list[int] = []

    def inputs(
        self, lead: Sequence[int], draft: Draft, unknown: mx.array | None, vocabulary: int
    ) -> RowInputs:
        """The inputs of the rows of `lead` and `draft`, for logits of width `vocabulary`.

        `unknown`, [1], is a token that is still being computed and replaces the lead.
        """
        start = len(self._sequence.tokens) + (1 if unknown is not None else len(lead))
        # The drafted tokens up to each row.
        paths: list[list[int]] = [[]]
        for token, parent in zip(draft.tokens, draft.parents):
            paths.append([*paths[parent + 1], token])
        return RowInputs(
            [start + len(path) for path in paths],
            self._windows(lead, paths, unknown) if self._sampler.penalises else None,
            self._answer_counts(lead, paths, unknown, vocabulary) if self._sampler.counts else None,
            repeats=self._repeats(lead, paths, unknown) if self._sampler.no_repeat else None,
        )

    def _repeats(
        self, lead: Sequence[int], paths: Sequence[Sequence[int]], unknown: mx.array | None
    ) -> tuple[mx.array, mx.array, mx.array] | None:
        """The tokens that may complete a run which the path of their row has already; None without any."""
        length = self._sampler.no_repeat
        held = self._sequence.tokens
        answer = np.array([*held[self._start :], *lead[max(0, self._start - len(held)) :]], np.int64)
        if unknown is not None:
            path = mx.concatenate([mx.array(answer.astype(np.uint32)), unknown.astype(mx.uint32)])
            # Which run would be complete depends on the unknown token, which is its last but one.
            ends = _runs_after(answer, length - 2) if length > 1 else [-1]
            if length > 1 and not ends:
                return None
            before = path[mx.array(ends)]
            ids = path[mx.array(ends) + 1] if length > 1 else path
            amounts = mx.where(before == path[-1], -mx.inf, 0.0)
            return mx.zeros(ids.size, dtype=mx.uint32), ids, mx.broadcast_to(amounts, ids.shape)
        rows: list[int] = []
        banned: list[int] = []
        for row, added in enumerate(paths):
            whole = np.concatenate([answer, np.array(added, np.int64)])
            of_row = {int(whole[at]) for at in _runs_after(whole, length - 1)}
            rows += [row] * len(of_row)
            banned += sorted(of_row)
        if not rows:
            return None
        return (
            mx.array(rows, dtype=mx.uint32),
            mx.array(banned, dtype=mx.uint32),
            mx.full(len(rows), -mx.inf),
        )

    def _windows(
        self, lead: Sequence[int], paths: Sequence[Sequence[int]], unknown: mx.array | None
    ) -> mx.array:
        """For each row, the last ids of its path.

        All rows cover equally many tokens. A path shorter than the longest is padded with its first id: the
        penalty depends on whether an id occurs, not on how often.
        """
        context = _latest_tokens(self._sequence.tokens, PENALTY_WINDOW_TOKENS)
        if unknown is not None:
            known = mx.array(context[-(PENALTY_WINDOW_TOKENS - 1) :], dtype=mx.uint32)
            return mx.concatenate([known, unknown.astype(mx.uint32)])[None]
        seen = [[*context, *lead, *path][-PENALTY_WINDOW_TOKENS:] for path in paths]
        size = max(map(len, seen))
        return mx.array([path[:1] * (size - len(path)) + path for path in seen], dtype=mx.uint32)

    def _answer_counts(
        self, lead: Sequence[int], paths: Sequence[Sequence[int]], unknown: mx.array | None, vocabulary: int
    ) -> mx.array:
        self._count(lead, vocabulary)
        counts = mx.array(self._counts)[None]
        if unknown is not None:
            return counts.at[0, unknown].add(1.0)
        if len(paths) == 1:
            return counts
        rows = [row for row, path in enumerate(paths) for _ in path]
        ids = [token for path in paths for token in path]
        return mx.repeat(counts, len(paths), axis=0).at[mx.array(rows), mx.array(ids)].add(1.0)

    def _count(self, lead: Sequence[int], vocabulary: int) -> None:
        """Counts the answer's tokens up to the end of `lead`, which may be earlier than last time."""
        if not len(self._counts):
            self._counts = np.zeros(vocabulary, dtype=np.float32)
        held, counted = self._sequence.tokens, self._counted
        known = len(held) + len(lead) - self._start
        for token in counted[known:]:
            self._counts[token] -= 1.0
        del counted[known:]
        at = self._start + len(counted)
        new = [*held[at:], *lead[max(0, at - len(held)) :]]
        for token in new:
            self._counts[token] += 1.0
        counted += new


def _latest_tokens(tokens: Sequence[int], count: int) -> list[int]:
    """The last `count` of `tokens` that are not rows of images."""
    found = list(tokens[-count:])
    if max(found, default=0) >= FIRST_IMAGE_ROW:
        texts = (token for token in reversed(tokens) if token < FIRST_IMAGE_ROW)
        found = list(islice(texts, count))[::-1]
    return found


def _runs_after(tokens: NDArray[np.int64], length: int) -> list[int]:
    """The positions in `tokens` right after earlier occurrences of its last `length` tokens."""
    if length <= 0:
        return list(range(len(tokens)))
    if len(tokens) <= length:
        return []
    last = tokens[-length:]
    ends = np.flatnonzero(tokens[length - 1 : -1] == last[-1]) + length
    return [int(end) for end in ends if np.array_equal(tokens[end - length : end], last)]


TOP_IDS = 8
# Ids below e⁻⁸ of the best probability are not worth drafting.
_WITHIN_LOGITS = 8.0
# Rows with more candidates are too flat to be worth sorting.
_MOST_CANDIDATES = 512


def top_ids(logits: mx.array, rows: Sequence[int]) -> list[list[int]]:
    """For each of `rows` of `logits` [w, vocabulary], at most eight ids, best first, for drafters.

    The logits are float32 and evaluated: their memory is read as it is, without work of the device, and on a
    GPU each wait for it costs as much as many of these comparisons. A full selection over the vocabulary
    costs a notable part of a small model's step. Ids within a few logits of the best are few, and one
    comparison over the row finds them.
    """
    found = []
    held = np.asarray(logits)
    for values in map(held.__getitem__, rows):
        near = np.flatnonzero(values >= values.max() - _WITHIN_LOGITS)
        if len(near) > _MOST_CANDIDATES:
            near = near[np.argpartition(values[near], -TOP_IDS)[-TOP_IDS:]]
        best = near[np.argsort(-values[near], kind="stable")[:TOP_IDS]]
        found.append([int(i) for i in best])
    return found


# Replaces −∞, which JSON lacks; OpenAI uses the same value.
LEAST_LOGPROB = -9999.0


class Logprob(NamedTuple):
    """`own`: logprob of the chosen token. `likely`: ids and logprobs of the most probable tokens, best
    first.
    """

    own: float
    likely: tuple[tuple[int, float], ...]


def logprobs(logits: mx.array, tokens: Sequence[int], top: int) -> tuple[Logprob, ...]:
    """The logprob of each of `tokens`, chosen at the rows of `logits` [n, vocabulary], and the `top` most
    probable.

    The natural log-softmax of the raw logits: before penalties, bias, grammar, filters and temperature. Rows
    along the accepted path are the plain run's rows, so drafted and plain runs report the same except for the
    noise of block widths.
    """
    top = min(top, logits.shape[-1])
    logits = logits.astype(mx.float32)
    rows = logits - mx.logsumexp(logits, axis=-1, keepdims=True)
    own: Any = mx.take_along_axis(rows, mx.array(list(tokens))[:, None], axis=-1)[:, 0].tolist()
    if not top:
        return tuple(Logprob(max(value, LEAST_LOGPROB), ()) for value in own)
    best = mx.argpartition(-rows, kth=top - 1, axis=-1)[:, :top]
    ids: Any = best.tolist()
    values: Any = mx.take_along_axis(rows, best, axis=-1).tolist()
    return tuple(
        Logprob(
            max(value, LEAST_LOGPROB),
            tuple(
                (token, max(likely, LEAST_LOGPROB))
                for token, likely in sorted(zip(row, likelies), key=lambda pair: (-pair[1], pair[0]))
            ),
        )
        for value, row, likelies in zip(own, ids, values)
    )
