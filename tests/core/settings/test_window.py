"""The app's own settings: declared like the others, and what they keep off in every chat."""

from __future__ import annotations

import pytest

from core.errors import SettingError
from core.settings import Setting, Settings, WindowSettings, assign, assign_all, declared, permitted, read
from core.settings.window import ZOOM_STEPS_PCT, Allowed, forbidden, next_zoom


@pytest.mark.parametrize("setting", declared(WindowSettings), ids=lambda s: s.key)
def test_each_says_what_it_is(setting: Setting) -> None:
    assert setting.title
    assert setting.help.endswith(".")
    assert read(WindowSettings(), setting.key) == setting.default
    assert set(setting.labels) == set(setting.choices)
    assert all(note.endswith(".") for note in setting.notes.values())


def test_they_are_no_settings_of_answers() -> None:
    assert not {each.key for each in declared()} & {each.key for each in declared(WindowSettings)}
    with pytest.raises(SettingError, match="There is no setting"):
        assign(WindowSettings(), "sampling.temperature", 0.5)
    with pytest.raises(SettingError, match="There is no setting"):
        assign(Settings(), "look.scheme", "dark")


@pytest.mark.parametrize(
    ("key", "value"), [("look.scheme", "pink"), ("look.zoom_pct", 10), ("look.zoom_pct", 900)]
)
def test_what_is_not_allowed_is_refused(key: str, value: object) -> None:
    with pytest.raises(SettingError, match="is not allowed"):
        assign(WindowSettings(), key, value)


def test_what_is_kept_off_is_off_in_every_chat() -> None:
    chat = assign_all(Settings(), [("tables.learn", True), ("prefill.save", True)])
    assert permitted(chat, Allowed()) == chat
    nothing = Allowed(learn=False, save=False)
    assert forbidden(nothing) == ("tables.learn", "prefill.save")
    kept = permitted(chat, nothing)
    assert not kept.tables.learn
    assert not kept.prefill.save
    on = [("tables.learn", True), ("prefill.save", True)]
    assert assign_all(kept, on) == chat


def test_the_zoom_goes_in_steps_and_stops_at_both_ends() -> None:
    walked = [70]
    for _ in ZOOM_STEPS_PCT:
        walked.append(next_zoom(walked[-1], 1))
    assert tuple(walked[:-1]) == ZOOM_STEPS_PCT
    assert walked[-1] == 200
    assert next_zoom(70, -1) == 70
    # From a size between two steps, too.
    assert (next_zoom(105, 1), next_zoom(105, -1), next_zoom(100, 0)) == (110, 100, 100)
