"""draft-model: scores passages by what a smaller model of the family attends to (the SpecPrefill paper).

The draft model reads the whole prompt, then generates a few tokens of an answer. The queries of the prompt's
last token and of each generated token count by their mean, the question's own rows by their maximum; a
passage gets the larger of the two. Nothing is evaluated between these steps.

Scores: softmax over the prompt's keys, mean over 13 neighbouring tokens, maximum over layers, heads and the
rows of one forward: usually one word of the question attends to the answer, and a mean over all hides it
(notes/prefill.md). Grouped keys are never repeated; one key head's scores are in memory at a time.

Attention is recorded in mlx-lm's own `scaled_dot_product_attention`, which every model calls by the name its
module imported: there queries have passed any norm, gate and rotation. Ports that compute queries from
the weights got these wrong.

Deviations: attention is recorded from the prompt's last token on, the most informative one, which ports that
begin with the first generated token miss. The seed does not use the question's rows: a draft model too small
to begin the answer attends to nothing relevant while it generates (notes/prefill.md).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx_lm.models.base import scaled_dot_product_attention

from core.decoding.answer import Pace
from core.errors import InternalError
from core.kv.cached_sequence import CachedSequence
from core.kv.mlx_lm_caches import kind_of
from core.models.loader import LoadedModel
from core.prefill.read import read_prompt, timed_steps
from core.prefill.scorers.scorer import Scored, ScorerInputs, Scoring, ScoringStep, carried, means_of
from core.prefill.words import stands_out

_LOOKAHEAD_TOKENS = 8  # the SpecPrefill paper
_ATTENTION = "scaled_dot_product_attention"
_SIGNATURE = inspect.signature(scaled_dot_product_attention)
_POOL = 13
# One forward of a single token with recorded attention takes about as long as reading this many tokens.
_FORWARD_TOKENS = 16


class AttentionSeen:
    """The arguments of one attention call: `queries` [1, H, L, D], `keys` [1, K, N, D]."""

    def __init__(self, bound: inspect.BoundArguments) -> None:
        given = bound.arguments
        self.queries: mx.array = given["queries"]
        self.keys: Any = given["keys"]
        self.entry: Any = given["cache"]
        self.scale: float = given["scale"]
        self.mask: Any = given["mask"]


@contextmanager
def watched(model: nn.Module, see: Callable[[AttentionSeen], None]) -> Iterator[None]:
    """While open, `see` receives every attention call of `model`; on exit the modules are restored."""
    modules = {sys.modules[type(part).__module__] for _, part in model.named_modules()}
    own = {module: vars(module)[_ATTENTION] for module in modules if _ATTENTION in vars(module)}

    def recording(original: Callable[..., mx.array]) -> Callable[..., mx.array]:
        def recorded(*args: Any, **options: Any) -> mx.array:
            see(AttentionSeen(_SIGNATURE.bind(*args, **options)))
            return original(*args, **options)

        return recorded

    try:
        for module, original in own.items():
            setattr(module, _ATTENTION, recording(original))
        yield
    finally:
        for module, original in own.items():
            setattr(module, _ATTENTION, original)


class Attended:
    """The maximum attention weights over layers, heads and the chosen rows; lazy.

    `rows` are indices into the forward's rows; `tokens` is the length that keys must have, so that layers
    which do not span the prompt are left out. Only the first `prompt_tokens` keys count.
    """

    def __init__(self, rows: list[int], tokens: int, prompt_tokens: int | None = None) -> None:
        self._rows = mx.array(rows)
        self._tokens = tokens
        self._prompt_tokens = prompt_tokens or tokens
        self._largest: mx.array | None = None

    @property
    def result(self) -> mx.array | None:
        """float32 [prompt_tokens]; None if no layer spanned the prompt."""
        return None if self._largest is None else mx.max(self._largest, axis=0)

    def add(self, seen: AttentionSeen) -> None:
        keys = seen.keys
        # A window may contain a short prompt completely and still not attend to all of it.
        if (
            kind_of(seen.entry) == "window"
            or not isinstance(keys, mx.array)
            or keys.shape[-2] != self._tokens
        ):
            return
        rows, heads, groups = len(self._rows), seen.queries.shape[1], keys.shape[1]
        queries = mx.take(seen.queries[0], self._rows, axis=-2) * seen.scale
        queries = queries.reshape(groups, heads // groups * rows, -1)
        bias = self._bias(seen)
        for group in range(groups):
            logits = (queries[group] @ keys[0, group].T).astype(mx.float32)
            logits = logits.reshape(heads // groups, rows, -1)
            if bias is not None:
                own = slice(group * (heads // groups), (group + 1) * (heads // groups))
                logits = logits + (bias[own] if bias.ndim == 3 and bias.shape[0] > 1 else bias)
            weights = mx.softmax(logits[..., : self._prompt_tokens], axis=-1, precise=True)
            pooled = _pooled(weights).max(axis=0)
            self._largest = pooled if self._largest is None else mx.maximum(self._largest, pooled)

    def _bias(self, seen: AttentionSeen) -> mx.array | None:
        """The mask as additive float32: [rows, N], or [heads, rows, N] where heads differ."""
        width, mask = seen.queries.shape[-2], seen.mask
        if mask is None:
            return None
        if isinstance(mask, str):  # causal
            at = mx.arange(self._tokens - width, self._tokens)
            mask = at[:, None] >= mx.arange(self._tokens)[None]
        mask = mx.take(mask[0] if mask.ndim == 4 else mask, self._rows, axis=-2)
        return mx.where(mask, 0.0, -mx.inf) if mask.dtype == mx.bool_ else mask.astype(mx.float32)


def _pooled(weights: mx.array) -> mx.array:
    """Mean over `_POOL` neighbours along the last axis, zeros beyond the ends."""
    before = _POOL // 2
    edges = [(0, 0)] * (weights.ndim - 1)
    sums = mx.cumsum(mx.pad(weights, [*edges, (before + 1, before)]), axis=-1)
    return (sums[..., _POOL:] - sums[..., :-_POOL]) / _POOL


def score_by_draft_model(inputs: ScorerInputs) -> Scoring:
    """A `Score`; words decide whether a passage matches. Raises `InternalError` without a draft model."""
    if inputs.draft is None:
        raise InternalError("The draft-model scorer has no draft model.")
    scores = yield from draft_scores(
        inputs.draft.loaded,
        inputs.draft.sequence,
        inputs.ids,
        inputs.asking(),
        lookahead_tokens=min(_LOOKAHEAD_TOKENS, inputs.draft.loaded.info.context_tokens - len(inputs.ids)),
        chunk_tokens=inputs.settings.chunk_tokens,
        pace=inputs.draft.pace,
        clock=inputs.clock,
    )
    words, question = inputs.words, inputs.layout.question
    clear, stands = stands_out(words, question, inputs.passages, inputs.loaded.word_rank)
    return Scored(carried(means_of(scores, inputs.passages)), stands and not inputs.about_all, clear)


def draft_scores(
    draft: LoadedModel,
    sequence: CachedSequence,
    ids: list[int],
    asking: list[int],
    *,
    lookahead_tokens: int = _LOOKAHEAD_TOKENS,
    chunk_tokens: int,
    pace: Pace | None = None,
    clock: Callable[[], float] | None = None,
) -> Generator[ScoringStep, None, np.ndarray[Any, Any]]:
    """Returns float32 scores, one for each of `ids`. `pace` receives the times of chunks by `clock`.

    `asking` are the question's rows, ascending, near the end of `ids` and within one chunk; those
    that `sequence` holds already do not count. `sequence` is the draft model's; it holds `ids` but the
    last one afterwards, where it keeps all positions. Raises `InternalError` if no layer sees the
    whole prompt, `RequestError` for an id that the draft model does not have.
    """
    draft.check_ids(ids)
    sequence.reuse(ids, whole=True)
    last = len(ids) - 1
    asking = [row for row in asking if len(sequence.tokens) <= row < last]
    first = asking[0] if asking else last
    end = len(ids) + _FORWARD_TOKENS * (1 + lookahead_tokens)
    reading = read_prompt(draft.model, sequence, ids[: first + 1], chunk_tokens=chunk_tokens, clock=clock)
    for read in timed_steps(reading, pace, clock):
        read_tokens = read.done_tokens + read.part_tokens
        yield ScoringStep(read.done_tokens, end - read_tokens, round(read_tokens))
    try:
        asked = Attended([row - first for row in asking], len(ids))
        tried: mx.array | None = None
        block = mx.array(ids[first:])
        for step in range(1 + lookahead_tokens):
            attended = Attended([len(block) - 1], len(ids) + step, len(ids))
            watching = [asked, attended] if asking and not step else [attended]
            with watched(draft.model, _shown_to(watching)):
                logits = draft.model(block[None], cache=sequence.cache)[0, -1]
            block = mx.argmax(logits, keepdims=True)
            if attended.result is None:
                raise InternalError("No layer of the draft model attends to the whole prompt.")
            tried = attended.result if tried is None else tried + attended.result
        sequence.append(ids[first:last])
        yield ScoringStep(len(ids))
        assert tried is not None
        scores = tried / (1 + lookahead_tokens)
        return np.array(scores if asked.result is None else mx.maximum(scores, asked.result))
    finally:
        if sequence.keeps_all:
            sequence.truncate(len(sequence.tokens))
        else:
            sequence.clear()


def _shown_to(watching: list[Attended]) -> Callable[[AttentionSeen], None]:
    def see(seen: AttentionSeen) -> None:
        for attended in watching:
            attended.add(seen)

    return see
