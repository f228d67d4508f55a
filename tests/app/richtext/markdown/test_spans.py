"""Spans: which visible characters belong to which token."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.chat.answer_text import spans_of
from app.richtext.markdown.piece import place_of, segments_of, shown_range, source_at
from tests.app.richtext.markdown.test_token_table import table_of, texts


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
