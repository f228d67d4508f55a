"""TokenTable: places, tokens without text, counts a step."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.richtext.markdown.token_table import TokenTable
from tests.app.chat.written import token, tokens_of

texts = st.lists(st.sampled_from(["", "a", " word", "\n\n", "🙂", "日本", "  "]), max_size=30)


def table_of(words: list[str]) -> TokenTable:
    table = TokenTable()
    table.extend([token(text, position=i) for i, text in enumerate(words)])
    return table


def test_text_is_what_the_tokens_say_however_they_come() -> None:
    table = TokenTable()
    for one in tokens_of("{Under| section^ 7}.2 and"):
        table.extend([one])
    assert table.text == "Under section 7.2 and"
    assert table.length == len(table.text)


@given(texts)
def test_every_character_is_in_the_range_of_its_token(words: list[str]) -> None:
    table = table_of(words)
    for offset in range(table.length):
        start, end = table.range_of(table.at(offset))
        assert start <= offset < end


def test_a_token_without_text_is_shown_by_the_next_with_text() -> None:
    table = table_of(["a", "", "", "🙂", ""])
    assert table.shown_by(0) == 0
    assert table.shown_by(1) == 3
    assert table.shown_by(4) is None
    assert table.at(1) == 3


def test_steps_are_counted() -> None:
    table = TokenTable()
    table.extend(tokens_of("Only{ the| duty^ master} can"))
    assert table.steps == 3
    assert table.in_step(2) == 3
