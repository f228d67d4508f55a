"""The tokens of an answer, their ranges in its source, and which visible characters they are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.chat.answer_text import TokenTable, shown_origin, spans_of
from app.richtext.markdown.piece import place_of, segments_of, shown_range, source_at
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


@st.composite
def shown_sources(draw: st.DrawFn) -> tuple[list[str], list[int]]:
    """Tokens, and an increasing choice of their characters with padding (−1) put in between."""
    words = draw(texts)
    length = sum(map(len, words))
    kept = [offset for offset in range(length) if draw(st.booleans())]
    origins: list[int] = []
    for offset in kept:
        origins += [-1] * draw(st.integers(0, 1)) + [offset]
    return words, origins


@given(shown_sources())
def test_spans_partition_what_has_a_source(given_: tuple[list[str], list[int]]) -> None:
    words, origins = given_
    table = table_of(words)
    owners = {}
    last = -1
    for span in spans_of(segments_of(origins), table):
        assert span.start < span.end
        for place in range(span.start, span.end):
            assert place > last
            last = place
            owners[place] = span.token
    expected = {place: table.at(origin) for place, origin in enumerate(origins) if origin >= 0}
    assert owners == expected


@given(shown_sources())
def test_segments_are_a_map_both_ways(given_: tuple[list[str], list[int]]) -> None:
    _, origins = given_
    segments = segments_of(origins)
    for place, origin in enumerate(origins):
        assert source_at(segments, place) == (None if origin < 0 else origin)
        if origin >= 0:
            assert place_of(segments, origin) == place
            assert shown_range(segments, origin, origin + 1) == (place, place + 1)


def test_a_hidden_range_is_not_shown() -> None:
    segments = segments_of([2, 3, 6])
    assert shown_range(segments, 4, 6) is None
    assert shown_range(segments, 0, 4) == (0, 2)
    assert place_of(segments, 4) == 2
    assert place_of((), 4) == 0


def test_spans_can_start_at_a_later_token() -> None:
    table = table_of(["ab", "cd", "ef"])
    segments = segments_of(range(6))
    assert [span.token for span in spans_of(segments, table, 1)] == [1, 2]


def test_a_source_beyond_the_text_belongs_to_nobody() -> None:
    table = table_of(["ab", "c"])
    spans = list(spans_of(segments_of([1, 2, 3, 4]), table))
    assert [(span.token, span.start, span.end) for span in spans] == [(0, 0, 1), (1, 1, 2)]
