"""Calibration: it converges to what comes, keeps kinds apart, and survives as arrays."""

from __future__ import annotations

import random
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.drafting.calibration import KINDS, LEARNED_KIND, WEIGHTS, Calibration, kind_of


def log_odds(probability: float) -> float:
    return log(probability / (1 - probability))


@pytest.mark.parametrize("true", [0.1, 0.4, 0.7, 0.9])
@pytest.mark.parametrize("promised", [0.2, 0.5, 0.8])
def test_a_kind_that_promises_wrongly_is_corrected(promised: float, true: float) -> None:
    calibration, rng = Calibration(), random.Random(1)
    estimates = []
    for number in range(1500):
        if number > 500:
            estimates.append(calibration.probability(log_odds(promised), 3))
        calibration.learn(log_odds(promised), 3, rng.random() < true)
    # The prior never quite goes, for counts decay: it is some 15 guesses beside about 67.
    assert abs(np.mean(estimates) - true) < 0.5 * abs(promised - true) + 0.02
    assert calibration.probability(log_odds(promised), 4) == pytest.approx(promised)


def test_evidence_counts_in_the_direction_it_should() -> None:
    calibration = Calibration()
    assert calibration.context(8, 1, 0) > calibration.context(2, 1, 0) > calibration.context(2, 1, 3)
    assert calibration.context(4, 8, 0) > calibration.context(4, 1, 0)
    assert calibration.share(9, 10) > calibration.share(5, 10) > calibration.share(1, 10)
    assert calibration.unseen(0) > calibration.unseen(9)
    assert WEIGHTS.not_after < 0 < min(WEIGHTS.after)


def test_long_matches_are_worth_more_where_copying_goes_on() -> None:
    calibration = Calibration()
    before = calibration.context(20, 1, 0)
    for _ in range(40):
        calibration.learn_familiarity(True)
    assert calibration.familiarity > 0.9
    assert calibration.context(20, 1, 0) > before
    for _ in range(80):
        calibration.learn_familiarity(False)
    assert calibration.context(20, 1, 0) < before
    # Assumed tokens count as if they had come.
    assert calibration.context(20, 1, 0, 5) > calibration.context(20, 1, 0)


def test_kinds_are_length_classes_times_the_thread() -> None:
    assert [kind_of(n, False) for n in (0, 1, 2, 3, 6, 7, 14, 15, 30, 31, 9000)] == [
        *(0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10)
    ]
    assert {kind_of(n, t) for n in range(40) for t in (False, True)} == set(range(LEARNED_KIND))


@given(st.lists(st.tuples(st.floats(-9, 9), st.integers(0, KINDS - 1), st.booleans()), max_size=60))
def test_a_state_goes_on_where_it_was(events: list[tuple[float, int, bool]]) -> None:
    calibration, other = Calibration(), Calibration()
    for odds, kind, came in events:
        calibration.learn(odds, kind, came)
        calibration.learn_familiarity(came)
    other.restore(calibration.state())
    assert other.familiarity == calibration.familiarity
    for kind in range(KINDS):
        assert other.probability(0.5, kind) == pytest.approx(calibration.probability(0.5, kind))
        assert 0.0 < other.probability(0.5, kind) < 1.0
    assert other.context(7, 2, 1) == pytest.approx(calibration.context(7, 2, 1))


@pytest.mark.parametrize("spoil", ["short", "nan", "negative", "hits", "familiar"])
def test_a_state_that_is_none_is_refused(spoil: str) -> None:
    calibration = Calibration()
    calibration.learn(0.0, 2, True)
    state = calibration.state()
    if spoil == "short":
        state = state[:-1]
    elif spoil == "familiar":
        state[-1] = 1.5
    else:
        state[0] = {"nan": np.nan, "negative": -1.0, "hits": 9.0}[spoil]
    with pytest.raises(ValueError, match="calibration"):
        calibration.restore(state)
    assert calibration.probability(0.0, 2) > 0.5
