"""TokenTable: places, tokens without text, counts a step."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.chat.answer_text import TokenTable, shown_origin
from core.events import Origin, Token
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


def test_a_bonus_is_what_came_with_an_accepted_token() -> None:
    """A wall of amber stood on open answers: the one token after a rejected draft was called free."""
    given: list[tuple[Origin, int]] = [
        ("normal", 1),
        ("bonus", 2),  # its draft was rejected entirely
        ("bonus", 3),
        ("accepted", 4),
        ("accepted", 4),
        ("bonus", 4),
        ("bonus", 5),
    ]
    table = TokenTable()
    tokens = [Token("r", 1, " w", origin, step, at, 1, 3) for at, (origin, step) in enumerate(given)]
    for each in tokens:  # one by one, as they may come
        table.extend([each])
    shown = [table.origin_of(at) for at in range(len(tokens))]
    assert shown == ["normal", "normal", "normal", "accepted", "accepted", "bonus", "normal"]
    assert table[1].origin == "bonus"  # the record keeps the worker's name
    assert shown_origin(tokens[5], None) == "normal"
