"""Presets: the built-in ones are allowed; own ones are stored, changed, renamed and found."""

from __future__ import annotations

import pytest

from app.session.chats.presets import (
    BUILT_IN,
    Override,
    Preset,
    chosen,
    chosen_keys,
    find,
    known,
    name_of,
    renamed,
    updated,
    with_preset,
)
from core.settings import Settings, assign_all, read


@pytest.mark.parametrize("preset", BUILT_IN, ids=lambda preset: preset.name)
def test_each_of_ours_is_allowed_and_known_again(preset: Preset) -> None:
    settings = chosen(preset, Settings())
    for override in preset.overrides:
        assert read(settings, override.key) == override.value
    assert name_of(settings, Settings(), ()) == preset.name


WARM = Override("sampling.temperature", 1.3)
OWN = (Preset("Tales", (WARM,)), Preset("JSON", (Override("sampling.top_p", 0.5),)))


def test_own_presets_hide_built_in_ones_of_their_name() -> None:
    names = [preset.name for preset in known(OWN)]
    assert names == [*(each.name for each in BUILT_IN if each.name != "JSON"), "Tales", "JSON"]
    assert find("JSON", OWN) == OWN[1]
    assert find("JSON", ()) in BUILT_IN
    assert find("Letters", OWN) is None
    assert name_of(chosen(OWN[0], Settings()), Settings(), OWN) == "Tales"
    assert name_of(chosen(OWN[0], Settings()), Settings(), ()) == ""
    assert name_of(Settings(), Settings(), (Preset("As it is", ()),)) == "", "the defaults have no name"


def test_a_stored_preset_replaces_one_of_its_name_and_no_other() -> None:
    settings = assign_all(Settings(), [("sampling.top_k", 7)])
    stored = with_preset(OWN, "Tales", settings, Settings(), ["sampling.temperature"])
    temperature = Override("sampling.temperature", read(Settings(), "sampling.temperature"))
    assert stored[0] == OWN[1]
    assert (stored[1].name, set(stored[1].overrides)) == (
        "Tales",
        {temperature, Override("sampling.top_k", 7)},
    )
    assert with_preset(OWN, "Letters", settings, Settings())[:2] == OWN
    assert chosen_keys(stored[1].overrides) == {"sampling.temperature", "sampling.top_k"}


def test_a_changed_or_renamed_preset_keeps_its_place_and_what_it_sets() -> None:
    changed = updated(OWN, "Tales", Settings(), Settings())
    assert [each.name for each in changed] == ["Tales", "JSON"]
    temperature = Override("sampling.temperature", read(Settings(), "sampling.temperature"))
    assert changed == (Preset("Tales", (temperature,)), OWN[1])
    assert renamed(OWN, "Tales", "Stories") == (Preset("Stories", (WARM,)), OWN[1])
    assert updated(OWN, "Letters", Settings(), Settings()) == renamed(OWN, "Letters", "Mail") == OWN
