"""Pieces as HTML, for exports and for the clipboard. No widgets; any thread.

One renderer: real lists, tables and code for everything that reads HTML, and a flat form for Qt's importer,
which has no nested lists with own markers, no flexible boxes and a subset of CSS. There list items are
paragraphs with their marker, and code is in a table.

Everything is escaped; there are no scripts and nothing is fetched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from itertools import pairwise
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from app.controls.shapes import is_rtl
from app.richtext.markdown.piece import Piece, Styled
from core.typesetting import Formula

# A tinted stretch: the visible characters [start, end) and their class.
Tint = tuple[int, int, str]

Form = Literal["page", "print", "paste"]

_INDENT_PX = 22
# By the text size of a table: characters of a line on the page, and the padding of a cell in pixels.
_SIZES = {"usual": (80, 4), "smaller": (105, 3), "smallest": (122, 2)}
_PADDING_CHARACTERS = 2
# Longer words do not widen a column.
_WORD_CHARACTERS = 20
_TAGS = {"bold": "b", "italic": "i", "strike": "s", "code": "code"}
_MONOSPACED = "font-family:Menlo,Consolas,monospace"
_NUMBER = re.compile(r"(\d{1,9})[.)] ?(.*)")
# Half of a character cannot be encoded.
_SURROGATES = re.compile("[\ud800-\udfff]")
# Not allowed in HTML.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
# White space that HTML would join or drop.
_KEPT_SPACE = re.compile(r"^\s|\s\s|\t|\s$")


class Renderer(Struct, frozen=True):
    """`formula` returns the HTML of a formula; empty if it is to be shown as its source.

    `page`: with a style sheet's classes, and headings below a title. `print`: flat, with the same
    classes. `paste`: for other programs, which ignore classes.
    """

    form: Form
    formula: Callable[[Formula], str] = lambda formula: ""
    tints: Callable[[Piece], Sequence[Tint]] = lambda piece: ()

    def blocks(self, pieces: Iterable[Piece]) -> Iterator[str]:
        """The pieces as HTML in parts. Together they have complete elements; with `print`, each has."""
        open_tags: list[str] = []
        for piece in pieces:
            if self.form != "print":
                yield _opened(piece, open_tags)
            yield self._block(piece, in_item=bool(piece.marker))
        yield "".join(f"</{tag}>" for tag in reversed(open_tags))

    def inline(self, piece: Piece, start: int, end: int) -> str:
        """The characters [start, end) of `piece` without an element around them."""
        return self._inline(piece, start, end, self.tints(piece))

    def _block(self, piece: Piece, in_item: bool) -> str:
        match piece.kind:
            case "thought" | "images":
                return ""
            case "rule":
                return "<hr>"
            case "table":
                return self._table(piece)
            case "code":
                return self._code(piece)
        text = self.inline(piece, 0, len(piece.text))
        if self.form == "print":
            return _flat(piece, text)
        level = piece.level if self.form == "paste" else min(4, piece.level + 1)
        tag = f"h{level}" if piece.kind == "heading" else "p"
        kind = ""
        if self.form == "page":
            kind = ' class="thought"' if piece.thought >= 0 else ' class="quote"' if piece.quotes else ""
        if in_item and tag == "p" and not kind and not is_rtl(piece.text):
            return text  # the item is its element
        space = ' style="white-space:pre-wrap"' if self.form == "paste" and _spaced(piece.text) else ""
        return f"<{tag}{kind}{_direction(piece.text)}{space}>{text}</{tag}>"

    def _code(self, piece: Piece) -> str:
        label = f'<p class="note">{text_html(piece.language)}</p>' if piece.language else ""
        if self.form == "print":
            text = self.inline(piece, 0, len(piece.text))
            return (
                '<table class="code" width="100%" bgcolor="#f4f4f6" cellpadding="8" cellspacing="0"'
                ' style="margin-top:9px; margin-bottom:9px"><tr><td>'
                f'{label}<p dir="ltr">{text}</p></td></tr></table>'
            )
        # Lines are lines in it, without an element of their own.
        text = self.inline(piece, 0, len(piece.text)).replace("<br>", "\n")
        looks = f' style="{_MONOSPACED}"' if self.form == "paste" else ""
        return f'{label if self.form == "page" else ""}<pre{looks} dir="ltr"><code{looks}>{text}</code></pre>'

    def _table(self, piece: Piece) -> str:
        rows: dict[int, list[str]] = {}
        size, widths = _columns(piece) if self.form == "print" else ("usual", [])
        kind = f' class="{size}"' if size != "usual" else ""
        tints = self.tints(piece)
        for cell in piece.cells:
            tag = "td" if cell.row else "th"
            align = piece.aligns[cell.column] if cell.column < len(piece.aligns) else "left"
            width = f' width="{widths[cell.column]}%"' if widths else ""
            text = piece.text[cell.start : cell.end]
            content = self._inline(piece, cell.start, cell.end, tints)
            if self.form == "print":  # its cells take neither a class nor a direction
                content = f"<span{kind}{_direction(text)}>{content}</span>"
                direction = ""
            else:
                direction = _direction(text)
            row = rows.setdefault(cell.row, [])
            if not row:  # a part of a table may begin in the middle of a row
                row += [f"<{tag}></{tag}>"] * (cell.column - min(each.column for each in piece.cells))
            row.append(f'<{tag} align="{align}"{width}{direction}>{content}</{tag}>')
        lines = [f"<tr>{''.join(cells)}</tr>" for cells in rows.values()]
        padding = f'cellspacing="0" cellpadding="{_SIZES[size][1]}"'
        margin = "; margin-top:9px; margin-bottom:9px" if self.form == "print" else ""
        looks = f'border="1" {padding} style="border-collapse:collapse{margin}"{_direction(piece.text)}'
        head = f"<thead>{lines[0]}</thead>" if piece.cells and not piece.cells[0].row else ""
        body = "".join(lines[bool(head) :])
        named = "" if self.form == "paste" else ' class="cells"'
        return f"<table{named} {looks}>{head}<tbody>{body}</tbody></table>"

    def _inline(self, piece: Piece, start: int, end: int, tints: Sequence[Tint]) -> str:
        """The characters [start, end) with their styles and tints."""
        styles = [each for each in piece.styles if each.start < end and start < each.end]
        shown = [each for each in tints if each[0] < end and start < each[1]]
        edges = {start, end}
        for low, high in [*((s.start, s.end) for s in styles), *(each[:2] for each in shown)]:
            edges |= {max(start, low), min(end, high)}
        # A formula is whole or, in a part of it, its source.
        formulas = {
            each.start: (each.end, html)
            for each in styles
            if (formula := formula_of(each)) and start <= each.start and each.end <= end
            if (html := self.formula(formula))
        }
        places = sorted(edges)
        made, style_at, tint_at, skipped = [], 0, 0, 0
        open_styles: list[Styled] = []
        styles.sort(key=lambda each: each.start)
        for low, high in pairwise(places):
            while style_at < len(styles) and styles[style_at].start <= low:
                open_styles.append(styles[style_at])
                style_at += 1
            open_styles = [each for each in open_styles if each.end > low]
            while tint_at < len(shown) and shown[tint_at][1] <= low:
                tint_at += 1
            if low < skipped:
                continue
            if low in formulas:
                skipped, run = formulas[low]
            else:
                run = text_html(piece.text[low:high]).replace("\n", "<br>").replace("\u2028", "<br>")
                if tint_at < len(shown) and shown[tint_at][0] <= low:
                    run = f'<span class="{shown[tint_at][2]}">{run}</span>'
            for each in open_styles:
                if tag := _TAGS.get(each.style):
                    looks = f' style="{_MONOSPACED}"' if tag == "code" and self.form == "paste" else ""
                    run = f"<{tag}{looks}>{run}</{tag}>"
                elif each.style == "link":
                    target = text_html(each.target).replace('"', "&quot;")
                    run = f'<a href="{target}">{run}</a>'
            made.append(run)
        return "".join(made)


def text_html(text: str) -> str:
    """`text` escaped, without characters that HTML does not allow."""
    return escape(_CONTROLS.sub("\ufffd", _SURROGATES.sub("\ufffd", text)), quote=False)


def _opened(piece: Piece, open_tags: list[str]) -> str:
    """The tags that close and open the quotes, lists and items before `piece`; `open_tags` follows.

    Lists are inside quotes: a piece has the number of each around it, but not their order.
    """
    made: list[str] = []

    def close(count: int) -> None:
        made.extend(f"</{open_tags.pop()}>" for _ in range(count))

    quotes = open_tags.count("blockquote")
    if piece.quotes != quotes:
        close(len(open_tags) - min(quotes, piece.quotes))
        for _ in range(piece.quotes - open_tags.count("blockquote")):
            open_tags.append("blockquote")
            made.append("<blockquote>")
    depth = open_tags.count("li")
    wanted = piece.depth if piece.marker or depth >= piece.depth else depth
    close(2 * max(0, depth - wanted))
    if not piece.marker:
        return "".join(made)
    number = _NUMBER.match(piece.marker)
    kind = "ol" if number else "ul"
    if depth >= wanted:
        close(1)
        if open_tags[-1] != kind:
            close(1)
    for level in range(open_tags.count("li"), wanted):
        innermost = level == wanted - 1
        if open_tags[-1:] not in (["ol"], ["ul"]):
            open_tags.append(kind if innermost else "ul")
            start = f' start="{number.group(1)}"' if innermost and number and number.group(1) != "1" else ""
            made.append(f"<{open_tags[-1]}{start}>")
        open_tags.append("li")
        made.append("<li>")
    # HTML has no marker for a box or a note's number.
    shown = number.group(2) if number else piece.marker.removeprefix("•")
    return "".join(made) + (f"{text_html(shown)} " if shown else "")


def _flat(piece: Piece, text: str) -> str:
    """A paragraph or heading of Qt's HTML."""
    tag = f"h{min(4, piece.level + 1)}" if piece.kind == "heading" else "p"
    left = _INDENT_PX * (piece.depth + piece.quotes + (piece.thought >= 0))
    style = f' style="margin-{"right" if is_rtl(piece.text) else "left"}:{left}px"' if left else ""
    kind = ' class="thought"' if piece.thought >= 0 else ' class="quote"' if piece.quotes else ""
    marker = f"{text_html(piece.marker)}\u00a0\u00a0" if piece.marker else ""
    if marker:
        style = style.replace("px", f"px; text-indent:-{_INDENT_PX - 6}px")
    return f"<{tag}{kind}{_direction(piece.text)}{style}>{marker}{text}</{tag}>"


def _spaced(text: str) -> bool:
    return any(_KEPT_SPACE.search(line) for line in text.split("\n"))


def _direction(text: str) -> str:
    return ' dir="rtl"' if is_rtl(text) else ""


def formula_of(styled: Styled) -> Formula | None:
    """The formula that has this style."""
    if styled.style not in ("formula", "display"):
        return None
    return Formula(styled.target, styled.style == "display")


def part_of(piece: Piece, start: int, end: int) -> Piece:
    """The visible characters [start, end) of `piece`, with its styles and cells. A cut formula is text."""
    if (start, end) == (0, len(piece.text)):
        return piece
    styles = [
        replace(each, start=max(each.start, start) - start, end=min(each.end, end) - start)
        for each in piece.styles
        if each.start < end and start < each.end
        if formula_of(each) is None or (start <= each.start and each.end <= end)
    ]
    cells = [
        replace(each, start=max(each.start, start) - start, end=min(each.end, end) - start)
        for each in piece.cells
        if (each.start < end and start < each.end) or start <= each.start == each.end < end
    ]
    return replace(piece, text=piece.text[start:end], segments=(), styles=tuple(styles), cells=tuple(cells))


def pasted(pieces: Sequence[Piece], formula: Callable[[Formula], str]) -> str:
    """`pieces`, which may be parts, as a document for the clipboard.

    A part of one paragraph, code line or cell is pasted into the line where the cursor is.
    """
    renderer = Renderer("paste", formula)
    lone = pieces[0] if len(pieces) == 1 else None
    if lone and lone.kind == "table" and len(lone.cells) == 1:
        lone = replace(lone, kind="text")
    if lone and lone.kind == "code" and "\n" not in lone.text:
        lone = replace(lone, kind="text", styles=(Styled(0, len(lone.text), "code"),))
    if lone and lone.kind == "text":
        body = renderer.inline(lone, 0, len(lone.text))
        if _spaced(lone.text):
            body = f'<span style="white-space:pre-wrap"{_direction(lone.text)}>{body}</span>'
    else:
        body = "".join(renderer.blocks(pieces))
    # Without the encoding some programs take it for Latin 1.
    return f'<html><head><meta charset="utf-8"></head><body>{body}</body></html>'


def _columns(piece: Piece) -> tuple[str, list[float]]:
    """The size of a table's text, one of `_SIZES`, and the widths of the columns of a wide one in percent.

    Without widths Qt breaks words in narrow columns into letters.
    """
    count = 1 + max(cell.column for cell in piece.cells)
    words, texts = [1] * count, [1] * count
    for cell in piece.cells:
        text = piece.text[cell.start : cell.end]
        word = max(map(len, text.split()), default=0)
        word += not cell.row or text[:1].isdigit()  # bold text and figures are wider
        words[cell.column] = max(words[cell.column], min(word, _WORD_CHARACTERS))
        texts[cell.column] = max(texts[cell.column], len(text))
    padding = _PADDING_CHARACTERS * count
    if sum(texts) + padding <= _SIZES["usual"][0]:
        return "usual", []
    needed = sum(words) + padding
    size = next((name for name, (most, _) in _SIZES.items() if needed <= most), "smallest")
    spare = max(0, _SIZES[size][0] - needed)
    shares = [min(text, 200) ** 0.5 for text in texts]
    parts = [
        word + _PADDING_CHARACTERS + spare * share / sum(shares)
        for word, share in zip(words, shares, strict=True)
    ]
    return size, [round(100 * part / sum(parts), 1) for part in parts]
