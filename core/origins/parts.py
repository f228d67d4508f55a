"""Parts of an answer: its lines with their Markdown kinds (heading, item, row, code), quotations, cells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from core.origins.runs import UnitKind

PartKind = Literal["text", "heading", "item", "row", "code", "rule"]

# A longer line is split, so that a growing line is not read again from its start. All parts but the last
# have at least half of this length.
_LONGEST = 800
LEAST = _LONGEST // 2
_SENTENCE_ENDS = (". ", "? ", "! ", "。", " ")
# Kinds of the further parts of a line.
_CONTINUED: dict[PartKind, PartKind] = {"row": "row", "code": "code", "heading": "heading", "rule": "rule"}
_FENCE = re.compile(r"[ \t>]{0,12}(?:`{3,}|~{3,})")
_HEADING = re.compile(r"[ \t>]{0,12}#{1,6}[ \t]")
_ITEM = re.compile(r"[ \t>]{0,40}(?:[-*+•–][ \t]|\d{1,3}[.)][ \t])")
_ROW = re.compile(r"[ \t>]{0,12}\|")
_RULE = re.compile(r"[ \t>|:=*_-]*$")
_HYPHENATED = re.compile(r"\w[-\u2010\u00ad]\r?\n\Z")
_QUOTATION = re.compile(
    r"“([^”\n]{1,600})”|„([^“”\n]{1,600})[“”]|«([^»\n]{1,600})»|»([^«\n]{1,600})«|「([^」\n]{1,600})」"
    r"|『([^』\n]{1,600})』|(?<!\w)\"(?! )([^\"\n]{1,600})(?<! )\"(?!\w)"
    r"|(?<!\w)[‘'](?! )([^‘’'\n]{1,600})[’'](?!\w)"
)
_QUOTATION_MARK = re.compile(r"[“”„«»「」『』\"]|(?<!\w)[‘']")


class Part(Struct, frozen=True):
    """A line, or a piece of a long one; `start`: its first character in the answer."""

    text: str
    start: int
    kind: PartKind

    @property
    def fixed_most(self) -> int:
        """Characters from the part's start that stay the same, with their units, if text is appended."""
        if self.kind in ("code", "rule"):
            return 0
        mark = _QUOTATION_MARK.search(self.text)
        return min(LEAST, len(self.text) if mark is None else mark.start())

    @property
    def units(self) -> Iterator[tuple[int, int, UnitKind]]:
        """Quotations, cells and lines of code, as character ranges of `text`."""
        if self.kind == "code":
            yield 0, len(self.text), "line"
            return
        if self.kind == "row":
            at = 0
            for cell in self.text.split("|"):
                if cell.strip():
                    yield at, at + len(cell), "cell"
                at += len(cell) + 1
            return
        for start, end in quotations(self.text):
            yield start, end, "quotation"


def quotations(text: str) -> Iterator[tuple[int, int]]:
    """Character ranges of the text in quotation marks, without the marks."""
    for match in _QUOTATION.finditer(text):
        yield match.span(match.lastindex or 0)


class Splitter:
    """Splits a growing text. A part depends only on the text up to its end."""

    def __init__(self) -> None:
        self.start = 0
        self._rest = ""
        self._fenced = False
        self._continued: PartKind | None = None

    def feed(self, text: str) -> Iterator[Part]:
        """Yield the parts that are complete with `text`."""
        rest, at = self._rest + text, 0
        while end := self._end(rest, at):
            part = self._part(rest[at:end])
            if self._continued is None:
                self._fenced ^= _FENCE.match(part.text) is not None
            self._continued = None if part.text.endswith("\n") else _CONTINUED.get(part.kind, "text")
            self.start += end - at
            at = end
            yield part
        self._rest = rest[at:]

    def open(self) -> Part | None:
        """The part that is not complete yet."""
        return self._part(self._rest) if self._rest else None

    def close(self) -> Iterator[Part]:
        """Yield the open part as a complete one."""
        if (part := self.open()) is not None:
            self.start += len(part.text)
            self._rest, self._continued = "", None
            yield part

    @staticmethod
    def _end(text: str, at: int) -> int:
        """End of the part that begins at `at`; 0 if it is not complete."""
        most = at + _LONGEST
        end = text.find("\n", at, most) + 1
        while end and _HYPHENATED.search(text, max(at, end - 4), end):
            end = text.find("\n", end, most) + 1
        if end or len(text) <= most:
            return end
        for mark in _SENTENCE_ENDS:
            if (found := text.rfind(mark, at + LEAST, most)) >= 0:
                return found + len(mark)
        return most

    def _part(self, text: str) -> Part:
        kind: PartKind = "text"
        if self._continued is not None:
            kind = self._continued
        elif _FENCE.match(text) or _RULE.match(text):
            kind = "rule"
        elif self._fenced:
            kind = "code"
        elif _ROW.match(text):
            kind = "row"
        elif _HEADING.match(text):
            kind = "heading"
        elif _ITEM.match(text):
            kind = "item"
        return Part(text, self.start, kind)
