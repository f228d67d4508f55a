"""The quick part of every campaign."""

from __future__ import annotations

import pytest

from tests.attack.registry import NAMES, campaign


@pytest.mark.sweep
@pytest.mark.parametrize("name", NAMES)
def test_quick_part_finds_no_fault(name: str) -> None:
    chosen = campaign(name)
    outcomes = list(chosen.run(1, range(chosen.quick)))
    assert [outcome.case for outcome in outcomes] == list(range(chosen.quick))
    assert not [outcome for outcome in outcomes if outcome.fault]
