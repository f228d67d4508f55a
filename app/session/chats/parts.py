"""Parts of an answer: thoughts, texts, calls, and the results of calls. Pure.

The tokens of an answer make its source. `PartSplitter` cuts the source of one generation into spans while it
is written; `parts_of` makes the parts of a whole answer, with the results between its generations. Offsets
are Python string indices, ranges are end-exclusive.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, groupby, pairwise
from typing import Literal

from msgspec import Struct

from app.session.tools.calls import CallRecord
from core.answer_format import AnswerFormat, AnswerSplitter, lone_closing_tag
from core.answer_format import Part as Piece
from core.events import Token, Tool

PartKind = Literal["thought", "text", "call", "result"]


class Part(Struct, frozen=True):
    """A part of an answer; `opening` and `closing` are the marks around its text, which are never shown.

    A result has no tokens, since the model did not write it; `record` is its call.
    """

    kind: PartKind
    text: str
    opening: str = ""
    closing: str = ""
    tokens: tuple[Token, ...] = ()
    record: CallRecord | None = None

    @property
    def source(self) -> str:
        """The model's text of this part."""
        return "" if self.kind == "result" else self.opening + self.text + self.closing


class PartSpan(Struct):
    """Source offsets of a part: of its text from `start` to `end`, with its marks from `opens` to `closes`.

    `open`: a thought whose closing mark has not come.
    """

    kind: PartKind
    opens: int
    start: int
    end: int
    closes: int
    open: bool = False

    def moved(self, by: int) -> PartSpan:
        """Returns the span with all offsets greater by `by`."""
        at = self.opens + by, self.start + by, self.end + by, self.closes + by
        return PartSpan(self.kind, *at, self.open)


class PartSplitter:
    """Splits the answer of one generation. Without `tools`, calls are text.

    In an unknown format (None, or the default one), a closing tag without an opening one makes everything
    before it a thought.
    """

    def __init__(self, format: AnswerFormat | None = None, tools: Sequence[str] = ()) -> None:
        self._is_known = format is not None and format != AnswerFormat()
        self._tools = tuple(map(Tool, tools))
        self._searched = 0  # no closing tag that ends a thought ends before this offset
        self._line = 0  # start of the first line that was not searched for code fences
        self._fence = ""  # the mark of the code fence that is open before it
        self._begin(format or AnswerFormat())

    def _begin(self, format: AnswerFormat) -> None:
        format = format if self._tools else format.without_calls()
        self._splitter = AnswerSplitter(format, self._tools)
        self._seen = 0
        self._marked = 0  # start of the marks before `end`
        self.end = 0  # of the source that is split; the rest is uncertain
        self.spans: list[PartSpan] = []

    def read(self, source: str, *, whole: bool) -> tuple[list[Piece], bool]:
        """Reads on in `source`, of which a beginning was read before. `whole`: it is complete.

        Returns the pieces that are now certain, and whether they are all of them: it was split again.
        """
        pieces = self._read_on(source, whole)
        if self._is_known or any(span.kind == "thought" for span in self.spans):
            return pieces, False
        if not (tag := self._lone_closing_tag(source[: self.end])):
            return pieces, False
        self._is_known = True
        self._begin(AnswerFormat(begins="thought", thought_end=tag))
        return self._read_on(source, whole), True

    def _read_on(self, source: str, whole: bool) -> list[Piece]:
        pieces = self._splitter.add(source[self._seen :]) + (self._splitter.end() if whole else [])
        self._seen = len(source)
        for piece in pieces:
            self._add(piece)
        if whole and self._marked < self.end:  # marks that no part follows
            if not self.spans:
                self.spans.append(PartSpan("text", 0, self.end, self.end, self.end))
            self.spans[-1].closes = self._marked = self.end
        return pieces

    def _add(self, piece: Piece) -> None:
        start, self.end = self.end, self.end + len(piece.text)
        last = self.spans[-1] if self.spans else None
        if piece.kind == "mark":
            if last and last.open:
                last.closes, last.open, self._marked = self.end, False, self.end
            return
        goes_on = last is not None and (last.open or last.kind == "text") and last.closes == start
        if last and goes_on and last.kind == piece.kind:
            last.end = last.closes = self.end
        else:
            if last:
                last.open = False
            is_thought = piece.kind == "thought"
            self.spans.append(PartSpan(piece.kind, self._marked, start, self.end, self.end, is_thought))
        self._marked = self.end

    def _lone_closing_tag(self, source: str) -> str:
        """The first closing tag without an opening one that is not quoted in code; empty if there is none."""
        while found := lone_closing_tag(source, self._searched):
            at, tag = found
            self._searched = at + len(tag)
            while 0 <= (end := source.find("\n", self._line)) < at:
                self._fence = _fence_after(source[self._line : end], self._fence)
                self._line = end + 1
            if not (self._fence or source[:at].endswith("`")):
                return tag
        self._searched = len(source)
        return ""


_FENCE = re.compile(r"\s*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}(?=[^`]*$)|~{3,})")


def _fence_after(line: str, fence: str) -> str:
    """The mark of the code fence that is open after `line`; `fence` is the one before it, empty for none."""
    if not fence:
        mark = _FENCE.match(line)
        return mark.group(1) if mark else ""
    text = line.strip()
    return "" if len(text) >= len(fence) and not text.strip(fence[0]) else fence


def words_of(source: str, texts: Iterable[str]) -> str:
    """The `texts` of an answer as one, without the empty lines between them and its thoughts."""
    words = "".join(texts)
    return words if words == source else words.strip("\n")


def token_ranges(spans: Sequence[PartSpan], starts: Sequence[int]) -> list[range]:
    """The indices of the tokens of each span, all but those after a complete last thought.

    `starts` are the offsets of the tokens. A token with characters of two spans belongs to the thought of
    them, or else to the first one.
    """
    ranges: list[range] = []
    first = 0
    for span, after in pairwise([*spans, None]):
        assert span
        last = bisect_right(starts, span.closes - 1) - 1  # the token of the span's last character
        stop = last + 1
        if after is None:
            stop = len(starts) if span.open or span.kind != "thought" else stop
        elif bisect_right(starts, span.closes) - 1 == last and after.kind == "thought" != span.kind:
            stop = last
        ranges.append(range(first, max(first, stop)))
        first = ranges[-1].stop
    return ranges


def parts_of(
    tokens: Sequence[Token],
    format: AnswerFormat | None = None,
    tools: Sequence[str] = (),
    calls: Sequence[CallRecord] = (),
) -> tuple[Part, ...]:
    """The parts of an answer, complete or not, in order. Calls that were answered separate two generations.

    Together they have all `tokens` and all of the source.
    """
    found: list[Part] = []
    for own, records in generations(tokens, calls):
        found += _generated(own, format, tools)
        found += [Part("result", each.result, record=each) for each in records]
    return tuple(found)


def generations(
    tokens: Sequence[Token], calls: Sequence[CallRecord]
) -> Iterator[tuple[Sequence[Token], Sequence[CallRecord]]]:
    """The tokens of each generation with the calls that follow it; the last one has none and may be empty."""
    first = 0
    for after, records in groupby(calls, lambda call: call.after):
        yield tokens[first:after], tuple(records)
        first = max(first, after)
    yield tokens[first:], ()


def _generated(tokens: Sequence[Token], format: AnswerFormat | None, tools: Sequence[str]) -> Iterator[Part]:
    """The parts of one generation."""
    source, splitter = "".join(token.text for token in tokens), PartSplitter(format, tools)
    splitter.read(source, whole=True)
    spans = splitter.spans
    if tokens and not spans:  # none of them has text
        spans = [PartSpan("text", 0, 0, 0, 0)]
    ranges = token_ranges(spans, list(accumulate((len(token.text) for token in tokens[:-1]), initial=0)))
    for number, (span, own) in enumerate(zip(spans, ranges)):
        stop = own.stop if number < len(spans) - 1 else len(tokens)
        yield Part(
            span.kind,
            source[span.start : span.end],
            source[span.opens : span.start],
            source[span.end : span.closes],
            tuple(tokens[own.start : stop]),
        )
