"""Carried: what goes on past its passage is read to its end, and nothing else loses by it."""

from __future__ import annotations

import numpy as np
import pytest

from core.prefill.layout import Passages
from core.prefill.plan import select
from core.prefill.scorers.scorer import carried, means_of
from tests.core.prefill.test_select import fixed


def test_each_passage_hands_on_what_it_has_and_got() -> None:
    scores = np.array([0.0, 10.0, 0.0, 7.0, 0.0, 0.0, 20.0])
    found = carried(scores)
    handed = found[2] / 10.0
    assert 0.5 < handed < 1.0
    assert found == pytest.approx([0.0, 10.0, 10 * handed, 7.0, 7 * handed, 7 * handed**2, 20.0])
    assert scores.tolist() == [0.0, 10.0, 0.0, 7.0, 0.0, 0.0, 20.0]


def test_a_better_score_of_its_own_is_kept() -> None:
    rising = np.arange(1.0, 9.0)
    assert carried(rising).tolist() == rising.tolist()
    assert carried(rising[:1]).tolist() == [1.0]


def test_a_passage_has_the_mean_of_its_tokens() -> None:
    scores = np.array([9, 0, 0, 8, 4, 0, 3, 1, 6], dtype=np.float32)
    found = means_of(scores, Passages(np.array([1, 3, 6], np.int32), 9, np.empty(0, np.int32)))
    assert found.dtype == np.float32
    assert found.tolist() == [0.0, 4.0, pytest.approx(10 / 3)]


def test_what_goes_on_past_a_passage_is_read_to_its_end() -> None:
    """250 tokens of which only the beginning is pointed at, among 120 passages that nothing points to."""
    rng = np.random.default_rng(3)
    none = np.zeros(4000, dtype=np.bool_)
    scores = rng.random(125).astype(np.float32) * 0.15
    scores[50] = 1.0
    plain = select(scores, none, fixed(4000), keep_pct=16)
    found = select(carried(scores), none, fixed(4000), keep_pct=16)
    assert found.kept.sum() == plain.kept.sum()
    assert plain.kept[50:58].sum() < 5
    assert found.kept[50:58].all()
