"""Where visible characters come from. Pure: numbers in, numbers out.

A piece of an answer shows some of the source's characters, in order; syntax is left out and
padding may be put in. `TextSegment`s say which source characters are shown where. From them and the
tokens' places follows which visible characters belong to which token (`Span`).
All ranges are end-exclusive.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from app.richtext.markdown.token_table import TokenTable


class TextSegment(Struct, frozen=True, gc=False):
    """`length` visible characters from `start` are the source's from `source`, one for one."""

    start: int
    source: int
    length: int

    @property
    def end(self) -> int:
        return self.start + self.length


class Span(Struct, frozen=True, gc=False):
    """The visible characters [start, end) belong to token number `token`."""

    token: int
    start: int
    end: int


def segments_of(origins: Iterable[int]) -> tuple[TextSegment, ...]:
    """Segments for visible characters whose source offsets are `origins` (−1: put in, no source)."""
    found: list[TextSegment] = []
    start, source, length = 0, -1, 0
    for place, origin in enumerate(origins):
        if length and origin == source + length:
            length += 1
            continue
        if length:
            found.append(TextSegment(start, source, length))
        start, source, length = place, origin, 1 if origin >= 0 else 0
    if length:
        found.append(TextSegment(start, source, length))
    return tuple(found)


def source_at(segments: Sequence[TextSegment], place: int) -> int | None:
    """The source offset of the visible character at `place`; None if it was put in."""
    index = bisect_right(segments, place, key=lambda segment: segment.start) - 1
    if index < 0 or place >= segments[index].end:
        return None
    return segments[index].source + place - segments[index].start


def place_of(segments: Sequence[TextSegment], source: int) -> int:
    """The first visible place that shows source offset `source` or anything after it."""
    for segment in segments:
        if source < segment.source + segment.length:
            return segment.start + max(0, source - segment.source)
    return segments[-1].end if segments else 0


def shown_range(segments: Sequence[TextSegment], start: int, end: int) -> tuple[int, int] | None:
    """The visible range that shows the source range [start, end); None if nothing of it shows."""
    low: int | None = None
    high = 0
    for segment in segments:
        a = max(start, segment.source)
        b = min(end, segment.source + segment.length)
        if a < b:
            if low is None:
                low = segment.start + a - segment.source
            high = segment.start + b - segment.source
    return None if low is None else (low, high)


def spans_of(segments: Sequence[TextSegment], table: TokenTable, first_token: int = 0) -> Iterator[Span]:
    """Whose the visible characters are, in order, from token `first_token` on.

    Together the spans hold every visible character that has a source, once.
    """
    open_span: Span | None = None
    for segment in segments:
        # No token covers the end of the text.
        source_end = min(segment.source + segment.length, table.length)
        offset = segment.source
        if first_token:
            offset = max(offset, table.range_of(first_token)[0])
        while offset < source_end:
            token = table.at(offset)
            stop = min(source_end, table.range_of(token)[1])
            start = segment.start + offset - segment.source
            end = start + stop - offset
            if open_span and open_span.token == token and open_span.end == start:
                open_span = Span(token, open_span.start, end)
            else:
                if open_span:
                    yield open_span
                open_span = Span(token, start, end)
            offset = stop
    if open_span:
        yield open_span
