"""Calibration: it converges to what comes, and keeps kinds apart."""

from __future__ import annotations

import random
from math import log

import numpy as np
import pytest
from msgspec.structs import replace

from core.drafting.calibration import LEARNED_KIND, WEIGHTS, Calibration, kind_of


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
    assert calibration.context(20, 1, 0) > before
    for _ in range(80):
        calibration.learn_familiarity(False)
    assert calibration.context(20, 1, 0) < before
    # Assumed tokens count as if they had come.
    assert calibration.context(20, 1, 0, 5) > calibration.context(20, 1, 0)


def test_what_stands_behind_guesses_has_a_weight_of_its_own() -> None:
    without, with_it = (Calibration(replace(WEIGHTS, reached=weight)) for weight in (0.0, 0.7))
    for assumed in (0, 1, 5):
        more = 0.7 if assumed else 0.0
        for given in ((8, 1, 0), (2, 9, 3)):
            expected = without.context(*given, assumed) + more
            assert with_it.context(*given, assumed) == pytest.approx(expected)
        assert with_it.unseen(4, assumed) == pytest.approx(without.unseen(4, assumed) + more)


def test_kinds_are_length_classes_times_the_thread() -> None:
    assert [kind_of(n, False) for n in (0, 1, 2, 3, 6, 7, 14, 15, 30, 31, 9000)] == [
        *(0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10)
    ]
    assert {kind_of(n, t) for n in range(40) for t in (False, True)} == set(range(LEARNED_KIND))
