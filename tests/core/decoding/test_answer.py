"""What an answer records of what cannot be applied."""

from __future__ import annotations

import pytest

from core.decoding.answer import Answer
from core.drafting.draft import Drafter
from core.events import Change
from core.settings import assign_all
from core.settings.declaration import read
from tests.core.drafters import answer_of
from tests.core.toy import toy_model


@pytest.fixture
def answer() -> Answer:
    return answer_of(toy_model(), [5, 6, 7], Drafter(), drafts="auto")


@pytest.mark.parametrize(
    ("key", "asked", "used", "words"),
    [
        ("drafting.drafter", "auto", "off", ("auto", "off")),
        ("auto.remembered", True, False, ("on", "off")),
        ("draft_model.model", "/some/folder", "", ("/some/folder", "none")),
        ("sampling.max_tokens", 2048, 7, ("2048", "7")),
    ],
)
def test_a_downgraded_setting_has_its_value_and_a_change_in_words(
    answer: Answer, key: str, asked: object, used: object, words: tuple[str, str]
) -> None:
    requested = answer.request.settings
    answer.settings = assign_all(answer.settings, [(key, asked)])
    answer.downgrade(key, used, "it must")
    assert read(answer.settings, key) == used
    assert answer.changes == [Change(key, *words, "it must")]
    assert answer.request.settings == requested
    answer.downgrade(key, asked, "it need not")
    assert answer.changes[1:] == [Change(key, words[1], words[0], "it need not")]


def test_a_part_of_a_setting_is_only_recorded(answer: Answer) -> None:
    answer.downgrade("drafting.drafter", "(chain)", "no trees", asked="auto (tree)")
    assert answer.settings == answer.request.settings
    assert answer.changes == [Change("drafting.drafter", "auto (tree)", "(chain)", "no trees")]
