"""Finds where a section of calls may begin in an answer, with the text around it."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from core.answer_format.calls import NAME_KEY, OPEN_FENCE, QUOTE, Json, Python, Syntax, Tool, name_pattern
from core.answer_format.syntaxes import PYTHON_LIST

# Control tokens, which an answer does not write about.
_CONTROL = ("<|", "<｜")
_FENCE_LINE = re.compile(r"[ \t]*(?:`{1,2}|```[\w-]*[ \t]*)")
_QUOTING = ('"', "'", "“", "«", "‘")

# Where a call counts: anywhere, only at the answer's end, nowhere.
Place = Literal["free", "end", "quoted"]


class Opening(Struct, frozen=True):
    """A beginning of a section. `begin`: its mark, empty for bare calls; `end`: its last mark, or empty.

    `pattern` matches the first characters of a section that may have a call, and those of an empty section
    of control tokens, with the group `empty`. `loose`: models write it instead of the syntax's own marks.
    `at_start`: at the beginning of an answer only.
    """

    begin: str
    end: str
    syntax: Syntax
    pattern: Any
    loose: bool = False
    at_start: bool = False


def openings_of(syntaxes: Sequence[Syntax], tools: Sequence[Tool]) -> tuple[Opening, ...]:
    """The openings of these syntaxes; with `tools`, of calls of these functions."""
    return _openings(tuple(syntaxes), tuple(tool.name for tool in tools))


@lru_cache(maxsize=64)
def _openings(syntaxes: tuple[Syntax, ...], tools: tuple[str, ...]) -> tuple[Opening, ...]:
    name = name_pattern(tools)
    found: list[Opening] = []
    for syntax in syntaxes:
        pairs = [(*pair, False) for pair in syntax.marks]
        pairs += [(*pair, True) for pair in syntax.loose if tools]
        for begin, end, is_loose in pairs:
            starts = [form.beginning(name, end) for form in syntax.forms]
            if begin.startswith(_CONTROL) and end:
                starts.append(rf"(?P<empty>\s*{re.escape(end)})")
            pattern = rf"(?:{re.escape(begin)}\s*)?(?:{'|'.join(starts)})"
            found.append(Opening(begin, end, syntax, _partial(pattern), is_loose))
        found += _bare(syntax, name, bool(tools))
    if tools:
        found.append(Opening("", "", PYTHON_LIST, _partial(rf"\[\s*{name}\s*\("), at_start=True))
    return tuple(found)


def _bare(syntax: Syntax, name: str, declared: bool) -> list[Opening]:
    """Openings of calls without marks. Models write JSON and Python so in any syntax that has them."""
    forms = {type(form) for form in syntax.forms}
    found: list[tuple[str, type]] = []
    if syntax.bare == "json" or (declared and Json in forms):
        keys = rf"{NAME_KEY}{QUOTE}{name}{QUOTE}|\"type\"\s*:\s*\"function\"|\"function\"\s*:\s*"
        keys += rf"(?:\{{|{QUOTE}{name}{QUOTE})"
        found.append((rf"{OPEN_FENCE}(?:\[\s*)?\{{\s*(?:{keys})", Json))
    if syntax.bare == "python" or (declared and Python in forms):
        found.append((rf"{OPEN_FENCE}\[\s*{name}\s*\(", Python))
    # Read by that form alone: another one would find its own beginning in the text after the call.
    openings = [
        Opening(
            "", "", replace(syntax, forms=tuple(f for f in syntax.forms if type(f) is form)), _partial(one)
        )
        for one, form in found
    ]
    if syntax.bare == "named" and declared:
        openings.append(Opening("", "", syntax, _partial(rf"{name}\n\s*\{{"), at_start=True))
    return openings


def _partial(pattern: str) -> Any:
    """Compiled by `regex`, which matches the beginning of a text that is still being written."""
    import regex  # the window, which reads no calls, starts faster without it

    return regex.compile(pattern)


class Surroundings(Struct, frozen=True):
    """The text before a place: whether a code fence is open, has text, and the unfinished last line."""

    fence: bool = False
    filled: bool = False
    line: str = ""

    def after(self, text: str) -> Surroundings:
        """The surroundings after more text."""
        fence, filled = self.fence, self.filled
        *lines, last = (self.line + text).split("\n")
        for line in lines:
            if line.lstrip().startswith(("```", "~~~")):
                fence, filled = not fence, False
            else:
                filled = filled or bool(line.strip())
        return Surroundings(fence, filled, last)

    def place(self, opening: Opening, section: str, *, at_start: bool) -> Place:
        """Where the call `section` counts after this text. Examples are fenced, or quoted in a line."""
        line = self.line.strip()
        is_code = line.count("`") % 2 == 1 and not line.endswith("```")
        if (
            is_code
            or line.endswith(_QUOTING)
            or line.startswith(">")
            or (self.fence and (self.filled or line))
        ):
            return "quoted"
        if (
            self.fence
            or section.startswith("```")
            or (not opening.begin and (not at_start or opening.syntax.bare == "named"))
        ):
            return "end"
        return "end" if opening.loose and line else "free"

    def lead(self, text: str) -> int:
        """Offset in `text` of the white space at its end, and of a fence's opening line there."""
        stripped = text.rstrip()
        line = stripped.rfind("\n") + 1
        if not (self.fence or (line == 0 and self.line.strip())) and _FENCE_LINE.fullmatch(stripped, line):
            stripped = stripped[:line].rstrip()
        return len(stripped)


def first_mark(text: str, marks: Collection[str], start: int = 0) -> tuple[int, str]:
    """Offset of the first of `marks` in `text`, and the longest mark there; −1 if there is none."""
    best, found = -1, ""
    for mark in marks:
        at = text.find(mark, start)
        if at >= 0 and (best < 0 or at < best or (at == best and len(mark) > len(found))):
            best, found = at, mark
    return best, found
