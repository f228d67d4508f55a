"""HTML to readable text: what a reader of the page sees, one line per block. Pure.

Headings keep their level as `#` marks, items their dash or number and indent, links that lead out of the page
their address, form fields their state. A table whose cells hold long texts or headings arranges a page: its
cells are blocks. MathML becomes linear text, of graphics (SVG) the texts are read. Scripts and styles are
left out; pictures leave their alternative text. Broken markup gives what can be read of it. What the page
hides by an attribute or an inline style is left out, and counted in a last line; style sheets and scripts are
not run.
"""

from __future__ import annotations

import re
from collections import Counter
from urllib.parse import urljoin

from core.documents.equations import equation_line
from core.documents.limits import Gathered, Told
from core.documents.markup import EndTag, Markup, StartTag, TagText
from core.documents.numerals import figure, kind_of
from core.documents.parts import Builder, Element
from core.documents.writer import DEEPEST, INDENT, Marks, Writer

_HIDDEN = frozenset(("script", "style", "noscript", "template", "head", "svg", "iframe", "object", "rp"))
_OBJECTS = frozenset(("iframe", "object"))
# Inside of graphics only these are text.
_DRAWN = frozenset(("text", "foreignobject"))
_BLOCKS = frozenset((
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog",
    "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hr", "legend", "li",
    "main", "nav", "ol", "option", "p", "pre", "section", "select", "summary", "table", "tbody", "textarea",
    "tfoot", "thead", "tr", "ul",
))  # fmt: skip
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
# An empty line separates these from other blocks.
_SPACED = frozenset(("p", "table", "ul", "ol", "dl", "blockquote", "pre", "section", "article", *_HEADINGS))
_CELLS = frozenset(("td", "th"))
_ROW_GROUPS = frozenset(("thead", "tbody", "tfoot"))
_CHARSET = re.compile(
    rb"""(?:charset|<\?xml[^>]{0,200}encoding)\s*=\s*(?:["']\s*)?([A-Za-z0-9_:.-]{1,40})""", re.I
)
# Inside a cell these may show that a table arranges a page.
_RICH = frozenset(("ul", "ol", "dl", "section", "article", "form", "table", "pre", *_HEADINGS))
_ATTRIBUTES = frozenset((
    "alt", "checked", "class", "colspan", "data-mathml", "hidden", "href", "rowspan", "selected", "reversed",
    "shadowrootmode", "start", "style", "type", "value",
))  # fmt: skip
# Classes of the visual copies of formulas by KaTeX and MathJax, and of check boxes of exported tasks.
_MATH_JAX = frozenset(("MathJax", "MathJax_SVG", "MathJax_CHTML", "mjx-chtml"))
_DRAWN_MATH, _MATH_PREVIEW = "katex-html", "MathJax_Preview"
_TASKS = {"checkbox-on": "[x] ", "checkbox-off": "[ ] "}
_TASK_LIST = "inline-task-list"
# Declarations of an inline style that make text invisible.
_UNSEEN = re.compile(
    r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)"
    r"|(?:opacity|font-size)\s*:\s*(?:0+(?:\.0*)?|\.0+)(?:[a-z]{1,4}|%)?)\s*(?:!\s*important\s*)?(?:;|$)",
    re.I,
)
_LIST_STYLE = re.compile(r"list-style(?:-type)?\s*:\s*([a-z-]{1,40})", re.I)
_VOID = frozenset((
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track",
    "wbr",
))  # fmt: skip
# Elements that end before one of these starts, without an end tag.
_ENDED_BY = {
    "p": _BLOCKS | _HEADINGS.keys(),
    "li": frozenset(("li",)),
    **dict.fromkeys(("dt", "dd"), frozenset(("dt", "dd"))),
    "option": frozenset(("option",)),
    **dict.fromkeys(("td", "th"), frozenset(("td", "th", "tr", "tbody", "tfoot"))),
    "tr": frozenset(("tr", "tbody", "tfoot")),
}
# Elements, and declarations of a style, that mark text.
_MARKS = {"sup": "super", "sub": "sub", "s": "struck", "strike": "struck", "del": "struck"}
_STYLED = {"super": "vertical-align:super", "sub": "vertical-align:sub", "struck": "line-through"}
_UNSHOWN_INPUTS = frozenset(("hidden", "password", "submit", "button", "image", "reset", "file"))
_NUMBER = re.compile(r"-?[0-9]{1,9}")
_ALL_ROWS = 100_000  # of a group; a cell's `rowspan` is 0
_TELL_EVERY = 1024 * 1024


def html_text(markup: str, told: Told, gathered: Gathered, *, titled: bool = True) -> str:
    """The page's text; if `titled`, its title first, unless a heading says it. Raises `TooLongError`."""
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
    title = " ".join("".join(reader.title).split())
    if titled and title and not body.lstrip("# ").startswith(title):
        return f"# {title}\n\n{body}".strip()
    return body


def declared_charset(data: bytes) -> str:
    """The label of the encoding that the page declares; empty if it declares none."""
    found = _CHARSET.search(data[:2048])
    return found.group(1).decode("ascii") if found else ""


class _List:
    """An open list, numbered or not."""

    def __init__(self, tag: str, attributes: dict[str, str]) -> None:
        styled = _LIST_STYLE.search(attributes.get("style", ""))
        named = styled[1].lower() if styled else attributes.get("type", "").strip()
        self._kind = kind_of(named) or ("decimal" if tag == "ol" else "bullet")
        start = attributes.get("start", "").strip()
        self._next, self._step = int(start) if _NUMBER.fullmatch(start) else 1, 1
        if "reversed" in attributes:
            # Where it begins says how many items follow, unless the page says it.
            self._kind, self._step = self._kind if start else "bullet", -1

    def next_mark(self, value: str) -> str:
        """The number before the next item, which may say its own `value`, or its dash."""
        if self._kind in ("bullet", "none"):
            return "- "
        if _NUMBER.fullmatch(value.strip()):
            self._next = int(value)
        number, self._next = self._next, self._next + self._step
        shown = figure(number, self._kind, doubles=False)
        return (
            f"{shown} " if shown != str(number) and not shown.isascii() and len(shown) == 1 else f"{shown}. "
        )


class _Reader:
    """Tells a `Writer` what the page shows."""

    def __init__(self, gathered: Gathered) -> None:
        self.title: list[str] = []
        self._writer = Writer(gathered)
        # Open elements that show nothing: how many, and before how many each kind's first was opened.
        self._hidden = 0
        self._first_hidden: dict[str, int] = {}
        self._drawn: list[int] = []  # how many were hidden where a text of a graphic begins
        # Elements that are open inside the one that the page hides, itself first; how many of each.
        self._unseen: list[str] = []
        self._unseen_counts: Counter[str] = Counter()
        self._open_blocks: Counter[str] = Counter()  # outside of it
        self._in_title = False
        self._pre = 0
        self._mark = self._kind = ""
        self._lists: list[_List] = []
        self._items = 0
        # How the open elements mark text, by their tags, and how many of them do so.
        self._marked: dict[str, list[str]] = {}
        self._marks: Counter[str] = Counter()
        self._links = 0
        self._in_reading = False  # above a word
        self._base = ""
        self._math: Builder | None = None
        self._is_drawn_twice = False  # a hidden element is the visual copy of a formula that is read
        self._has_formula = False  # of KaTeX or MathJax, read since its container began
        self._in_tex = self._in_math_jax = False
        self._tasks: list[bool] = []  # whether the open lists have tasks
        self._quotes = 0
        self._options: list[tuple[bool, str]] | None = None  # of the open choice: chosen, label

    def text(self) -> str:
        """All of it."""
        self._break()
        return self._writer.text().strip("\n ")

    def start(self, piece: StartTag) -> None:
        tag = piece.tag
        if piece.closed and (tag in _HIDDEN or tag == "title"):
            return
        if self._unseen and self._start_unseen(piece):
            return
        if tag == "template" and piece.attributes.get("shadowrootmode"):
            return  # shown as a part of its element
        if tag == "script" and piece.attributes.get("type", "").startswith("math/tex"):
            self._in_tex = not self._has_formula
            self._has_formula = False
        if self._math is not None:
            self._math.start(tag)
            if piece.closed:
                self._math.end()
            return
        if tag == "base":
            self._base = self._base or piece.attributes.get("href", "")
        elif tag == "title" and "svg" not in self._first_hidden:
            self._in_title = True
        elif tag == "body":
            # A head or a title that was never closed.
            self._hidden = 0
            self._first_hidden.clear()
            self._in_title = False
        elif tag in _DRAWN and "svg" in self._first_hidden and not self._drawn:
            self._break()
            self._drawn.append(self._hidden)
            self._hidden = 0
        elif tag in _HIDDEN:
            if tag in _OBJECTS and not self._hidden:
                self._writer.gathered.leave_out("object")
            self._first_hidden.setdefault(tag, self._hidden)
            self._hidden += 1
        if self._hidden:
            return
        if self._draws_math(piece):
            self._is_drawn_twice = True
            self._see_no_more(tag)
            return
        if not _is_seen(piece):
            if tag in _VOID or piece.closed:
                return
            self._see_no_more(tag)
            if tag not in _CELLS:
                return
        elif tag in _BLOCKS:
            self._open_blocks[tag] += 1
        self._start_seen(tag, piece)

    def _draws_math(self, piece: StartTag) -> bool:
        """Whether an element draws a formula that is read elsewhere, or here from its attribute."""
        if piece.tag == "mjx-container":
            self._in_math_jax, self._has_formula = True, False
        classes = piece.attributes.get("class", "").split()
        if not classes or piece.tag in _VOID or piece.closed:
            return False
        if "katex" in classes:
            self._has_formula = False
        if _DRAWN_MATH in classes:
            return self._has_formula
        if _MATH_PREVIEW in classes:
            return True
        if _MATH_JAX.isdisjoint(classes) or piece.tag == "mjx-container":
            return False
        self._has_formula = False
        if markup := piece.attributes.get("data-mathml", ""):
            self._read_math(markup)
        return True

    def _read_math(self, markup: str) -> None:
        """A separate formula."""
        for piece in Markup(markup):
            if isinstance(piece, TagText):
                self.words(piece.data)
            elif isinstance(piece, StartTag):
                self.start(piece)
            else:
                self.end(piece)

    def _start_seen(self, tag: str, piece: StartTag) -> None:
        writer, attributes = self._writer, piece.attributes
        style = attributes.get("style", "").replace(" ", "").lower()
        marked = _MARKS.get(tag) or next((each for each, words in _STYLED.items() if words in style), "")
        while tag in _ENDED_BY and self._marked.get(tag):
            self._unmark(tag)
        if (marked or self._marked.get(tag)) and tag not in _VOID and not piece.closed:
            self._marked.setdefault(tag, []).append(marked)
            self._marks[marked] += 1
        if tag == "br":
            self._break()
        elif tag == "q":
            writer.words("“‘"[self._quotes % 2])
            self._quotes += 1
        elif tag == "math":
            self._math, self._has_formula = Builder(Element("math")), True
        elif tag == "rt":
            writer.words(")(" if self._in_reading else "(")
            self._in_reading = True
        elif tag == "a" and not piece.closed:
            if self._links:  # one that was not closed
                writer.close_link()
            self._links = 1
            writer.open_link(
                urljoin(self._base, attributes.get("href", "")) if self._base else attributes.get("href", "")
            )
        elif tag == "img":
            if "alt" in attributes:
                writer.words(attributes["alt"])
            else:
                writer.gathered.leave_out("picture")
        elif tag in ("audio", "video", "embed", "canvas"):
            writer.gathered.leave_out("object")
        elif tag == "input":
            self._input(attributes)
        elif tag == "select":
            self._options = []
        elif tag == "option" and self._options is not None:
            self._options.append(("selected" in attributes, ""))
        elif tag == "table":
            if writer.in_cell:
                self._outer_is_rich()
            self._break(apart=True)
            writer.open_table()
        elif tag in _CELLS:
            self._close_cell()
            columns, rows = (_span(attributes.get(name, "")) for name in ("colspan", "rowspan"))
            writer.open_cell(columns or 1, rows or _ALL_ROWS)
            assert writer.outer_table
            writer.outer_table.headed |= tag == "th"
        elif tag == "tr":
            self._close_cell()
            writer.open_row()
        elif tag in _ROW_GROUPS:
            self._end_row(tag)
        elif tag in _BLOCKS or tag in _HEADINGS:
            self._start_block(tag, attributes)

    def _start_block(self, tag: str, attributes: dict[str, str]) -> None:
        if tag in _RICH:
            self._outer_is_rich()
        if tag == "caption" and self._writer.table:
            self._writer.table.headed = True
        self._break(apart=self._stands_apart(tag))
        self._items += tag == "li"
        classes = attributes.get("class", "").split()
        if tag in ("ol", "ul"):
            self._lists.append(_List(tag, attributes))
            self._tasks.append(_TASK_LIST in classes)
        # A paragraph inside an item or a heading has its mark.
        mark = self._mark
        if tag == "li":
            mark = self._lists[-1].next_mark(attributes.get("value", "")) if self._lists else "- "
            mark = self._indent() + mark
            if self._tasks and self._tasks[-1]:
                mark += "[x] " if "checked" in classes else "[ ] "
        mark += next((_TASKS[each] for each in classes if each in _TASKS), "")
        self._mark = _HEADINGS.get(tag, mark)
        self._kind = "heading" if tag in _HEADINGS else self._kind
        self._pre += tag == "pre"

    def _input(self, attributes: dict[str, str]) -> None:
        kind = attributes.get("type", "text").lower()
        if kind in ("checkbox", "radio"):
            self._writer.words("[x]" if "checked" in attributes else "[ ]")
        elif kind not in _UNSHOWN_INPUTS and (value := attributes.get("value", "")):
            self._writer.words(f" {value} ")

    def _outer_is_rich(self) -> None:
        if table := self._writer.outer_table:
            table.rich = True

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
            self._is_drawn_twice = False
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
            self._is_drawn_twice = self._is_drawn_twice and bool(self._unseen)
            # The cells of a row keep their columns, hidden ones too.
            return bool(self._unseen) or tag not in _CELLS
        ends_parent = self._open_blocks[tag] and tag not in _ENDED_BY
        if ends_parent or (tag in _BLOCKS and self._unseen[0] in _ENDED_BY):
            self._unseen.clear()
            self._unseen_counts.clear()
            self._is_drawn_twice = False
            return False
        return True

    def end(self, piece: EndTag) -> None:
        tag = piece.tag
        if self._unseen and self._end_unseen(tag):
            return
        if self._math is not None:
            if tag == "math" or tag in _BLOCKS:
                line, self._math = equation_line(self._math.root), None
                self._writer.words(line)
            elif self._math.innermost.tag == tag:
                self._math.end()
            return
        self._open_blocks[tag] -= self._open_blocks[tag] > 0
        if tag == "title":
            self._in_title = False
        if tag == "script":
            self._in_tex = False
        if tag in _DRAWN and self._drawn:
            self._break()
            self._hidden = self._drawn.pop()
        elif tag in self._first_hidden:
            # With it end those that were opened inside.
            self._hidden = self._first_hidden[tag]
            self._drawn.clear()
            self._first_hidden = {
                name: before for name, before in self._first_hidden.items() if before < self._hidden
            }
            return
        if not self._hidden:
            self._end_seen(tag)

    def _end_seen(self, tag: str) -> None:
        writer = self._writer
        if self._marked.get(tag):
            self._unmark(tag)
        if tag == "q" and self._quotes:
            self._quotes -= 1
            writer.words("”’"[self._quotes % 2])
        if tag == "mjx-container" and self._in_math_jax:
            self._in_math_jax = False
            if not self._has_formula:
                writer.mark("equation")
        if tag in ("rt", "ruby") and self._in_reading:
            self._in_reading = False
            writer.words(")")
        if tag == "a" and self._links:
            self._links = 0
            writer.close_link()
        elif tag == "select" and self._options is not None:
            options, self._options = self._options, None
            chosen = [label for is_chosen, label in options if is_chosen] or [
                label for _, label in options[:1]
            ]
            writer.words(f" {' '.join(' '.join(chosen).split())} ")
        elif tag == "table":
            self._close_cell()
            writer.close_table()
            self._break(apart=True)
        elif tag in _CELLS:
            self._close_cell()
        elif tag == "tr" or tag in _ROW_GROUPS:
            self._end_row(tag)
        elif tag in _BLOCKS or tag in _HEADINGS:
            if tag in ("ol", "ul") and self._lists:
                self._lists.pop()
                self._tasks.pop()
            self._break(apart=self._stands_apart(tag))
            self._items -= tag == "li" and self._items > 0
            if tag == "li" or tag in _HEADINGS:
                self._mark = self._kind = ""
            self._pre -= tag == "pre" and self._pre > 0

    def _unmark(self, tag: str) -> None:
        self._marks[self._marked[tag].pop()] -= 1

    def _close_cell(self) -> None:
        if self._writer.in_cell and self._writer.table is None:
            self._break()
            self._mark = self._kind = ""
            self._writer.close_cell()

    def _end_row(self, tag: str) -> None:
        self._close_cell()
        self._break()
        if table := self._writer.table:
            table.end_row(ends_group=tag in _ROW_GROUPS)

    def _stands_apart(self, tag: str) -> bool:
        """Whether an empty line separates the block `tag` from others; paragraphs and lists in an item have
        none.
        """
        inside = self._items if tag == "p" else self._lists if tag in ("ol", "ul") else ()
        return tag in _SPACED and not inside

    def words(self, data: str) -> None:
        if self._in_title:
            self.title.append(data)
        elif self._in_tex:
            self._writer.words(f"${data.strip()}$")
        elif self._unseen:
            if self._unseen[-1] not in _HIDDEN and not self._is_drawn_twice:
                self._writer.words(data, Marks(hidden=True))
        elif self._hidden:
            return
        elif self._math is not None:
            self._math.characters(data)
        elif self._options:
            is_chosen, label = self._options[-1]
            self._options[-1] = is_chosen, label + data
        elif data:
            how = self._marks
            script = "super" if how["super"] else "sub" if how["sub"] else ""
            self._writer.words(
                data if self._pre else _SPACES.sub(" ", data), Marks(script, how["struck"] > 0)
            )

    def _indent(self) -> str:
        return INDENT * min(len(self._lists) - 1, DEEPEST)

    def _break(self, *, apart: bool = False) -> None:
        """End the line; `apart` leaves an empty one after it."""
        writer = self._writer
        if writer.has_words:
            mark, self._mark = self._mark or ("" if self._pre else self._indent()), ""
            writer.close_paragraph("code" if self._pre else self._kind or "line", mark, flows=not self._pre)
        else:
            writer.take_paragraph()
        if apart:
            writer.apart()


_SPACES = re.compile(r"[ \t\n\f\r]+")


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
    return int(value) if value.isascii() and value.isdigit() and len(value) < 6 else 1
