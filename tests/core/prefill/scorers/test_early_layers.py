"""early-layers: only the first layers run, at a cost that does not grow, and what they see counts."""

from __future__ import annotations

import random
from collections.abc import Generator
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.models.cache import KVCache, make_prompt_cache

import core.prefill.scorers.early_layers as early_module
from core.errors import InternalError
from core.prefill.scorers.attention import Attended, watched
from core.prefill.scorers.early_layers import early_scores
from core.prefill.scorers.recent import Recent
from tests.core.architectures import ARCHITECTURES, tiny
from tests.core.prefill.gaps import prompt_of

TOKENS = 200


class Loaded:
    """As much of a loaded model as scoring needs."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def new_cache(self) -> list[Any]:
        return list(make_prompt_cache(self.model))


def finished(scoring: Generator[int, None, np.ndarray[Any, Any]]) -> tuple[list[int], np.ndarray[Any, Any]]:
    steps: list[int] = []
    while True:
        try:
            steps.append(next(scoring))
        except StopIteration as end:
            return steps, end.value


def scores(model: Any, ids: list[int], layers: int, chunk_tokens: int = 50) -> np.ndarray[Any, Any]:
    rows = [len(ids) - 7, len(ids) - 1]
    loaded: Any = Loaded(model)
    steps, found = finished(early_scores(loaded, ids, rows, layers=layers, chunk_tokens=chunk_tokens))
    assert steps == sorted(steps)
    assert steps[-1] == len(ids) == len(found)
    assert max(np.diff([0, *steps])) <= max(chunk_tokens, early_module.ASKING_ROWS)
    return found


def stock_scores(model: Any, ids: list[int], layers: int) -> np.ndarray[Any, Any]:
    """From one whole forward of the stock model, only its first layers counted."""
    cache = make_prompt_cache(model)
    attended = Attended([len(ids) - 7, len(ids) - 1], len(ids))
    first = {id(entry) for entry in cache[:layers]}
    with watched(model, lambda seen: attended.add(seen) if id(seen.entry) in first else None):
        model(mx.array(ids)[None], cache=cache)
    assert attended.result is not None
    return np.array(attended.result)


# How many layers run at least, so that one looks at the whole prompt. Ministral 3 scales by a
# token's place in the chunk, so its chunks give something else; Mistral 3's windows lie on full caches.
FIRST_FULL = {"gemma3_text": 3, "mistral": 3, "gpt_oss": 2, "qwen3_5": 2, "nemotron_h": 2}
ALIKE = [name for name in ARCHITECTURES if name not in ("llama4", "mistral3", "ministral3")]


@pytest.mark.parametrize("name", ALIKE)
def test_scores_are_those_of_the_stock_model_s_first_layers(name: str) -> None:
    model, ids = tiny(name), prompt_of(random.Random(name), TOKENS)
    layers = FIRST_FULL.get(name, 2)
    assert np.allclose(scores(model, ids, layers), stock_scores(model, ids, layers), atol=1e-5)
    if name in FIRST_FULL:
        assert np.allclose(scores(model, ids, 1), scores(model, ids, layers), atol=1e-5)


def test_later_layers_do_not_run() -> None:
    model: Any = tiny("llama")
    model.layers[1].mlp = None
    ids = prompt_of(random.Random(0), TOKENS)
    assert np.isfinite(scores(model, ids, 1)).all()
    assert np.isfinite(scores(model, ids, 2)).all()  # up to its attention
    model.layers[0].mlp = None
    with pytest.raises(TypeError):
        scores(model, ids, 2)


def test_a_span_bounds_what_is_shown_but_not_what_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    model, ids = tiny("llama"), prompt_of(random.Random(0), TOKENS)
    shown: list[int] = []
    update = Recent.update_and_fetch

    def noted(self: Recent, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        out = update(self, keys, values)
        shown.append(out[0].shape[2])
        return out

    monkeypatch.setattr(Recent, "update_and_fetch", noted)
    monkeypatch.setattr(early_module, "_SPAN_TOKENS", 16)
    found = scores(model, ids, 2, 32)
    assert max(shown[:-2]) <= 4 + 16 + 32
    assert shown[-2:] == [TOKENS, TOKENS]
    assert found[40] > 0
    assert not np.allclose(found, stock_scores(model, ids, 2), atol=1e-5)


@pytest.mark.parametrize("widths", [[5, 1, 9, 1, 1, 20, 3], [40], [1] * 30])
def test_recent_shows_the_first_and_the_latest_columns(widths: list[int]) -> None:
    recent, stock = Recent(8), KVCache()
    for width in widths:
        new = mx.random.normal((1, 2, width, 4))
        mask = recent.make_mask(width, return_array=True)
        keys, values = recent.update_and_fetch(new, 2 * new)
        every, _ = stock.update_and_fetch(new, 2 * new)
        past = stock.offset - width
        columns = [*range(min(4, past)), *range(max(4, past - 8), stock.offset)]
        columns = sorted({*columns, *range(past, stock.offset)}) if past > 12 else list(range(stock.offset))
        assert mx.array_equal(keys, every[..., mx.array(columns), :])
        assert mx.array_equal(values, 2 * keys)
        if mask is not None:
            assert mask.shape == (width, len(columns))
    recent.span = None
    assert recent.update_and_fetch(new, new)[0].shape[2] == stock.offset + widths[-1]


def test_a_model_without_full_attention_cannot_score() -> None:
    model = tiny("llama4")
    loaded: Any = Loaded(model)
    loaded.new_cache = lambda: list(make_prompt_cache(model))[:3]
    with pytest.raises(InternalError, match="No layer"):
        finished(early_scores(loaded, prompt_of(random.Random(0), 50), [49], layers=2, chunk_tokens=32))
