"""Carried: what goes on past its passage is read to its end, and nothing else loses by it."""

from __future__ import annotations

import numpy as np
import pytest

from core.prefill.scorers.score_propagation import carried, carried_tokens
from core.prefill.select import select


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


def test_scores_of_tokens_are_carried_by_passages() -> None:
    scores = np.array([0, 0, 8, 4, 0, 0, 3, 1, 6], dtype=np.float32)
    found = carried_tokens(scores, 2)
    assert found.dtype == np.float32
    assert len(found) == 9
    assert found[::2] == pytest.approx(carried(np.array([0.0, 6.0, 0.0, 2.0, 6.0])))
    assert found[:8:2].tolist() == found[1::2].tolist()


def test_what_goes_on_past_a_passage_is_read_to_its_end() -> None:
    """250 tokens of which only the beginning is pointed at, among 120 passages that nothing points to."""
    rng = np.random.default_rng(3)
    none = np.zeros(4000, dtype=np.bool_)
    scores = rng.random(4000).astype(np.float32) * 0.25
    scores[1600:1632] = 1.0
    plain = select(scores, none, start=0, keep_pct=16, passage_tokens=32)
    found = select(carried_tokens(scores, 32), none, start=0, keep_pct=16, passage_tokens=32)
    assert found.kept.sum() == plain.kept.sum()
    assert plain.kept[50:58].sum() < 5
    assert found.kept[50:58].all()
