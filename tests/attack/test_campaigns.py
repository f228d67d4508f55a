"""Some cases of every campaign, with another seed in each run, so that no campaign goes stale unnoticed."""

from __future__ import annotations

import pytest

from tests.attack.campaign import new_seed, rerun_command
from tests.attack.registry import NAMES, campaign


@pytest.mark.sweep
@pytest.mark.parametrize("name", NAMES)
def test_quick_cases_find_no_fault(name: str) -> None:
    chosen, seed = campaign(name), new_seed()
    cases = chosen.quick_cases(seed)
    print(f"{name}: seed {seed}, cases {cases}")  # pytest shows it if anything fails
    outcomes = list(chosen.run(seed, cases))
    assert [outcome.case for outcome in outcomes] == cases
    faults = [
        f"{outcome.fault}\n    Repeat it with: {rerun_command(name, seed, outcome.case)}"
        for outcome in outcomes
        if outcome.fault
    ]
    assert not faults, "\n".join(faults)
