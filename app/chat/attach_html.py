"""HTML to readable text: what a reader of the page would see, a block a line.

Headings keep their level as `#` marks and items their dash, so that the structure is still there
for a model. Scripts, styles and what is drawn are left out; links leave their words, pictures
their alternative text. Pure; broken markup gives what can be read of it.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

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
_CHARSET = re.compile(rb"""charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]+)""")


def html_text(markup: str) -> str:
    """The page's text; its title first, unless a heading says the same."""
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    body = reader.text()
    title = " ".join("".join(reader.title).split())
    if title and not body.lstrip("# ").startswith(title):
        return f"# {title}\n\n{body}".strip()
    return body


def declared_charset(data: bytes) -> str:
    """What the page says its encoding is; empty if it does not say."""
    found = _CHARSET.search(data[:2048])
    return found.group(1).decode("ascii") if found else ""


class _Reader(HTMLParser):
    """Collects lines. `_hidden` holds the open elements that show nothing."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title: list[str] = []
        self._lines: list[str] = []
        self._line: list[str] = []
        self._hidden: list[str] = []
        self._in_title = False
        self._pre = 0
        self._mark = ""

    def text(self) -> str:
        """All of it, with at most one empty line between two others."""
        self._break()
        return re.sub(r"\n{3,}", "\n\n", "\n".join(self._lines)).strip()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title" and "svg" not in self._hidden:
            self._in_title = True
        elif tag == "body":
            # A head or a title that was never closed.
            self._hidden.clear()
            self._in_title = False
        elif tag in _HIDDEN:
            self._hidden.append(tag)
        if self._hidden:
            return
        if tag == "br":
            self._break()
        elif tag == "img":
            self._line.append(next((value for name, value in attrs if name == "alt" and value), ""))
        elif tag in _CELLS and "".join(self._line).strip():
            self._line.append("\t")
        elif tag in _BLOCKS or tag in _HEADINGS:
            self._break(apart=tag in _SPACED)
            self._mark = _HEADINGS.get(tag, "- " if tag == "li" else "")
            self._pre += tag == "pre"

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _HIDDEN:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        if tag in self._hidden:
            del self._hidden[self._hidden.index(tag) :]
            return
        if self._hidden:
            return
        if tag in _BLOCKS or tag in _HEADINGS:
            self._break(apart=tag in _SPACED)
            self._pre -= tag == "pre" and self._pre > 0

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title.append(data)
        elif not self._hidden:
            self._line.append(data)

    def _break(self, *, apart: bool = False) -> None:
        """End the line; `apart` leaves an empty one after it."""
        raw = "".join(self._line)
        self._line.clear()
        if self._pre:
            text = raw.strip("\n")
        else:
            text = "\t".join(" ".join(cell.split()) for cell in raw.split("\t"))
            text = text.strip()
        if text.strip():
            self._lines.append(self._mark + text)
            self._mark = ""
        if apart and self._lines and self._lines[-1]:
            self._lines.append("")
