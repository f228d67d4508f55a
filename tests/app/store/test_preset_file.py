"""Presets as a file: out and in again, and what is refused."""

from __future__ import annotations

import msgspec
import pytest

from app.session.chats.presets import BUILT_IN, Override, Preset, with_imported
from app.store.faults import TransferError
from app.store.preset_file import from_json, to_json

MINE = Preset("Mine", (Override("sampling.temperature", 0.5), Override("chat.system_prompt", "Be “brief”.")))


def test_what_goes_out_comes_in() -> None:
    assert from_json(to_json([*BUILT_IN, MINE])) == (*BUILT_IN, MINE)


def test_it_can_be_read_and_written_by_hand() -> None:
    text = '{"draftlight_presets": 1, "presets": [{"name": " My  own ", "settings": {"sampling.top-p": 1}}]}'
    assert from_json(text.encode()) == (Preset("My own", (Override("sampling.top_p", 1),)),)


@pytest.mark.parametrize(
    ("settings", "said", "allowed"),
    [
        ({"sampling.warmth": 1}, "sampling.warmth", "Did you mean"),
        ({"sampling.temperature": 2.5}, "sampling.temperature", "from 0 to 2"),
        ({"sampling.max_tokens": "many"}, "sampling.max_tokens", "a whole number from 1 to 131072"),
        ({"drafting.drafter": "best"}, "drafting.drafter", "one of off, "),
        ({"ngram_simple.n_min": 5, "ngram_simple.n_max": 3}, "shortest match", "at most"),
        ({"look.scheme": "dark"}, "look.scheme", "the groups are"),
    ],
)
def test_a_setting_that_is_not_allowed_is_named_with_what_is(
    settings: dict[str, object], said: str, allowed: str
) -> None:
    file = {"draftlight_presets": 1, "presets": [{"name": "Odd", "settings": settings}]}
    with pytest.raises(TransferError) as caught:
        from_json(msgspec.json.encode(file))
    assert caught.value.message.startswith("Preset “Odd”: ")
    assert said in caught.value.message
    assert allowed in caught.value.hint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("\xff", "is not JSON"),
        ("[]", "holds no presets"),
        ('{"draftlight_chats": 1}', "holds no presets"),
        ('{"draftlight_presets": 1, "presets": []}', "holds no presets"),
        ('{"draftlight_presets": true, "presets": []}', "holds no presets"),
        ('{"draftlight_presets": 2, "presets": []}', "newer Draftlight"),
        ('{"draftlight_presets": 1, "presets": [{"name": "A"}]}', "cannot be read"),
        (
            '{"draftlight_presets": 1, "presets": [{"name": "A", "settings": {}, "more": 1}]}',
            "cannot be read",
        ),
        ('{"draftlight_presets": 1, "presets": [{"name": " ", "settings": {}}]}', "no usable name"),
    ],
)
def test_a_file_that_is_none_is_refused(text: str, said: str) -> None:
    with pytest.raises(TransferError, match=said):
        from_json(text.encode("latin-1"))


def test_imported_ones_replace_nothing_and_come_once() -> None:
    other = Preset("Mine", (Override("sampling.temperature", 0.9),))
    own = with_imported((MINE,), (MINE, BUILT_IN[0], other, other))
    assert own == (MINE, Preset("Mine (2)", other.overrides))
    assert with_imported(own, (other,)) == own
