"""Settings are declared once; everything else reads the declaration."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.drafting.registry import DRAFTERS
from core.errors import SettingError
from core.settings import Setting, Settings, assign, declared, parse_all, read
from core.settings.declaration import assign_allowed
from core.settings.drafting import DrafterName

NUMBERS = [s for s in declared() if s.kind in ("integer", "number")]


@pytest.mark.parametrize("setting", declared(), ids=lambda s: s.key)
def test_each_says_what_it_is(setting: Setting) -> None:
    assert setting.title
    assert setting.help.endswith(".")
    assert setting.allowed
    assert read(Settings(), setting.key) == setting.default
    assert read(assign(Settings(), setting.key, setting.default), setting.key) == setting.default
    assert read(parse_all(Settings(), [(setting.key, str(setting.default))]), setting.key) == setting.default


@pytest.mark.parametrize("setting", NUMBERS, ids=lambda s: s.key)
def test_bounds_are_kept(setting: Setting) -> None:
    assert setting.minimum is not None
    assert setting.maximum is not None
    below = setting.minimum - 1
    for value in (below, setting.maximum + 1, 10**400, -(10**5000), float("nan"), "seven", None, True):
        with pytest.raises(SettingError) as caught:
            assign(Settings(), setting.key, value)
        assert setting.key in caught.value.message
        assert setting.allowed in caught.value.hint


@given(st.sampled_from(NUMBERS), st.floats(allow_nan=True, allow_infinity=True))
def test_a_number_is_kept_or_refused(setting: Setting, value: float) -> None:
    try:
        kept = read(assign(Settings(), setting.key, value), setting.key)
    except SettingError:
        return
    assert kept == value
    assert setting.minimum <= kept <= setting.maximum


@pytest.mark.parametrize("key", ["", "k", "ngram_simple", "ngram_simple.q", "nothing.k", "a.b.c"])
def test_unknown_keys_are_refused_with_known_ones(key: str) -> None:
    with pytest.raises(SettingError, match=r"Did you mean|the groups are drafting, ") as caught:
        assign(Settings(), key, 1)
    assert len(str(caught.value)) < 300


def test_hyphens_and_text_are_taken_on_the_command_line() -> None:
    texts = [("ngram-simple.n-max", "6"), ("sampling.temperature", "1"), ("chat.system-prompt", "12")]
    settings = parse_all(Settings(), texts)
    assert settings.ngram_simple.n_max == 6
    assert (settings.sampling.temperature, settings.chat.system_prompt) == (1.0, "12")


def test_what_is_allowed_does_not_depend_on_the_order() -> None:
    for values in permutations([("ngram_simple.n_min", 6), ("ngram_simple.n_max", 8), ("no.such", 1)]):
        settings, errors = assign_allowed(Settings(), values)
        assert (settings.ngram_simple.n_min, settings.ngram_simple.n_max) == (6, 8)
        assert [values[place][0] for place in errors] == ["no.such"]


def test_fields_that_belong_together_are_checked_together() -> None:
    changed = parse_all(Settings(), [("ngram_simple.n_min", "9"), ("ngram_simple.n_max", "12")])
    assert (changed.ngram_simple.n_min, changed.ngram_simple.n_max) == (9, 12)


def test_fields_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(SettingError, match="longer than"):
        assign(Settings(), "ngram_simple.n_min", 9)


def test_drafter_names_are_the_registry() -> None:
    assert get_args(DrafterName) == tuple(DRAFTERS)


def test_every_group_named_like_a_drafter_belongs_to_one() -> None:
    groups = {field.name for field in msgspec.structs.fields(Settings)}
    parameterised = {name.replace("-", "_") for name in DRAFTERS} & groups
    others = {"drafting", "gate", "decoding", "sampling", "prefill", "kv", "tables", "chat"}
    assert parameterised == groups - others


def test_a_typed_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/of-mine")
    (tmp_path / "owner" / "here").mkdir(parents=True)
    for key, text, meant in (
        ("cacheback.frozen_file", "tables/mine", str(tmp_path / "tables" / "mine")),
        ("cacheback.frozen_file", "~/mine", "/home/of-mine/mine"),
        ("cacheback.frozen_file", "/a/b", "/a/b"),
        ("cacheback.frozen_file", "", ""),
        ("draft_model.model", "owner/here", str(tmp_path / "owner" / "here")),
        ("draft_model.model", "owner/hub-name", "owner/hub-name"),
        ("chat.system_prompt", "owner/here", "owner/here"),
    ):
        assert read(parse_all(Settings(), [(key, text)]), key) == meant


def test_every_setting_that_names_a_file_says_so() -> None:
    """By their words: whoever adds one that is not found here has to look at this."""
    words = ("file", "folder", "path")
    told = {s.key for s in declared() if s.kind == "text" and any(word in s.help.lower() for word in words)}
    named = {s.key for s in declared() if s.names}
    assert named == told | {"cacheback.frozen_file"}
