"""early-layers: scores passages by what the target's own first layers attend to.

The new tokens go through the stock forward on a cache of their own, and the forward is broken
off at the door of the last layer's attention; MLX computes only what somebody asks for, so that
layer costs its keys and no more. No second model, no hooks on layers, any architecture.

Rows that count are the question's and the prompt's last; there is no look-ahead, for a few
layers cannot answer. Cost: (layers − 1) of the model's depth.
"""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np
from mlx_lm.models.cache import KVCache

from core.errors import InternalError
from core.kv.entries import leaves
from core.models.loader import LoadedModel
from core.prefill.scorers.attention import Attended, AttentionSeen, watched
from core.prefill.scorers.recent import Recent
from core.prefill.scorers.scorer import ASKING_ROWS, ScorerInputs, Scoring

_SPAN_TOKENS = 512


class _Enough(Exception):
    """Breaks off a forward; nothing went wrong."""


def score_by_early_layers(inputs: ScorerInputs) -> Scoring:
    """A `Score`."""
    settings, last = inputs.settings, len(inputs.ids) - 1
    return early_scores(
        inputs.loaded,
        inputs.new_ids,
        [at - inputs.start for at in (*inputs.asking(), last)],
        layers=settings.score_layers,
        chunk_tokens=settings.chunk_tokens,
    )


def early_scores(
    loaded: LoadedModel, ids: list[int], asking: list[int], *, layers: int, chunk_tokens: int
) -> Scoring:
    """Yields the tokens scored so far; returns float32 scores, one for each of `ids`.

    `asking` are the rows that count, among the last `ASKING_ROWS` of `ids`. More than `layers` run if
    none of these sees the whole prompt. Raises `InternalError` if none at all does.
    """
    cache = [Recent(_SPAN_TOKENS) if type(entry) is KVCache else entry for entry in loaded.new_cache()]
    index = {id(leaf): at for at, entry in enumerate(cache) for leaf in leaves([entry])}
    first = next((index[id(leaf)] for leaf in leaves(cache) if isinstance(leaf, KVCache)), None)
    if first is None:
        raise InternalError("No layer of this model looks at the whole prompt.")
    last = max(layers - 1, first)
    done = 0
    seen_all = Attended([], 1)
    while done < len(ids):
        left = len(ids) - done
        width = left if left <= ASKING_ROWS else min(chunk_tokens, left - ASKING_ROWS)
        rows = [row - done for row in asking if row >= done] if width == left else []
        if rows:
            _show_all(cache)
        seen_all = Attended(rows, len(ids))
        reached = _run(loaded, ids[done : done + width], cache, index, last, seen_all if rows else None)
        done += width
        mx.eval([entry.state for entry in cache[: reached + 1]])
        mx.clear_cache()
        yield done
    found = seen_all.result
    if found is None:
        raise InternalError("The attention of this model cannot be seen.")
    return np.array(found)


def _show_all(cache: list[Any]) -> None:
    for entry in cache:
        if isinstance(entry, Recent):
            entry.span = None


def _run(
    loaded: LoadedModel,
    chunk: list[int],
    cache: list[Any],
    index: dict[int, int],
    last: int,
    attended: Attended | None,
) -> int:
    """One chunk up to the first attention at or after entry `last`; returns that entry's index."""
    reached = -1

    def see(seen: AttentionSeen) -> None:
        nonlocal reached
        reached = index.get(id(seen.entry), reached)
        if attended is not None:
            attended.add(seen)
        if reached >= last:
            raise _Enough

    try:
        with watched(loaded.model, see):
            loaded.model(mx.array(chunk)[None], cache=cache)
    except _Enough:
        pass
    if reached < 0:
        raise InternalError("The attention of this model cannot be seen.")
    return reached
