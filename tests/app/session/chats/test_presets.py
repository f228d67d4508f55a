"""Presets: what the app comes with is allowed, and known again by its settings."""

from __future__ import annotations

import pytest

from app.session.chats.presets import BUILT_IN, Preset, chosen, name_of
from core.settings import Settings, read


@pytest.mark.parametrize("preset", BUILT_IN, ids=lambda preset: preset.name)
def test_each_of_ours_is_allowed_and_known_again(preset: Preset) -> None:
    settings = chosen(preset, Settings())
    for override in preset.overrides:
        assert read(settings, override.key) == override.value
    assert name_of(settings, Settings(), ()) == preset.name
