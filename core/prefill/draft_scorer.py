"""draft-model: scores passages by what a smaller model of the family attends to (seed 002).

The draft model reads the whole prompt, then answers a few tokens on trial. The queries of the
prompt's last token and of each trial token count alike. Nothing is waited for between these
steps; the scores are one evaluation.

Deviation: attention is watched from the prompt's last token on, which ports that began with the
first trial token missed; it is the most telling one (FACTS).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import mlx.core as mx
import numpy as np

from core.errors import InternalError
from core.kv.ledger import Ledger
from core.models.loader import LoadedModel
from core.prefill.attention import Attended, watched
from core.prefill.read import read_prompt


def draft_scores(
    draft: LoadedModel, ledger: Ledger, ids: list[int], *, lookahead_tokens: int, chunk_tokens: int
) -> Generator[int, None, np.ndarray[Any, Any]]:
    """Yields the tokens scored so far; returns float32 scores, one for each of `ids`.

    `ledger` is the draft model's; it holds `ids` but the last one afterwards, where it keeps all
    positions. Raises `InternalError` if no layer sees the whole prompt.
    """
    ledger.reuse(ids, whole=True)
    for progress in read_prompt(draft.model, ledger, ids, chunk_tokens=chunk_tokens):
        yield progress.done_tokens
    try:
        total: mx.array | None = None
        block = mx.array(ids[-1:])
        for step in range(1 + lookahead_tokens):
            attended = Attended([0], len(ids) + step, len(ids))
            with watched(draft.model, attended.add):
                logits = draft.model(block[None], cache=ledger.cache)[0, -1]
            block = mx.argmax(logits, keepdims=True)
            if attended.result is None:
                raise InternalError("No layer of the draft model looks at the whole prompt.")
            total = attended.result if total is None else total + attended.result
        yield len(ids)
        return np.array(total) / (1 + lookahead_tokens)
    finally:
        if ledger.keeps_all:
            ledger.truncate(len(ledger.tokens))
        else:
            ledger.clear()
