"""Markdown: one closed block of an answer as pieces, every visible character with its source. No Qt.

Paragraphs, headings, lists and tasks, quotes, fenced and indented code, tables, footnotes, definitions and
rules; inline bold, italic, struck, code, links and formulas. Line breaks are kept, and outside lists and
quotes also indents, so that code without a fence is readable. HTML, except <br>, and link definitions are
text: only syntax that was applied is hidden, and nothing is fetched. Input beyond the limits of depth and
size is shown as source.

`read_open` reads a block that is still being written, and returns where the next reading can start, so that
the cost per list item is constant.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from app.richtext.markdown.blocks import BlockSplitter, open_code
from app.richtext.markdown.inline import InlineText, align_inline, bare_links
from app.richtext.markdown.math_rules import add_paragraph, open_formula
from app.richtext.markdown.piece import (
    Align,
    Piece,
    PieceKind,
    Styled,
    TableCell,
    TextSegment,
    open_code_piece,
    plain_piece,
    report,
    segments_of,
)

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token as Node

_BULLET = "•"
_TASK = re.compile(r"\[([ xX])\][ \t]+(?=\S)")
# A quote is one level, a list two. The parser would leave out deeper levels.
_DEEPEST = 18
_LONGEST = 50_000  # characters of a block that is read as Markdown
_MOST_CELLS = 4_000  # of a table
_MOST_COLUMNS = 100
# First tokens of a block that earlier blocks of the same container can no longer change.
_BEGINNINGS = ("list_item_open", "paragraph_open", "heading_open", "table_open", "fence", "code_block", "hr")
_DELIMITERS = re.compile(r"[-:|> \t]+")
_MARK = re.compile(r"[ \t]*(?:>|([-*+]|\d{1,9}[.)])(?=[ \t]|$))")


class OpenBlock(Struct, frozen=True):
    """The pieces of a block that is still being written.

    The first `certain` of `pieces` are final. The others are read again from `start`, after the lines
    `before`, which represent the lists that are open there.
    """

    pieces: tuple[Piece, ...]
    certain: int
    start: int
    before: str


def parse_block(source: str, start: int, end: int, before: str = "") -> tuple[Piece, ...]:
    """The pieces of the source range [start, end), which is one closed block. Offsets are absolute.

    `before`, if only the end of it is to be read: what `read_open` said.
    """
    return _read_safely(source, start, end, before).pieces


def read_open(source: str, start: int, end: int, before: str = "") -> OpenBlock:
    """The pieces of the source range [start, end), and where the next reading of a longer range starts.

    The next reading starts later only if the text from there on reads as it does now. The parser has rules
    that reach over lines: in a quote, for example, it accepts a `>` behind any indent, which at the start of
    a text is indented code.
    """
    read = _read_safely(source, start, end, before)
    if (
        read.start > start
        and _read_safely(source, read.start, end, read.before).pieces != read.pieces[read.certain :]
    ):
        return OpenBlock(read.pieces, 0, start, before)
    return read


def _read_safely(source: str, start: int, end: int, before: str) -> OpenBlock:
    if end - start > _LONGEST:
        return OpenBlock((_large(source, start, end),), 0, start, before)
    try:
        return _read(source, start, end, before)
    except Exception as error:
        report("A block of Markdown", error)
        return OpenBlock((plain_piece(source, start, end),), 0, start, before)


def _read(source: str, start: int, end: int, before: str) -> OpenBlock:
    text = source[start:end]
    # The parser normalises line ends itself, by length; doing it here keeps offsets alike.
    shown = before + text.replace("\r\n", " \n").replace("\r", "\n").replace("\0", "\ufffd")
    walk = _Walk(shown, start - len(before), source if "\r" in text else "")
    # The lines of `before`, and the one with which something begins that may turn out otherwise.
    first, last = before.count("\n"), shown.count("\n")
    if _DELIMITERS.fullmatch(walk.line(last)):
        last -= 1  # whether the line above is a table's head is decided by the whole of this line
    formula = open_formula(shown)
    last = last if formula is None else min(last, formula + 1)
    reached, certain, context = first, 0, ""
    skipped: int | None = None
    items: list[int] = []
    deepest = 0
    for node in _parser().parse(shown):
        deepest = max(deepest, node.level)
        if node.type in _BEGINNINGS and node.map:
            line = node.map[0]
            if skipped is None and line >= first:
                skipped = len(walk.pieces)
            # Behind a marker that is not shown yet the marker would be lost.
            if reached < line < last and not walk.marker:
                reached, certain = line, len(walk.pieces)
                context = "".join(_emptied(walk.line(item), n) for item, n in Counter(items).items())
            if node.type == "list_item_open":
                items.append(line)
        walk.take(node)
        if node.type == "list_item_close":
            items.pop()
    skipped = len(walk.pieces) if skipped is None else skipped
    pieces = tuple(walk.pieces[skipped:])
    # Parsing cannot resume at such a depth: one line more or less around it changes the nesting.
    if reached == first or deepest >= _DEEPEST:
        return OpenBlock(pieces, 0, start, before)
    return OpenBlock(pieces, certain - skipped, walk.place_of(reached), context)


def _large(source: str, start: int, end: int) -> Piece:
    """A block that is too long to be read: fenced code as such, anything else as it was written."""
    code = open_code(source, start)
    if code is None:
        return plain_piece(source, start, end)
    shown_end = start + len(source[start:end].rstrip("\r\n"))
    return replace(open_code_piece(source, start, code.body, shown_end, code.language), source_end=end)


def _emptied(line: str, items: int) -> str:
    """`line` up to the mark that begins `items` list items, and an empty heading after it.

    The text after it stays in the items, because a heading, unlike a paragraph, does not absorb it.
    """
    at = 0
    while items and (mark := _MARK.match(line, at)):
        items -= mark.group(1) is not None
        at = mark.end()
    behind = len(line) - len(line[at:].lstrip(" \t"))
    columns = len(line[:behind].expandtabs(4)) - len(line[:at].expandtabs(4))
    # More than four spaces are one space and an indented code block; none, an item that begins below.
    return f"{line[:behind] if 1 <= columns <= 4 and line[behind:] else line[:at] + ' '}#\n"


def load_parser() -> None:
    """Imports markdown-it now instead of with the first text, which takes 40 ms. On any thread."""
    _parser()


@cache
def _parser() -> MarkdownIt:
    from app.richtext.markdown.rules import parser as made  # imports markdown-it

    parser = made()
    names: list[str] = parser.block.ruler.get_active_rules()
    parser.block.ruler.before(names[0], "deep", _deep)
    return parser


def _deep(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    """At this depth of quotes and lists, all lines up to an empty one are a paragraph."""
    if state.level < _DEEPEST or silent:
        return False
    last = start_line + 1
    while last < end_line and not state.isEmpty(last) and not 0 <= state.sCount[last] < state.blkIndent:
        last += 1
    add_paragraph(state, start_line, last)
    return True


@dataclass
class _Walk:
    """Goes through the parser's flat list of nodes and collects pieces."""

    text: str
    offset: int
    source: str  # empty if no line ends with \r
    pieces: list[Piece] = field(default_factory=list)
    lists: list[bool] = field(default_factory=list)  # which are ordered
    quotes: int = 0
    level: int = 0
    marker: str = ""
    marker_line: int = 0
    rows: list[list[tuple[InlineText, list[int]]]] = field(default_factory=list)
    in_table: bool = False
    cells: int = 0
    aligns: list[Align] = field(default_factory=list)
    table_map: list[int] | None = None
    cell_at: int = 0  # where the next cell of a row begins, at the earliest

    def __post_init__(self) -> None:
        self.line_starts = [0]
        for place, character in enumerate(self.text):
            if character == "\n":
                self.line_starts.append(place + 1)

    def take(self, node: Node) -> None:
        match node.type:
            case "ordered_list_open" | "bullet_list_open":
                self._flush_marker()
                self.lists.append(node.type == "ordered_list_open")
            case "ordered_list_close" | "bullet_list_close":
                self.lists.pop()
            case "list_item_open":
                self._flush_marker()
                self.marker = f"{node.info}{node.markup}" if self.lists[-1] else _BULLET
                self.marker_line = node.map[0] if node.map else 0
            case "list_item_close":
                self._flush_marker()
            case "blockquote_open":
                self.quotes += 1
            case "blockquote_close":
                self.quotes -= 1
            case "heading_open":
                self.level = int(node.tag[1:])
            case "heading_close":
                self.level = 0
            case "fence" | "code_block":
                self._code(node)
            case "hr":
                self._add("rule", "", (), (), node.map)
            case "table_open":
                self.in_table, self.table_map, self.rows, self.aligns = True, node.map, [], []
                self.cells = 0
            case "th_open":
                style = str(node.attrGet("style") or "")
                self.aligns.append("right" if "right" in style else "center" if "center" in style else "left")
            case "tr_open":
                self.rows.append([])
                self.cell_at = int(node.meta.get("start", 0))
            case "footnote_open" | "definition_open":
                self._flush_marker()
                self.lists.append(False)
                if node.type == "footnote_open":
                    self.marker, self.marker_line = node.markup, node.map[0] if node.map else 0
                elif self.pieces and self.pieces[-1].kind == "text" and not self.pieces[-1].depth:
                    self._embolden(node)
            case "footnote_close" | "definition_close":
                self.lists.pop()
            case "table_close":
                self.in_table = False
                self._table()
            case "inline":
                self._inline(node)

    def _flush_marker(self) -> None:
        """Add a marker without text behind it as a piece; its source is the marker's line."""
        if self.marker:
            self._add("text", "", (), (), (self.marker_line, self.marker_line + 1))

    def _add(
        self,
        kind: PieceKind,
        text: str,
        segments: tuple[TextSegment, ...],
        styles: tuple[Styled, ...],
        lines: Sequence[int] | None,
        language: str = "",
        cells: tuple[TableCell, ...] = (),
    ) -> None:
        first, last = lines or (0, 0)
        self.pieces.append(
            Piece(
                kind,
                text,
                segments,
                self.offset + self._line_start(first),
                self.offset + self._line_start(last),
                styles,
                self.level,
                self.marker,
                len(self.lists),
                self.quotes,
                language,
                cells,
                tuple(self.aligns) if cells else (),
            )
        )
        self.marker = ""

    def place_of(self, line: int) -> int:
        """Where that line begins in the source."""
        return self.offset + self._line_start(line)

    def _line_start(self, line: int) -> int:
        return self.line_starts[line] if line < len(self.line_starts) else len(self.text)

    def line(self, line: int) -> str:
        """That line's text."""
        return self.text[self._line_start(line) : self._line_start(line + 1)].rstrip("\n")

    def _places(self, content: str, first_line: int) -> list[int]:
        """Block offsets of the characters of `content`, whose lines are the ends of source lines."""
        places: list[int] = []
        for number, line in enumerate(content.split("\n")):
            source = self.line(first_line + number)
            begin = self._line_start(first_line + number)
            wanted = line.rstrip()
            at = source.rfind(wanted) if wanted else len(source.rstrip())
            if at < 0:  # tabs were expanded: keep to the end of the line
                at = len(source) - len(line)
            stop = begin + max(0, len(source))
            # Several spaces that replace a tab have its position.
            places += [begin] * min(len(line), max(0, -at))
            # Thousands of characters of a paragraph, while it closes: no call for each of them.
            places += range(begin + max(0, at), min(begin + at + len(line), stop))
            places += [stop] * (at + len(line) - max(0, len(source)))
            places.append(stop)
        places.pop()
        return places

    def _inline(self, node: Node) -> None:
        first = node.map[0] if node.map else 0
        if self.in_table:
            self.cells += 1
            if self.cells > _MOST_CELLS:
                return
            # Rows are lines: a break inside of a cell is a line separator.
            cell = align_inline(node.content, node.children or (), line_break="\u2028")
            self.rows[-1].append((cell, self._cell_places(node.content, first)))
            return
        free = not (self.lists or self.quotes or self.level)
        inline = align_inline(node.content, node.children or (), keep_indent=free)
        places = self._places(node.content, first)
        places += places[-1:] * (max(inline.origins, default=0) + 1 - len(places))
        origins = [self.offset + places[origin] for origin in inline.origins]
        if self.marker and (task := _TASK.match(node.content)) and inline.text.startswith(task.group()):
            box = "☐" if task.group(1) == " " else "☑"
            self.marker = box if self.marker == _BULLET else f"{self.marker} {box}"
            cut = task.end()
            origins = origins[cut:]
            shifted = tuple(replace(s, start=s.start - cut, end=s.end - cut) for s in inline.styles)
            inline = InlineText(inline.text[cut:], inline.origins[cut:], shifted)
        kind: PieceKind = "heading" if self.level else "text"
        text, styles = inline.text, inline.styles
        if free and (indent := self._first_indent(node, first)):
            begin = self.offset + self._line_start(first)
            text, origins = indent + text, [*range(begin, begin + len(indent)), *origins]
            styles = tuple(replace(s, start=s.start + len(indent), end=s.end + len(indent)) for s in styles)
        self._add(kind, text, segments_of(origins), styles, node.map)

    def _first_indent(self, node: Node, line: int) -> str:
        """The spaces before a paragraph, if they are meant: many a model begins with a single one."""
        source = self.line(line)
        indent = source[: len(source) - len(source.lstrip(" \t"))]
        is_formula = bool(node.children and node.children[0].type == "math")
        return indent if len(indent) > 1 and not is_formula else ""

    def _as_written(self, lines: Sequence[int]) -> None:
        """Add those lines as plain text, without interpreting them."""
        first, last = self._line_start(lines[0]), self._line_start(lines[1])
        content = self.text[first:last].rstrip("\n")
        self._add(
            "text",
            content,
            segments_of(range(self.offset + first, self.offset + first + len(content))),
            (),
            lines,
        )

    def _code(self, node: Node) -> None:
        first, last = node.map or (0, 0)
        content = node.content.removesuffix("\n")
        if node.type == "code_block" and not (self.lists or self.quotes):
            content = "\n".join(self.line(line) for line in range(first, last))
        places = self._places(content, first + 1 if node.type == "fence" else first)
        if self.source:  # the \r at the end of a line was replaced by a space
            given = (self.source[self.offset + place : self.offset + place + 1] for place in places)
            kept = [n for n, each in enumerate(given) if each != "\r" or content[n] == "\n"]
            content, places = "".join(content[n] for n in kept), [places[n] for n in kept]
        segments = segments_of(self.offset + place for place in places)
        words = node.info.split()
        if words[:1] == ["math"] and content.strip():
            # With marks that are put in, a copy of it is a formula again.
            segments = segments_of([-1] * 3 + [self.offset + place for place in places] + [-1] * 3)
            content = f"$$\n{content}\n$$"
            self._add(
                "text", content, segments, (Styled(0, len(content), "display", content[3:-3]),), (first, last)
            )
            return
        self._add("code", content, segments, (), (first, last), words[0] if words else "")

    def _cell_places(self, content: str, line: int) -> list[int]:
        """Block offsets of a table cell's characters; a pipe in a cell is written with a backslash."""
        source, begin = self.line(line), self._line_start(line)
        at = max(0, self.cell_at - begin)
        places: list[int] = []
        for character in content:
            found = source.find(character, at)
            at = found if found >= 0 else min(at, max(0, len(source) - 1))
            places.append(begin + at)
            at += 1
        while at < len(source) and (source[at] != "|" or source[at - 1 : at] == "\\"):
            at += 1
        self.cell_at = begin + at + 1
        return places

    def _embolden(self, node: Node) -> None:
        """The paragraph directly above a definition is its term."""
        term = self.pieces[-1]
        if node.map and term.source_end == self.offset + self._line_start(node.map[0]) and term.text:
            styles = (*term.styles, Styled(0, len(term.text), "bold"))
            self.pieces[-1] = replace(term, styles=styles)

    def _table(self) -> None:
        """All rows in one text, as a spreadsheet takes them: tabs between cells, a line a row."""
        if self.cells > _MOST_CELLS or max(map(len, self.rows), default=0) > _MOST_COLUMNS:
            self._as_written(self.table_map or (0, 0))
            return
        text: list[str] = []
        origins: list[int] = []
        styles: list[Styled] = []
        cells: list[TableCell] = []
        for row, filled in enumerate(self.rows):
            for column, (cell, places) in enumerate(filled):
                start = len(origins)
                styles += [replace(s, start=s.start + start, end=s.end + start) for s in cell.styles]
                text.append(cell.text)
                origins += [self.offset + places[o] if o < len(places) else -1 for o in cell.origins]
                cells.append(TableCell(row, column, start, len(origins)))
                if row == 0:
                    styles.append(Styled(start, len(origins), "bold"))
                if column + 1 < len(filled):
                    text.append("\t")
                    origins.append(-1)
            if row + 1 < len(self.rows):
                text.append("\n")
                origins.append(-1)
        shown, segments = "".join(text), segments_of(origins)
        self._add("table", shown, segments, tuple(styles), self.table_map, cells=tuple(cells))


# Marks that a person writes on purpose: stars around words, code, links with a text, lists and quotes.
_MARKS = re.compile(r"\*\S|~~|`|\]\(|^[ ]{0,3}(?:[-*+]|\d{1,9}[.)])[ ]|^[ ]{0,3}>", re.M)


def pieces_of(content: str) -> tuple[Piece, ...]:
    """A person's message as pieces: marked words, lists, quotes and fenced code as in an answer.

    The rest stays as it was typed, such as underscores, headings and tables; addresses become links.
    """
    if not _MARKS.search(content) and "~~~" not in content:
        return (_plain(content, 0, len(content)),)
    splitter = BlockSplitter()
    found: list[Piece] = []
    plain_from = 0
    for block in [*splitter.feed(content), *splitter.finish()]:
        pieces = parse_block(content, block.start, block.end)
        if not _is_marked(content[block.start : block.end], pieces):
            continue
        if content[plain_from : block.start].strip():
            found.append(_plain(content, plain_from, block.start))
        found += pieces
        plain_from = block.end
    if content[plain_from:].strip() or not found:
        found.append(_plain(content, plain_from, len(content)))
    return tuple(found)


def _is_marked(source: str, pieces: Sequence[Piece]) -> bool:
    """Whether the block `source` of a message is to be shown as `pieces`."""
    if len(pieces) == 1 and pieces[0].kind == "code":
        return source.lstrip().startswith(("```", "~~~"))
    if not _MARKS.search(source) or any(piece.kind not in ("text", "code") for piece in pieces):
        return False
    if re.search(r"\b_|_\b", source) and "*" not in source:
        return False  # a name such as __init__
    return any(
        piece.depth or piece.quotes or any(each.style in _WRITTEN for each in piece.styles)
        for piece in pieces
    )


_WRITTEN = ("bold", "italic", "strike", "code", "link")


def _plain(content: str, start: int, end: int) -> Piece:
    piece = plain_piece(content, start, end)
    links = [Styled(low, high, "link", piece.text[low:high]) for low, high in bare_links(piece.text)]
    return replace(piece, styles=tuple(links))
