"""Which seed an answer gets."""

from __future__ import annotations

from core.settings import Settings, assign
from core.settings.request import drawn_again


def test_another_version_has_another_seed() -> None:
    settings = assign(Settings(), "sampling.seed", 7)
    again = drawn_again(settings)
    assert again.sampling.seed != 7
    assert assign(again, "sampling.seed", 7) == settings
