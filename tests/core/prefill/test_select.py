"""Selection: what must be kept is kept, the best of the rest, as many as were asked for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.prefill.layout import Passages
from core.prefill.plan import select
from core.settings.prefill import TAIL_TOKENS


def ending(tokens: int) -> np.ndarray[Any, Any]:
    """What is always read of a prompt without messages: its end."""
    return np.arange(tokens) >= tokens - TAIL_TOKENS


def fixed(tokens: int, passage: int = 32, start: int = 0) -> Passages:
    """Passages of one length, of a prompt of which `start` tokens are held."""
    firsts = np.arange(start, start + tokens, passage, dtype=np.int32)
    return Passages(firsts, start + tokens, np.empty(0, np.int32))


@given(
    st.lists(st.integers(1, 70), min_size=2, max_size=200),
    st.floats(1, 100),
    st.integers(0, 1000),
    st.integers(0, 2**31),
)
def test_the_rules_hold(lengths: list[int], keep: float, start: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    tokens, firsts = sum(lengths), np.cumsum([0, *lengths[:-1]]).astype(np.int32)
    passages = Passages(start + firsts, start + tokens, np.empty(0, np.int32))
    scores = rng.random(len(lengths)).astype(np.float32)
    always = np.append(np.ones(start, np.bool_), rng.random(tokens) < 0.002)
    always[-1] = True
    chosen = select(scores, always, passages, keep_pct=keep)
    assert chosen.starts.tolist() == (start + firsts).tolist()
    assert (chosen.starts[1:] == chosen.ends[:-1]).all()
    assert ((chosen.scores >= 0) & (chosen.scores <= 1)).all()
    positions = chosen.positions
    assert positions.dtype == np.int32
    assert (np.diff(positions) > 0).all()
    held = {*(positions - start).tolist(), tokens - 1}
    assert set(np.flatnonzero(always[start:]).tolist()) <= held
    assert 0 in held
    must = np.array([part.any() for part in np.split(always[start:], firsts[1:])])
    must[0] = True
    if not must.all():
        best = np.flatnonzero(~must)[scores[~must].argmax()]
        assert chosen.scores[best] == 1.0
    earned, lost = scores[chosen.kept & ~must], scores[~chosen.kept]
    if len(earned) and len(lost):
        assert earned.min() >= lost.max()
    spent = int(passages.lengths[chosen.kept & ~must].sum())
    share = keep / 100 * tokens
    if len(lost):
        assert share - 1e-6 <= spent < share + max(lengths)


@pytest.mark.parametrize("keep", [10, 20, 30, 50, 100])
def test_the_share_is_what_is_chosen(keep: int) -> None:
    """What must be kept is read besides."""
    rng = np.random.default_rng(0)
    chosen = select(rng.random(250), ending(8000), fixed(8000), keep_pct=keep)
    must = 32 + TAIL_TOKENS
    assert len(chosen.positions) + 1 == min(8000, math.ceil(80 * keep / 32) * 32 + must)


@pytest.mark.parametrize("latest", [0.25, 0.75, 1.0])
def test_a_part_of_the_share_goes_to_what_was_said_last(latest: float) -> None:
    """As many tokens as without, but for a part of a passage; the rest still goes to the best."""
    rng = np.random.default_rng(1)
    scores = rng.random(250).astype(np.float32)
    scores[100] = 2.0
    plain = select(scores, ending(8000), fixed(8000), keep_pct=20)
    chosen = select(scores, ending(8000), fixed(8000), keep_pct=20, latest=latest)
    assert len(chosen.positions) == len(plain.positions)
    end = TAIL_TOKENS + math.ceil(latest * 50) * 32
    assert set(range(8000 - end, 7999)) <= set(chosen.positions.tolist())
    assert bool(chosen.kept[100]) == (latest < 1.0)


def test_a_window_is_kept_whole() -> None:
    none = np.zeros(4000, dtype=np.bool_)
    chosen = select(np.zeros(125), none, fixed(4000), keep_pct=1, window_tokens=1024)
    assert set(range(4000 - 1024, 3999)) <= set(chosen.positions.tolist())
    assert len(chosen.positions) < 1200
