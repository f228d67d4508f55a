"""Stop texts: what is told is exactly what stands before the first of them, wherever tokens begin and end."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.decoding.stop_texts import StopTexts
from core.events import Token


def tokens_of(text: str, cuts: list[int]) -> list[Token]:
    """`text` in tokens that end at `cuts`; equal cuts are tokens without text."""
    ends = [*sorted(min(cut, len(text)) for cut in cuts), len(text)]
    starts = [0, *ends[:-1]]
    return [
        Token("r", number, text[start:end], "normal", number + 1, number)
        for number, (start, end) in enumerate(zip(starts, ends))
    ]


def run(stops: list[str], tokens: list[Token]) -> tuple[list[Token], StopTexts]:
    texts, told = StopTexts(stops), []
    for token in tokens:
        told.extend(texts.add(token))
    if not texts.stopped_by:
        told.extend(texts.finish())
    return told, texts


@given(
    st.text("ab\n", max_size=40),
    st.lists(st.text("ab\n", min_size=1, max_size=4), max_size=3),
    st.lists(st.integers(0, 40), max_size=20),
)
def test_tells_what_stands_before_the_first_stop_text(text: str, stops: list[str], cuts: list[int]) -> None:
    tokens = tokens_of(text, cuts)
    told, texts = run(stops, tokens)
    said = "".join(token.text for token in told)
    found = [at for stop in stops if (at := text.find(stop)) >= 0]
    if not found:
        assert (told, texts.stopped_by, texts.whole) == (tokens, "", len(tokens))
        return
    # Of overlapping ones that one wins which is complete first; nothing behind its beginning is told.
    assert text.startswith(said + texts.stopped_by)
    assert not any(stop in said for stop in stops)
    assert [token.id for token in told] == list(range(len(told)))
    assert all(token == tokens[token.id] for token in told[: texts.whole])
    assert len(told) - texts.whole in (0, 1)
    assert "".join(token.text for token in tokens[: texts.whole]) == said[: len(said) - _part(told, texts)]


def _part(told: list[Token], texts: StopTexts) -> int:
    return len(told[-1].text) if len(told) > texts.whole else 0


def test_tells_at_once_what_cannot_be_the_beginning_of_a_stop_text() -> None:
    texts = StopTexts(["\nUser:"])
    first, second, third = tokens_of("Hello\nUs", [5, 6])
    assert list(texts.add(first)) == [first]
    assert list(texts.add(second)) == []
    assert list(texts.add(third)) == []
    other = Token("r", 3, "eful", "normal", 4, 3)
    assert [token.text for token in texts.add(other)] == ["\n", "Us", "eful"]


def test_a_token_is_told_in_part() -> None:
    told, texts = run(["END"], tokens_of("ab.END cd", [2]))
    assert [token.text for token in told] == ["ab", "."]
    assert (texts.stopped_by, texts.whole) == ("END", 1)


def test_of_two_that_begin_together_the_longer_is_named() -> None:
    _, texts = run(["a", "ab"], tokens_of("xab", []))
    assert texts.stopped_by == "ab"


@pytest.mark.parametrize("seed", range(20))
def test_without_stop_texts_every_token_passes_at_once(seed: int) -> None:
    texts = StopTexts()
    for token in tokens_of("some text", [random.Random(seed).randrange(9) for _ in range(4)]):
        assert list(texts.add(token)) == [token]


def test_a_token_that_only_began_a_character_is_held_with_it() -> None:
    texts = StopTexts(["éx"])
    begun, done = Token("r", 0, "", "normal", 1, 0), Token("r", 1, "é", "normal", 2, 1)
    told = [*texts.add(Token("r", 9, "a", "normal", 1, 0)), *texts.add(begun), *texts.add(done)]
    assert [token.text for token in told] == ["a", ""]  # nothing says yet what it began
    told = list(texts.add(Token("r", 2, "x", "normal", 3, 2)))
    assert (told, texts.stopped_by) == ([], "éx")
