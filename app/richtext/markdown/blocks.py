"""BlockSplitter: cuts an answer that is still being written into blocks. No Qt, no Markdown parser.

Text is fed as it arrives; a block is reported once no later text can belong to it. Blocks partition
the source. They are coarse: the Markdown parser later receives each block as a whole, so a cut only
has to be safe, not complete. Each top-level list item is a block, so that a long list is not held
back until its end.

A block closes at a blank line, at the end of its closing fence, at the end of a heading line, or
before a line that starts a fence, a heading or a list item, unless a formula over several lines
is open. A list item and indented code continue over blank lines while the lines after them are indented.

`shown_end` and `reads_early` determine how the open block is shown.
"""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from app.richtext.markdown.math_rules import closing_mark

_FENCE = re.compile(r"(`{3,}(?=[^`]*$)|~{3,})[ \t]*([^\s`]*)")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_RULE = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
_ITEM = re.compile(r"( {0,3})([-*+]|(\d{1,9})[.)])([ \t]+|$)")
_QUOTE = re.compile(r" {0,3}>")
# A line that has only begun and may still become anything: an item, a task, a heading, a rule, a fence.
# The lookahead and its reference read the marks of lists without going back, in linear time. Possessive
# repetition of a group would, too, but matches wrongly in Python before 3.11.5 (python/cpython#101955).
_UNSURE = re.compile(
    r"(?=(?P<marks>[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*))(?P=marks)"
    r"(?:[-*+_#>|=~`\s]*|\d{1,9}[.)]?[ \t]*|`{3,}[^`]*|~{3,}.*|\[(?:[ xX](?:\][ \t]*)?)?)"
)

BlockKind = Literal["blank", "text", "code", "fence", "item"]  # code: by its indent


class Block(Struct, frozen=True, gc=False):
    """The source range of a block, end-exclusive."""

    start: int
    end: int


class OpenCode(Struct, frozen=True):
    """The open block is fenced code: it starts at `start`, its code at `body`."""

    start: int
    body: int
    language: str


class _Fence(Struct, frozen=True):
    mark: str
    length: int


class BlockSplitter:
    """Feed text with `feed`, end with `finish`."""

    def __init__(self) -> None:
        self._kind: BlockKind = "blank"
        self._start = 0
        self._line = ""
        self._line_start = 0
        self._fence: _Fence | None = None
        self._item_indent = 0
        self._blank_seen = False
        self._code: OpenCode | None = None
        self._formula = ""  # what ends the formula over several lines that is open

    @property
    def open_start(self) -> int:
        """Where the block that is not closed yet starts."""
        return self._start

    @property
    def open_code(self) -> OpenCode | None:
        """Set while the open block is fenced code at the left margin."""
        return self._code

    def feed(self, text: str) -> list[Block]:
        """The blocks that `text` closed, in order."""
        closed: list[Block] = []
        *complete, rest = (self._line + text).split("\n")
        for line in complete:
            end = self._line_start + len(line) + 1
            self._take(line.rstrip("\r"), end, closed)
            self._line_start = end
        self._line = rest
        if not (self._fence or self._formula) and self._begins_another(rest.rstrip("\r")):
            self._close(self._line_start, closed)
        return closed

    @property
    def in_fence(self) -> bool:
        """Whether the text ends inside fenced code."""
        return self._fence is not None

    def skip(self, length: int) -> list[Block]:
        """The open text as closed blocks; then `length` characters that belong to none."""
        closed = self.finish()
        self._start = self._line_start = self._line_start + length
        return closed

    def finish(self) -> list[Block]:
        """The remaining text as closed blocks."""
        closed: list[Block] = []
        end = self._line_start + len(self._line)
        if self._line:
            self._take(self._line, end, closed)
        self._line, self._line_start = "", end
        self._close(end, closed)
        return closed

    def _close(self, end: int, closed: list[Block]) -> None:
        if end > self._start:
            closed.append(Block(self._start, end))
        self._start, self._kind = end, "blank"
        self._fence, self._code, self._blank_seen, self._formula = None, None, False, ""

    def _take(self, line: str, end: int, closed: list[Block]) -> None:
        """One whole line that ends (line break included) at source offset `end`."""
        if self._fence:
            if _closes(line, self._fence):
                self._fence = None
                if self._kind == "fence":
                    self._close(end, closed)
            return
        if self._formula and line.strip():
            if self._formula in line:
                self._formula = ""
            return
        self._formula = ""  # an empty line ends it, closed or not
        if not line.strip():
            if self._kind in ("item", "code"):
                self._blank_seen = True
            elif self._kind != "blank":
                self._close(end, closed)
            return
        indent = _indent(line)
        if self._kind == "code" and indent > 3:
            return
        if self._kind == "item" and indent >= self._item_indent:
            self._fence = _opens(line.lstrip())
            self._formula = closing_mark(line)
            self._blank_seen = False
            return
        if self._kind != "blank":
            if not self._interrupts(line, indent):
                self._formula = closing_mark(line)
                return
            self._close(self._line_start, closed)
        self._open(line, indent, end, closed)

    def _begins_another(self, begun: str) -> bool:
        """Whether an incomplete line is certain to be outside the open list item or text."""
        indent = _indent(begun)
        if self._kind == "blank" or not begun.strip():
            return False
        if self._kind == "code":
            return indent <= 3
        if self._kind == "item" and (indent >= self._item_indent or self._blank_seen):
            return indent < self._item_indent
        item = _ITEM.match(begun) if indent <= 3 else None
        if item is None:
            # A heading's marks end with a space; until then there may be more of them.
            return self._kind == "text" and _HEADING.match(begun + ".") is not None
        is_certain = begun[item.end() :].strip("*-_ \t") != ""
        return is_certain and (self._kind == "item" or item.group(3) in (None, "1"))

    def _interrupts(self, line: str, indent: int) -> bool:
        """Whether `line` ends the open text or item and starts something else."""
        if self._kind == "code" or (self._kind == "item" and self._blank_seen):
            return True
        if indent > 3:
            return False
        if _opens(line.lstrip()) or _HEADING.match(line):
            return True
        item = None if _RULE.match(line) else _ITEM.match(line)
        if self._kind == "item":
            return item is not None
        # In a paragraph only "1." and bullets with something behind them start a list.
        return item is not None and bool(line[item.end() :].strip()) and item.group(3) in (None, "1")

    def _open(self, line: str, indent: int, end: int, closed: list[Block]) -> None:
        fence = _opens(line.lstrip()) if indent <= 3 else None
        item = None if indent > 3 or _RULE.match(line) else _ITEM.match(line)
        if fence:
            self._kind, self._fence = "fence", fence
            match = _FENCE.match(line.lstrip())
            if indent == 0 and match:
                self._code = OpenCode(self._line_start, end, match.group(2))
        elif item:
            self._kind, self._blank_seen = "item", False
            gap = len(item.group(4).expandtabs(4))
            # More than four spaces after a marker are one space and an indented code block.
            self._item_indent = len(item.group(1)) + len(item.group(2)) + (gap if 1 <= gap <= 4 else 1)
            self._fence = _opens(line[item.end() :].lstrip())
        elif _HEADING.match(line):
            self._close(end, closed)
        elif indent > 3:
            self._kind = "code"
        else:
            self._kind = "text"
            self._formula = closing_mark(line)


def open_code(source: str, start: int) -> OpenCode | None:
    """The fenced code at the left margin that the block from `start` on is, if it is one."""
    stop = source.find("\n", start)
    match = _FENCE.match(source[start : len(source) if stop < 0 else stop].rstrip("\r"))
    return OpenCode(start, stop + 1, match.group(2)) if match and stop >= 0 else None


def shown_end(source: str, start: int, end: int) -> int:
    """Where to stop showing the open block [start, end): before a line of which only marks have come."""
    last_line = source.rfind("\n", start, end) + 1 or start
    return last_line if _UNSURE.fullmatch(source, last_line, end) else end


def reads_early(source: str, start: int, end: int) -> bool:
    """Whether the open block [start, end) is to be read as Markdown before it is closed.

    A list item, a heading, a quote and a rule look quite another way than they are written, and are
    short. A paragraph does not, and may become very long.
    """
    while start < end and source[start] in "\r\n":
        start += 1
    stop = source.find("\n", start, end)
    first = source[start : end if stop < 0 else stop].rstrip("\r")
    return any(mark.match(first) for mark in (_ITEM, _HEADING, _QUOTE, _RULE))


def _indent(line: str) -> int:
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip(" "))


def _opens(stripped: str) -> _Fence | None:
    match = _FENCE.match(stripped)
    return _Fence(match.group(1)[0], len(match.group(1))) if match else None


def _closes(line: str, fence: _Fence) -> bool:
    stripped = line.strip()
    return len(stripped) >= fence.length and not stripped.strip(fence.mark)
