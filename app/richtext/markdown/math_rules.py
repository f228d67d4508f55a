"""Formulas in Markdown: parser rules that run before its own. No Qt.

`$…$` and `\\(…\\)` in a line, `$$…$$`, `\\[…\\]` and `\\begin{…}…\\end{…}` also over several lines.
A dollar sign starts a formula only if a letter, digit or sign follows at once and the closing one
has neither a space before nor an ASCII letter or digit behind it, except an ordinal's or a plural's
ending (“the $n$th”): prices stay prices. Scripts without spaces may have letters directly next to a formula.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline

_DOLLAR = re.compile(
    r"(?<![A-Za-z])\$(?![\s$])((?:\\.|[^\\$`])+?)(?<!\s)\$(?:(?![A-Za-z0-9_$])|(?=(?:th|st|nd|rd|s)\b))", re.S
)
_MARKS = re.compile(r"(?:[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])(?=[ \t])))*[ \t]*")
_BEHIND = " .,;:"  # may follow a formula that is a separate paragraph
_OPEN = re.compile(r"\$\$|\\\[|\\\(|\\begin\{([a-zA-Z]+\*?)\}")


def add_math(parser: MarkdownIt) -> None:
    """Teach `parser` formulas: nodes of type `math`, the inside as content, the marks as markup and info."""
    parser.inline.ruler.before("escape", "math", _inline)
    parser.block.ruler.before(
        "fence", "math_block", _block, {"alt": ["paragraph", "reference", "blockquote"]}
    )


def closing_mark(line: str) -> str:
    """The closing mark of a formula that begins `line` and does not end in it; empty if there is none."""
    stripped = line.lstrip()
    match = _OPEN.match(stripped)
    if not match or match.group() == "\\(":
        return ""
    mark = _close_of(match)
    return "" if mark in stripped[match.end() :] else mark


def open_formula(text: str) -> int | None:
    """The line of `text` at which an unfinished formula may begin; None if there is none.

    Marks of lists and quotes before it are ignored. The last line may be incomplete.
    """
    if not _OPEN.search(text):
        return None
    lines = text.split("\n")
    number = 0
    known: dict[str, int | None] = {}  # the next line that may end one, of those looked for before
    while number < len(lines):
        mark = closing_mark(_MARKS.sub("", lines[number], count=1))
        if mark:
            end = known.get(mark, 0)
            if end is not None and end <= number:
                ends = (at for at in range(number + 1, len(lines) - 1) if _may_end(lines[at], mark))
                end = known[mark] = next(ends, None)
            if end is None:
                return number
            # A line that closes one does not open another.
            number = end if _ends(lines[end], mark) else number
        number += 1
    return None


def _may_end(line: str, mark: str) -> bool:
    """Whether with `line` a formula is over, as one or because it was none."""
    return mark in line or not line.strip()


def _ends(line: str, mark: str) -> bool:
    """Whether `line` ends a formula and nothing else."""
    return mark in line and not line[line.index(mark) + len(mark) :].strip(_BEHIND)


def _close_of(match: re.Match[str]) -> str:
    environment = match.group(1)
    if environment:
        return f"\\end{{{environment}}}"
    return {"$$": "$$", "\\[": "\\]", "\\(": "\\)"}[match.group()]


def _inline(state: StateInline, silent: bool) -> bool:
    character = state.src[state.pos]
    if character not in "$\\":
        return False
    found = _OPEN.match(state.src, state.pos, state.posMax)
    if found:
        mark = _close_of(found)
        end = _next_place(state, mark, found.end())
        if not 0 <= end <= state.posMax - len(mark) or not state.src[found.end() : end].strip():
            return False
        whole = bool(found.group(1))  # an environment is recognised by its marks alone
        inner = (found.start(), end + len(mark)) if whole else (found.end(), end)
        marks, after = (("", "") if whole else (found.group(), mark)), end + len(mark)
    else:
        dollar = _DOLLAR.match(state.src, state.pos, state.posMax)
        if not dollar:
            return False
        inner, marks, after = dollar.span(1), ("$", "$"), dollar.end()
    if not silent:
        node = state.push("math", "", 0)
        node.content = state.src[inner[0] : inner[1]]
        node.markup, node.info = marks
    state.pos = after
    return True


def _next_place(state: StateInline, mark: str, start: int) -> int:
    """Where `mark` comes next in the whole text, −1 if nowhere; looked for once, not for each opening."""
    known: dict[tuple[str, str], tuple[int, int]] = state.env.setdefault("closing_marks", {})
    since, place = known.get((mark, state.src), (start + 1, -1))
    if not (since <= start and (place < 0 or start <= place)):
        place = state.src.find(mark, start)
        known[mark, state.src] = (start, place)
    return place


def _block(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    """Lines of one formula are one paragraph, though they look like lists or headings."""
    if state.is_code_block(start_line):
        return False
    line = line_of(state, start_line)
    match = _OPEN.match(line)
    if not match or match.group() == "\\(":
        return False
    mark = _close_of(match)
    last, rest = start_line, line[match.end() :]
    # Each line of a paragraph may open a formula: for all of them the end is looked for once.
    vain: dict[tuple[str, int, int, int], int] = state.env.setdefault("vain_openings", {})
    place = (mark, state.level, state.blkIndent, end_line)
    if mark not in rest and start_line < vain.get(place, 0):
        return False
    while mark not in rest:
        last += 1
        if last >= end_line or state.isEmpty(last) or state.sCount[last] < state.blkIndent:
            vain[place] = last
            return False
        rest = line_of(state, last)
    if not _ends(rest, mark):
        vain[place] = last
        return False  # words follow in the same line: a paragraph with a formula in it
    if silent:
        return True
    add_paragraph(state, start_line, last + 1)
    return True


def add_paragraph(state: StateBlock, start_line: int, end_line: int) -> None:
    """Add those lines as a paragraph, and continue after them."""
    state.line = end_line
    opening = state.push("paragraph_open", "p", 1)
    opening.map = [start_line, end_line]
    node = state.push("inline", "", 0)
    node.content = state.getLines(start_line, end_line, state.blkIndent, False).strip()
    node.map = [start_line, end_line]
    node.children = []
    state.push("paragraph_close", "p", -1)


def line_of(state: StateBlock, number: int) -> str:
    """A line without its indent and its line break."""
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]
