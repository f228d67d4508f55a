"""What a race says of its two answers: the parts of a sentence do not contradict each other."""

from __future__ import annotations

import pytest

from app.features.race import strings


@pytest.mark.parametrize(
    ("sooner_s", "read_sooner_s", "said"),
    [
        (8.94, 2.0, "Done 8.94 s sooner."),
        # Written more slowly, and done sooner all the same: why is said.
        (8.94, 12.0, "Done 8.94 s sooner: prompt read 12.0 s sooner, answer written 3.06 s later."),
        (-3.0, -5.0, "Done 3.00 s later: prompt read 5.00 s later, answer written 2.00 s sooner."),
        (-3.0, 0.0, "Done 3.00 s later."),
        (0.001, 0.0, "Done at the same time."),
    ],
)
def test_sooner_and_slower_are_both_explained(sooner_s: float, read_sooner_s: float, said: str) -> None:
    assert strings.sooner(sooner_s, read_sooner_s) == said


@pytest.mark.parametrize(
    ("ratio", "said"),
    [(0.0, "Too short to compare"), (0.72, "0.72× the plain speed"), (1.0, "1.00× the plain speed")],
)
def test_slower_is_not_called_faster(ratio: float, said: str) -> None:
    assert strings.headline(ratio) == said
    assert strings.headline(2.5) == "2.5× faster writing"
