"""draft-model: scores passages by what a smaller model of the family attends to (the SpecPrefill paper).

The draft model reads the whole prompt, then answers a few tokens on trial. The queries of the
prompt's last token and of each trial token count alike, by their mean; the question's own rows
count by their largest, and a passage has whichever of the two is more. Nothing is waited for
between these steps; the scores are one evaluation.

Deviations: attention is watched from the prompt's last token on, which ports that began with the
first trial token missed; it is the most telling one. The seed has no question's rows: a
draft model too small to begin the answer looks for nothing while it tries, and what was asked for
would be lost (notes/prefill.md).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import mlx.core as mx
import numpy as np

from core.errors import InternalError
from core.kv.cached_sequence import CachedSequence
from core.models.loader import LoadedModel
from core.prefill.read import read_prompt
from core.prefill.scorers.attention import Attended, AttentionSeen, watched
from core.prefill.scorers.lexical import stands_out
from core.prefill.scorers.score_propagation import carried, means_of
from core.prefill.scorers.scorer import Scored, ScorerInputs, Scoring


def score_by_draft_model(inputs: ScorerInputs) -> Scoring:
    """A `Score`; words decide whether something stands out. Raises `InternalError` without a draft model."""
    if inputs.draft is None:
        raise InternalError("The draft-model scorer was asked without its model.")
    scores = yield from draft_scores(
        inputs.draft.loaded,
        inputs.draft.sequence,
        inputs.ids,
        inputs.asking(),
        lookahead_tokens=inputs.settings.lookahead_tokens,
        chunk_tokens=inputs.settings.chunk_tokens,
    )
    words, question = inputs.words(), inputs.layout.question
    clear = stands_out(words, question, inputs.passages, inputs.loaded.word_rank)
    return Scored(carried(means_of(scores, inputs.passages)), clear)


def draft_scores(
    draft: LoadedModel,
    sequence: CachedSequence,
    ids: list[int],
    asking: list[int],
    *,
    lookahead_tokens: int,
    chunk_tokens: int,
) -> Generator[int, None, np.ndarray[Any, Any]]:
    """Yields the tokens scored so far; returns float32 scores, one for each of `ids`.

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
    for progress in read_prompt(draft.model, sequence, ids[: first + 1], chunk_tokens=chunk_tokens):
        yield progress.done_tokens
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
                raise InternalError("No layer of the draft model looks at the whole prompt.")
            tried = attended.result if tried is None else tried + attended.result
        sequence.append(ids[first:last])
        yield len(ids)
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
