"""The registry and the setting name the same scorers."""

from __future__ import annotations

from core.models.library.places import find
from core.prefill.scorers.registry import SCORERS


def test_each_name_of_the_setting_is_a_scorer() -> None:
    assert {"auto", *SCORERS} == set(find("prefill.scorer").choices)
    assert all(name == spec.name for name, spec in SCORERS.items())
