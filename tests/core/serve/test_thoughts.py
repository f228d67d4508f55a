"""Thoughts told apart from answers, however the text was cut."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.serve.thoughts import TAGS, Thoughts


def told(parts: Iterable[str]) -> tuple[str, str]:
    thoughts, both = Thoughts(), [("", "")]
    both += [thoughts.add(part) for part in parts]
    both.append(thoughts.end())
    return "".join(thought for thought, _ in both), "".join(text for _, text in both)


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_thought_at_the_beginning_is_told_apart(tag: str, size: int) -> None:
    text = f"\n{tag}\nIs 2 < 3? </th\nYes.\n{TAGS[tag]}\n\nIt is <b>.\n"
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    assert told(parts) == ("Is 2 < 3? </th\nYes.", "It is <b>.\n")


@given(st.text(alphabet="<>/think \n", max_size=40), st.integers(1, 5))
def test_what_has_no_thought_is_told_to_the_letter(text: str, size: int) -> None:
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    thought, rest = told(parts)
    if any(text.lstrip().startswith(tag) for tag in TAGS):
        assert rest == "" or any(closing in text for closing in TAGS.values())
    else:
        assert (thought, rest) == ("", text)


def test_tags_in_the_middle_are_text() -> None:
    assert told(["Write <think>x</think> so."]) == ("", "Write <think>x</think> so.")
    assert told(["<think>a</think>b<think>c</think>"]) == ("a", "b<think>c</think>")


def test_a_thought_without_an_end_is_one() -> None:
    assert told(["<think>", "still thin", "king </thi"]) == ("still thinking </thi", "")


def test_text_is_not_held_back_longer_than_it_may_be_a_tag() -> None:
    thoughts = Thoughts()
    assert thoughts.add("  ") == ("", "")
    assert thoughts.add("<th") == ("", "")
    assert thoughts.add("ere") == ("", "  <there")
    assert thoughts.add(" <think>") == ("", " <think>")
    assert not thoughts.is_open
