"""Selection: what must be kept is kept, the best of the rest, as many as were asked for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.prefill.select import TAIL_TOKENS, select


@given(
    st.integers(2, 3000),
    st.floats(1, 100),
    st.sampled_from([8, 32, 100]),
    st.integers(0, 1000),
    st.integers(0, 2**31),
)
def test_the_rules_hold(tokens: int, keep: float, passage: int, start: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.random(tokens).astype(np.float32)
    protected = rng.random(tokens) < 0.002
    chosen = select(scores, protected, start=start, keep_pct=keep, passage_tokens=passage)
    assert chosen.starts[0] == start
    assert chosen.ends[-1] == start + tokens
    assert (chosen.starts[1:] == chosen.ends[:-1]).all()
    assert ((chosen.scores >= 0) & (chosen.scores <= 1)).all()
    positions = chosen.positions
    assert positions.dtype == np.int32
    assert (np.diff(positions) > 0).all()
    held = {*(positions - start).tolist(), tokens - 1}
    assert set(range(max(0, tokens - TAIL_TOKENS), tokens)) <= held
    assert set(np.flatnonzero(protected).tolist()) <= held
    assert 0 in held
    must = np.array([p.any() for p in np.split(protected, range(passage, tokens, passage))])
    must[0] = True
    must |= chosen.ends - start > tokens - TAIL_TOKENS
    wanted = math.ceil(keep / 100 * tokens / passage)
    assert chosen.kept.sum() == min(wanted + must.sum(), len(chosen.kept))
    means = np.array([part.mean() for part in np.split(scores, range(passage, tokens, passage))])
    earned, lost = means[chosen.kept & ~must], means[~chosen.kept]
    if len(earned) and len(lost):
        assert earned.min() >= lost.max() - 1e-6


@pytest.mark.parametrize("keep", [10, 20, 30, 50, 100])
def test_the_share_is_what_is_chosen(keep: int) -> None:
    """What must be kept is read besides."""
    rng = np.random.default_rng(0)
    none = np.zeros(8000, dtype=np.bool_)
    chosen = select(rng.random(8000), none, start=0, keep_pct=keep, passage_tokens=32)
    must = 32 + TAIL_TOKENS
    assert len(chosen.positions) + 1 == min(8000, math.ceil(80 * keep / 32) * 32 + must)


@pytest.mark.parametrize("latest", [0.25, 0.75, 1.0])
def test_a_part_of_the_share_goes_to_what_was_said_last(latest: float) -> None:
    """As many tokens as without; the rest of the places still goes to the best."""
    rng = np.random.default_rng(1)
    none, scores = np.zeros(8000, dtype=np.bool_), rng.random(8000).astype(np.float32)
    scores[3200:3232] = 2.0
    plain = select(scores, none, start=0, keep_pct=20, passage_tokens=32)
    chosen = select(scores, none, start=0, keep_pct=20, passage_tokens=32, latest=latest)
    assert len(chosen.positions) == len(plain.positions)
    end = TAIL_TOKENS + round(latest * 50) * 32
    assert set(range(8000 - end, 7999)) <= set(chosen.positions.tolist())
    assert bool(chosen.kept[100]) == (latest < 1.0)


def test_a_window_is_kept_whole() -> None:
    none = np.zeros(4000, dtype=np.bool_)
    chosen = select(np.zeros(4000), none, start=0, keep_pct=1, passage_tokens=32, window_tokens=1024)
    assert set(range(4000 - 1024, 3999)) <= set(chosen.positions.tolist())
    assert len(chosen.positions) < 1200
