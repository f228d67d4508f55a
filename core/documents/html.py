"""HTML to readable text: what a reader of the page would see, a block a line.

Headings keep their level as `#` marks and items their dash, so that the structure is still there
for a model. Scripts, styles and what is drawn are left out; links leave their words, pictures
their alternative text. Pure; broken markup gives what can be read of it.
"""

from __future__ import annotations

import codecs
import re

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
# These stand apart from what is around them.
_SPACED = frozenset(("p", "table", "ul", "ol", "dl", "blockquote", "pre", "section", "article", *_HEADINGS))
_CELLS = frozenset(("td", "th"))
_CHARSET = re.compile(rb"""charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]{1,40})""")
# What Python calls an encoding and no page is written in: some of these take quadratic time.
_NOT_OF_PAGES = frozenset(
    ("utf-7", "idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined", "mbcs", "oem")
)
_TELL_EVERY = 1024 * 1024


def html_text(markup: str, told: Told, gathered: Gathered) -> str:
    """The page's text; its title first, unless a heading says the same. Raises `TooLongError`."""
    reader = _Reader(gathered)
    pieces = Markup(markup, frozenset(("alt",)))
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
    if title and not body.lstrip("# ").startswith(title):
        return f"# {title}\n\n{body}".strip()
    return body


def declared_charset(data: bytes) -> str:
    """What the page says its encoding is; empty if it does not say, or no page is in that."""
    found = _CHARSET.search(data[:2048])
    if not found:
        return ""
    try:
        name = codecs.lookup(found.group(1).decode("ascii")).name
    except LookupError:
        return ""
    return "" if name.replace("_", "-") in _NOT_OF_PAGES else name


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
        self._in_title = False
        self._pre = 0
        self._mark = ""

    def text(self) -> str:
        """All of it, with at most one empty line between two others."""
        self._break()
        return re.sub(r"\n{3,}", "\n\n", self._gathered.text()).strip()

    def start(self, piece: StartTag) -> None:
        tag = piece.tag
        if piece.closed and (tag in _HIDDEN or tag == "title"):
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
        if tag == "br":
            self._break()
        elif tag == "img":
            self._add(piece.attributes.get("alt", ""))
        elif tag in _CELLS and self._line_says:
            self._line.append("\t")
        elif tag in _BLOCKS or tag in _HEADINGS:
            self._break(apart=tag in _SPACED)
            self._mark = _HEADINGS.get(tag, "- " if tag == "li" else "")
            self._pre += tag == "pre"

    def end(self, piece: EndTag) -> None:
        tag = piece.tag
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
        if tag in _BLOCKS or tag in _HEADINGS:
            self._break(apart=tag in _SPACED)
            self._pre -= tag == "pre" and self._pre > 0

    def words(self, data: str) -> None:
        if self._in_title:
            self.title.append(data)
        elif not self._hidden:
            self._add(data)

    def _add(self, data: str) -> None:
        self._line.append(data)
        self._line_says = self._line_says or bool(data and not data.isspace())

    def _break(self, *, apart: bool = False) -> None:
        """End the line; `apart` leaves an empty one after it."""
        if self._line_says:
            raw = "".join(self._line)
            if self._pre:
                text = raw.strip("\n")
            else:
                text = "\t".join(" ".join(cell.split()) for cell in raw.split("\t")).strip()
            self._gathered.add(f"{self._mark}{text}\n")
            self._mark = ""
            self._empty_before = False
        self._line.clear()
        self._line_says = False
        if apart and not self._empty_before:
            self._gathered.add("\n")
            self._empty_before = True
