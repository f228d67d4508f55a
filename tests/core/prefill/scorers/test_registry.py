"""The registry and the setting name the same scorers."""

from __future__ import annotations

from core.prefill.scorers import SCORERS
from core.settings import prefill


def test_each_name_of_the_setting_is_a_scorer() -> None:
    assert tuple(SCORERS) == prefill.SCORERS
    assert all(name == spec.name for name, spec in SCORERS.items())
