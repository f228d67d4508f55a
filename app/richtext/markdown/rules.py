"""The Markdown parser: markdown-it with the rules that answers need beyond CommonMark. No Qt.

Emphasis next to Chinese, Japanese, Korean and Thai letters, which have no spaces between words; <br> as a
line break; footnotes and definitions; tables that keep the cells of a row beyond the columns of its head;
formulas.
"""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.common.utils import isMdAsciiPunct, isPunctChar, isWhiteSpace
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block.table import escapedSplit, getLine, table
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Scanned
from markdown_it.token import Token
from markdown_it.utils import EnvType

from app.richtext.markdown.inline import may_open
from app.richtext.markdown.math_rules import add_math, add_paragraph, line_of

# Scripts that put no spaces between words, with their punctuation.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u11ff\u1780-\u17ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]"
)
_BREAK = re.compile(r"<br\s*/?>(?:[ \t]*\n[ \t]*)?", re.I)
_REFERENCE = re.compile(r"\[\^(\d{1,4})\](?!\()")
_FOOTNOTE = re.compile(r"\[\^([\w-]{1,60})\]:[ \t]+(?=\S)")
_DEFINITION = re.compile(r":[ \t]+(?=\S)")


def parser() -> MarkdownIt:
    """A new parser, whose own nodes are `math`, `footnote_ref`, `footnote_open` and `definition_open`."""
    made = MarkdownIt("commonmark", {"html": False})
    rules, rules2 = made.get_active_rules()["inline"], made.get_active_rules()["inline2"]
    made.inline = _Inline()
    made.inline.ruler.enableOnly([*rules, "strikethrough"])
    made.inline.ruler2.enableOnly([*rules2, "strikethrough"])
    # `text_join` would merge escapes into the text around them, and their source would be lost.
    made.disable(["text_join", "reference", "html_block", "html_inline"])
    # An address that may not be opened stays as source.
    made.validateLink = may_open  # type: ignore[method-assign,assignment]
    made.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
    made.enable("table")
    add_math(made)
    made.inline.ruler.before("link", "footnote_ref", _footnote_reference)
    made.inline.ruler.before("autolink", "line_break", _line_break)
    for name, rule in (("footnote", _footnote), ("definition", _definition)):
        made.block.ruler.before("paragraph", name, rule, {"alt": ["paragraph"]})
    return made


class _Inline(ParserInline):
    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:
        state = _State(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


class _State(StateInline):
    def scanDelims(self, start: int, canSplitWord: bool) -> Scanned:
        """CommonMark's flanking rule, with letters of unspaced scripts next to punctuation as spaces."""
        end, mark = start, self.src[start]
        while end < self.posMax and self.src[end] == mark:
            end += 1
        before = self.src[start - 1] if start else " "
        behind = self.src[end] if end < self.posMax else " "
        space_before, space_behind = isWhiteSpace(ord(before)), isWhiteSpace(ord(behind))
        mark_before, mark_behind = _is_mark(before), _is_mark(behind)
        apart_before = space_before or mark_before or bool(_UNSPACED.match(before))
        apart_behind = space_behind or mark_behind or bool(_UNSPACED.match(behind))
        left = not space_behind and (not mark_behind or apart_before)
        right = not space_before and (not mark_before or apart_behind)
        return Scanned(
            left and (canSplitWord or not right or mark_before),
            right and (canSplitWord or not left or mark_behind),
            end - start,
        )


def _is_mark(character: str) -> bool:
    return isMdAsciiPunct(ord(character)) or isPunctChar(character)


def _line_break(state: StateInline, silent: bool) -> bool:
    found = _BREAK.match(state.src, state.pos, state.posMax)
    if not found:
        return False
    if not silent:
        state.push("hardbreak", "br", 0).markup = found.group()
    state.pos = found.end()
    return True


def _footnote_reference(state: StateInline, silent: bool) -> bool:
    found = _REFERENCE.match(state.src, state.pos, state.posMax)
    if not found:
        return False
    if not silent:
        node = state.push("footnote_ref", "", 0)
        node.content, node.markup = found.group(1), found.group()
    state.pos = found.end()
    return True


def _footnote(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    return _marked(state, start_line, end_line, silent, "footnote", _FOOTNOTE)


def _definition(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    return _marked(state, start_line, end_line, silent, "definition", _DEFINITION)


def _marked(
    state: StateBlock, start_line: int, end_line: int, silent: bool, kind: str, mark: re.Pattern[str]
) -> bool:
    """A paragraph behind a mark, up to an empty line or the next such mark."""
    found = mark.match(line_of(state, start_line))
    if not found or state.is_code_block(start_line):
        return False
    if silent:
        return True
    last = start_line + 1
    while last < end_line and not state.isEmpty(last) and state.sCount[last] >= state.blkIndent:
        line = line_of(state, last)
        if _FOOTNOTE.match(line) or _DEFINITION.match(line) or _terminated(state, last, end_line):
            break
        last += 1
    opening = state.push(f"{kind}_open", "", 1)
    opening.map = [start_line, last]
    opening.markup = f"[{found.group(1)}]" if kind == "footnote" else ""
    add_paragraph(state, start_line, last)
    paragraph = state.tokens[-2]
    paragraph.content = paragraph.content[found.end() :]
    state.push(f"{kind}_close", "", -1)
    return True


def _terminated(state: StateBlock, line: int, end_line: int) -> bool:
    return any(rule(state, line, end_line, True) for rule in state.md.block.ruler.getRules("paragraph"))


def _table(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    """A table; each of its rows says in `meta` where it starts, and has all of its cells."""
    first = len(state.tokens)
    if not table(state, start_line, end_line, silent):
        return False
    if silent:
        return True
    nodes = state.tokens[first:]
    del state.tokens[first:]
    cells = 0
    line = start_line
    for node in nodes:
        if node.type == "tr_open" and node.map:
            cells, line = 0, node.map[0]
            node.meta["start"] = state.bMarks[line] + state.tShift[line]
        cells += node.type in ("td_open", "th_open")
        if node.type == "tr_close":
            columns = escapedSplit(getLine(state, line).strip())
            columns = columns[columns[:1] == [""] :]
            columns = columns[: len(columns) - (columns[-1:] == [""])]
            for content in columns[cells:]:
                state.push("td_open", "td", 1)
                surplus = state.push("inline", "", 0)
                surplus.content, surplus.map, surplus.children = content.strip(), [line, line + 1], []
                state.push("td_close", "td", -1)
        state.tokens.append(node)
    return True
