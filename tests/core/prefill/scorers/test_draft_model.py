"""draft-model: queries of the question, the prompt's last token and the look-ahead, over all its keys."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.models.cache import make_prompt_cache

import core.prefill.scorers.draft_model as module
from core.errors import InternalError
from core.machine.profile import finished
from core.prefill.scorers.draft_model import Attended, draft_scores, score_by_draft_model, watched
from tests.core.architectures import tiny
from tests.core.prefill.gaps import prompt_of, sequence_of

TOKENS = 120


class Loaded:
    """As much of a loaded model as scoring needs."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def check_ids(self, ids: list[int]) -> None:
        """Every id of these models has an embedding row."""


def by_stock(model: Any, ids: list[int], asking: list[int], lookahead: int) -> np.ndarray[Any, Any]:
    """From one whole forward for each of the rows that count, nothing cached before it."""
    rows, tokens = [], list(ids)
    asked = []
    for row in asking:
        attended = Attended([row], len(ids))
        with watched(model, attended.add):
            mx.eval(model(mx.array(ids)[None], cache=make_prompt_cache(model)))
        asked.append(np.array(attended.result))
    for _ in range(1 + lookahead):
        attended = Attended([len(tokens) - 1], len(tokens), len(ids))
        with watched(model, attended.add):
            logits = model(mx.array(tokens)[None], cache=make_prompt_cache(model))[0, -1]
        tokens.append(int(mx.argmax(logits).item()))
        assert attended.result is not None
        rows.append(np.array(attended.result))
    return np.max([np.mean(rows, axis=0), *asked], axis=0)


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["llama", "qwen3", "qwen3_5", "nemotron_h", "gemma3_text"])
@pytest.mark.parametrize(("asking", "lookahead"), [([], 0), ([], 8), ([90, 91, 97, 118], 8)])
def test_scores_are_the_mean_over_what_was_tried_or_the_largest_of_the_question(
    name: str, asking: list[int], lookahead: int
) -> None:
    model, ids = tiny(name), prompt_of(random.Random(name), TOKENS)
    loaded: Any = Loaded(model)
    found = finished(
        draft_scores(loaded, sequence_of(model), ids, asking, lookahead_tokens=lookahead, chunk_tokens=TOKENS)
    )
    assert found.shape == (TOKENS,)
    assert np.allclose(found, by_stock(model, ids, asking, lookahead), atol=1e-5)


def test_rows_that_were_read_before_do_not_count() -> None:
    """The next turn's draft goes on from its cache; what is in it is not read again to be watched."""
    model, ids = tiny("llama"), prompt_of(random.Random(1), TOKENS)
    loaded: Any = Loaded(model)
    sequence = sequence_of(model)
    finished(draft_scores(loaded, sequence, ids[:100], [90], lookahead_tokens=0, chunk_tokens=50))
    found = finished(draft_scores(loaded, sequence, ids, [90, 110], lookahead_tokens=0, chunk_tokens=50))
    assert np.allclose(found, by_stock(model, ids, [110], 0), atol=1e-5)


def test_what_was_read_on_trial_is_taken_back() -> None:
    model, ids = tiny("llama"), prompt_of(random.Random(0), TOKENS)
    loaded: Any = Loaded(model)
    sequence = sequence_of(model)
    finished(draft_scores(loaded, sequence, ids, [100, 101], lookahead_tokens=8, chunk_tokens=50))
    assert sequence.tokens == ids[:-1]
    assert [entry.offset for entry in sequence.cache] == [TOKENS - 1] * 2


def test_keys_are_never_repeated_and_nothing_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Public ports repeated grouped keys and fetched a number for each chunk."""
    model, ids = tiny("llama"), prompt_of(random.Random(0), TOKENS)
    loaded: Any = Loaded(model)
    waits = 0
    settle = module.CachedSequence.settle

    def counted(self: Any) -> None:
        nonlocal waits
        waits += 1
        settle(self)

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("not while scoring")

    monkeypatch.setattr(module.CachedSequence, "settle", counted)
    for name in ("repeat", "tile"):
        monkeypatch.setattr(mx, name, refuse)
    scoring = draft_scores(loaded, sequence_of(model), ids, [100, 118], lookahead_tokens=8, chunk_tokens=40)
    assert finished(scoring).shape == (TOKENS,)
    assert waits == 3  # one a chunk that was read; none for the nine steps after them


def test_without_a_draft_model_it_says_so() -> None:
    inputs: Any = SimpleNamespace(draft=None)
    with pytest.raises(InternalError, match="no draft model"):
        finished(score_by_draft_model(inputs))
