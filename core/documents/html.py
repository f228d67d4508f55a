"""HTML to readable text: what a reader of the page sees, one line per block. Pure.

Headings keep their level as `#` marks, items their dash or number. A row of a table is a line with tabs
between cells; empty, spanned and spanning cells keep the columns. A table whose cells hold tables, lists or
headings arranges a page: its cells are blocks. Scripts, styles and graphics are left out; links leave their
words, pictures their alternative text. Broken markup gives what can be read of it. What the page hides by an
attribute or an inline style is left out, and counted in a last line; style sheets and scripts are not run.
"""

from __future__ import annotations

import re
from collections import Counter

from core.documents import strings
from core.documents.docx_symbols import scripted
from core.documents.limits import Gathered, Told
from core.documents.markup import EndTag, Markup, StartTag, TagText

_HIDDEN = frozenset(("script", "style", "noscript", "template", "head", "svg", "math", "iframe", "object"))
_BLOCKS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details"),
        *("dialog", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header"),
        *("hr", "legend", "li", "main", "nav", "ol", "option", "p", "pre", "section", "select"),
        *("summary", "table", "tbody", "textarea", "tfoot", "thead", "tr", "ul"),
    )
)
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
# An empty line separates these from other blocks.
_SPACED = frozenset(("p", "table", "ul", "ol", "dl", "blockquote", "pre", "section", "article", *_HEADINGS))
_CELLS = frozenset(("td", "th"))
_CHARSET = re.compile(
    rb"""(?:charset|<\?xml[^>]{0,200}encoding)\s*=\s*["']?\s*([A-Za-z0-9_:.-]{1,40})""", re.I
)
# Inside a cell these show that a table arranges a page.
_ARRANGED = frozenset(("ul", "ol", "dl", "section", "article", "form", *_HEADINGS))
_MOST_SPAN = 64
_ATTRIBUTES = frozenset(("alt", "colspan", "hidden", "rowspan", "start", "style", "type", "value"))
# Declarations of an inline style that make text invisible.
_UNSEEN = re.compile(
    r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)"
    r"|(?:opacity|font-size)\s*:\s*(?:0+(?:\.0*)?|\.0+)(?:[a-z]{1,4}|%)?)\s*(?:!\s*important\s*)?(?:;|$)",
    re.I,
)
_VOID = frozenset(
    (
        *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source"),
        *("track", "wbr"),
    )
)
# Elements that end before one of these starts, without an end tag.
_ENDED_BY = {
    "p": _BLOCKS | _HEADINGS.keys(),
    "li": frozenset(("li",)),
    **dict.fromkeys(("dt", "dd"), frozenset(("dt", "dd"))),
    "option": frozenset(("option",)),
    **dict.fromkeys(("td", "th"), frozenset(("td", "th", "tr", "tbody", "tfoot"))),
    "tr": frozenset(("tr", "tbody", "tfoot")),
}
_SCRIPTS = {"sup": "super", "sub": "sub"}
_NUMBER = re.compile(r"-?[0-9]{1,9}")
_ROMAN = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix")
_TELL_EVERY = 1024 * 1024


def html_text(markup: str, told: Told, gathered: Gathered) -> str:
    """The page's text; its title first, unless a heading says the same. Raises `TooLongError`."""
    reader = _Reader(gathered)
    pieces = Markup(markup, _ATTRIBUTES)
    heard = 0
    told(0, len(markup) or 1, "bytes")
    for piece in pieces:
        if isinstance(piece, TagText):
            reader.words(piece.data)
        elif isinstance(piece, StartTag):
            reader.start(piece)
        else:
            reader.end(piece)
        if pieces.place >= heard + _TELL_EVERY:
            heard = pieces.place
            told(heard, len(markup), "bytes")
    body = reader.text()
    if reader.hidden_words:
        body = f"{body}\n\n{strings.hidden_text(reader.hidden_words)}"
    title = " ".join("".join(reader.title).split())
    if title and not body.lstrip("# ").startswith(title):
        return f"# {title}\n\n{body}".strip()
    return body


def declared_charset(data: bytes) -> str:
    """The label of the encoding that the page declares; empty if it declares none."""
    found = _CHARSET.search(data[:2048])
    return found.group(1).decode("ascii") if found else ""


class _Table:
    """An open table: the open row's cells, and how many rows a cell of the rows above still spans, by
    column.
    """

    def __init__(self) -> None:
        self.row: list[str] = []
        self.in_cell = False
        # A cell with a table, a list or a heading inside: the table arranges a page and holds no data.
        self.arranges = False
        self.spanned: dict[int, int] = {}
        self.columns = 1
        self.rows = 1

    def skip_spanned(self) -> None:
        """Empty cells for columns that a cell of an earlier row covers."""
        while self.spanned.get(len(self.row), 0) > 0:
            self.spanned[len(self.row)] -= 1
            self.row.append("")

    def close_cell(self, text: str) -> None:
        """The open cell ends with `text`."""
        for offset in range(self.columns):
            if self.rows > 1:
                self.spanned[len(self.row)] = self.rows - 1
            self.row.append("" if offset else text)
        self.in_cell = False
        self.skip_spanned()


class _List:
    """An open numbered list."""

    def __init__(self, attributes: dict[str, str]) -> None:
        self._kind = attributes.get("type", "1").strip() or "1"
        start = attributes.get("start", "").strip()
        self._next = int(start) if _NUMBER.fullmatch(start) else 1

    def next_mark(self, value: str) -> str:
        """The number before the next item, which may say its own `value`."""
        if _NUMBER.fullmatch(value.strip()):
            self._next = int(value)
        number, self._next = self._next, self._next + 1
        if self._kind in "aA" and 1 <= number <= 26:
            return f"{chr(ord(self._kind) + number - 1)}. "
        if self._kind in "iI" and 1 <= number < 40:
            roman = "x" * (number // 10) + _ROMAN[number % 10]
            return f"{roman.upper() if self._kind == 'I' else roman}. "
        return f"{number}. "


class _Reader:
    """Collects lines in `gathered`."""

    def __init__(self, gathered: Gathered) -> None:
        self.title: list[str] = []
        self._gathered = gathered
        self._line: list[str] = []
        self._line_says = False
        self._empty_before = True
        # Open elements that show nothing: how many, and before how many each kind's first was opened.
        self._hidden = 0
        self._first_hidden: dict[str, int] = {}
        self.hidden_words = 0
        # Elements that are open inside the one that the page hides, itself first; how many of each.
        self._unseen: list[str] = []
        self._unseen_counts: Counter[str] = Counter()
        self._open_blocks: Counter[str] = Counter()  # outside of it
        self._in_title = False
        self._pre = 0
        self._mark = ""
        self._tables: list[_Table] = []
        self._lists: list[_List | None] = []
        self._items = 0
        # Where raised or lowered text begins in the line; -1 outside of it.
        self._script_from = -1

    def text(self) -> str:
        """All of it, with at most one empty line between two others."""
        while self._tables:  # those that the page does not end
            self._close_row(self._tables[-1])
            self._tables.pop()
        self._break()
        return re.sub(r"\n{3,}", "\n\n", self._gathered.text()).strip("\n ")

    def start(self, piece: StartTag) -> None:
        tag = piece.tag
        if piece.closed and (tag in _HIDDEN or tag == "title"):
            return
        if self._unseen and self._start_unseen(piece):
            return
        if tag == "title" and "svg" not in self._first_hidden:
            self._in_title = True
        elif tag == "body":
            # A head or a title that was never closed.
            self._hidden = 0
            self._first_hidden.clear()
            self._in_title = False
        elif tag in _HIDDEN:
            self._first_hidden.setdefault(tag, self._hidden)
            self._hidden += 1
        if self._hidden:
            return
        if not _is_seen(piece):
            if tag in _VOID or piece.closed:
                return
            self._see_no_more(tag)
            if tag not in _CELLS:
                return
        elif tag in _BLOCKS:
            self._open_blocks[tag] += 1
        table = self._tables[-1] if self._tables else None
        if table is None and tag in ("tr", *_CELLS):
            table = _Table()  # a part of a page: rows without their table
            self._tables.append(table)
        if tag == "br":
            self._break()
        elif tag in _SCRIPTS:
            self._script_from = len(self._line)
        elif tag == "img":
            self._add(piece.attributes.get("alt", ""))
        elif tag == "table":
            if table:
                self._arrange(table)
            self._break(apart=True)
            self._tables.append(_Table())
        elif tag in _CELLS and table:
            self._close_cell(table)
            self._open_cell(table, piece.attributes)
        elif tag == "tr" and table:
            self._close_row(table)
        elif tag in _BLOCKS or tag in _HEADINGS:
            if table and table.in_cell and tag in _ARRANGED:
                self._arrange(table)
            self._break(apart=self._stands_apart(tag))
            self._items += tag == "li"
            if tag in ("ol", "ul"):
                numbered = tag == "ol"
                self._lists.append(_List(piece.attributes) if numbered else None)
            # A paragraph inside an item or a heading has its mark.
            mark = self._item_mark(piece.attributes) if tag == "li" else self._mark
            self._mark = _HEADINGS.get(tag, mark)
            self._pre += tag == "pre"

    def _see_no_more(self, tag: str) -> None:
        self._unseen.append(tag)
        self._unseen_counts[tag] += 1

    def _start_unseen(self, piece: StartTag) -> bool:
        """A tag after the start of a hidden element; whether it is inside of it."""
        tag = piece.tag
        while self._unseen and tag in _ENDED_BY.get(self._unseen[-1], ()):
            self._unseen_counts[self._unseen.pop()] -= 1
        if not self._unseen or tag == "body":
            self._unseen.clear()
            self._unseen_counts.clear()
            return False
        if tag not in _VOID and not piece.closed:
            self._see_no_more(tag)
        return True

    def _end_unseen(self, tag: str) -> bool:
        """An end tag after the start of a hidden element; whether it belongs to it."""
        if self._unseen_counts[tag]:
            ended = ""
            while ended != tag:
                ended = self._unseen.pop()
                self._unseen_counts[ended] -= 1
            # The cells of a row keep their columns, hidden ones too.
            return bool(self._unseen) or tag not in _CELLS
        ends_parent = self._open_blocks[tag] and tag not in _ENDED_BY
        if ends_parent or (tag in _BLOCKS and self._unseen[0] in _ENDED_BY):
            self._unseen.clear()
            self._unseen_counts.clear()
            return False
        return True

    def end(self, piece: EndTag) -> None:
        tag = piece.tag
        if self._unseen and self._end_unseen(tag):
            return
        self._open_blocks[tag] -= self._open_blocks[tag] > 0
        if tag == "title":
            self._in_title = False
        if tag in self._first_hidden:
            # With it end those that were opened inside.
            self._hidden = self._first_hidden[tag]
            self._first_hidden = {
                name: before for name, before in self._first_hidden.items() if before < self._hidden
            }
            return
        if self._hidden:
            return
        if tag in _SCRIPTS and 0 <= self._script_from < len(self._line):
            text = "".join(self._line[self._script_from :])
            self._line[self._script_from :] = [scripted(text, _SCRIPTS[tag])]
            self._script_from = -1
        table = self._tables[-1] if self._tables else None
        if tag == "table" and table:
            self._close_row(table)
            self._tables.pop()
            self._break(apart=True)
        elif tag in _CELLS and table:
            self._close_cell(table)
        elif tag == "tr" and table:
            self._close_row(table)
        elif tag in _BLOCKS or tag in _HEADINGS:
            self._break(apart=self._stands_apart(tag))
            self._items -= tag == "li" and self._items > 0
            if tag in ("ol", "ul") and self._lists:
                self._lists.pop()
            if tag == "li" or tag in _HEADINGS:
                self._mark = ""
            self._pre -= tag == "pre" and self._pre > 0

    def _item_mark(self, attributes: dict[str, str]) -> str:
        numbers = self._lists[-1] if self._lists else None
        return numbers.next_mark(attributes.get("value", "")) if numbers else "- "

    def _stands_apart(self, tag: str) -> bool:
        """Whether an empty line separates the block `tag` from others; paragraphs of an item have none."""
        return tag in _SPACED and not (tag == "p" and self._items)

    @property
    def _in_cell(self) -> bool:
        """Whether text belongs to a cell of a table of data."""
        return bool(self._tables) and self._tables[-1].in_cell and not self._tables[-1].arranges

    def _open_cell(self, table: _Table, attributes: dict[str, str]) -> None:
        table.skip_spanned()
        table.columns, table.rows = (_span(attributes.get(name, "")) for name in ("colspan", "rowspan"))
        table.in_cell = True

    def _close_cell(self, table: _Table) -> None:
        if not table.in_cell:
            return
        if table.arranges:
            table.in_cell = False
            self._break()
            return
        table.close_cell(" ".join("".join(self._line).split()))
        self._line.clear()
        self._line_says = False

    def _close_row(self, table: _Table) -> None:
        """Writes the open row as a line of cells with tabs between them."""
        self._close_cell(table)
        row, table.row = table.row, []
        if any(row):
            self._write("\t".join(row).rstrip())

    def _arrange(self, table: _Table) -> None:
        """`table` arranges a page: its cells are blocks, also those that are collected."""
        if table.arranges:
            return
        table.arranges = True
        row, table.row = table.row, []
        for cell in filter(None, row):
            self._write(cell)
        table.spanned.clear()

    def words(self, data: str) -> None:
        if self._in_title:
            self.title.append(data)
        elif self._unseen and self._unseen[-1] not in _HIDDEN:
            self.hidden_words += len(data.split())
        elif not (self._unseen or self._hidden):
            self._add(data)

    def _add(self, data: str) -> None:
        self._line.append(data)
        self._line_says = self._line_says or bool(data and not data.isspace())

    def _break(self, *, apart: bool = False) -> None:
        """End the line, in a cell with a space; `apart` leaves an empty one after it."""
        if self._in_cell:
            self._line.append(" ")
            return
        if self._line_says:
            raw = "".join(self._line)
            self._write(raw.strip("\n") if self._pre else " ".join(raw.split()))
        self._line.clear()
        self._line_says = False
        if apart and not self._empty_before:
            self._gathered.add("\n")
            self._empty_before = True

    def _write(self, text: str) -> None:
        """One line, with the mark of its block."""
        mark, self._mark = self._mark, ""
        self._gathered.add(f"{mark}{text}\n")
        self._empty_before = False


def _is_seen(piece: StartTag) -> bool:
    """Whether the page shows the element. A page that is hidden until its script runs is shown."""
    if piece.tag in ("html", "body"):
        return True
    hidden = piece.attributes.get("hidden")
    if hidden is not None and hidden.strip().lower() != "until-found":
        return False
    style = piece.attributes.get("style", "")
    return not (style and _UNSEEN.search(style))


def _span(value: str) -> int:
    value = value.strip()
    return (
        min(max(int(value), 1), _MOST_SPAN) if value.isascii() and value.isdigit() and len(value) < 6 else 1
    )
