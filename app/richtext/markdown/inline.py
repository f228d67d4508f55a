"""Inline Markdown with its source: visible characters, where each came from, and their styles. No Qt.

The parser returns the parts of an inline run without their source positions. The parts are in source order,
so each is found by searching from the end of the one before: delimiters are skipped, text is matched
literally, escapes and entities by the markup that the parser kept. A part without a match gets the current
position, so that every visible character belongs to some token.

Links: which addresses may be opened, and addresses in plain text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct

from app.richtext.markdown.latex import legible
from app.richtext.markdown.piece import Style, Styled

if TYPE_CHECKING:
    from markdown_it.token import Token as Node

_SCHEMES = frozenset(("http", "https", "mailto"))
# Chinese, Japanese and Korean punctuation, which no address has and no space follows.
_FULL_WIDTH = (
    "\u2018-\u201f\u2026\u3001-\u3003\u3008-\u3011\u3014-\u301f"
    "\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
)
_CJK = "\u1100-\u11ff\u3005\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
# Such letters belong to an address at the beginning of one of its parts, not behind its Latin letters.
_BARE = re.compile(rf"(?<![A-Za-z0-9])https?://(?:[^\s<>\"`{_FULL_WIDTH}{_CJK}]|(?<![A-Za-z0-9:])[{_CJK}]+)+")
_LONGEST_ADDRESS = 2_000  # characters of an address


def may_open(address: str) -> bool:
    """Whether a click may hand `address` to the system: web pages and mail, nothing on this machine."""
    try:
        parts = urlsplit(address.strip())
    except ValueError:
        return False
    return parts.scheme.lower() in _SCHEMES and bool(parts.netloc or parts.scheme.lower() == "mailto")


def bare_links(text: str) -> Iterator[tuple[int, int]]:
    """Ranges of addresses in `text`, without the punctuation of the sentence around them."""
    for match in _BARE.finditer(text):
        end = match.end()
        if end - match.start() > _LONGEST_ADDRESS:
            continue
        while end > match.start():
            last, address = text[end - 1], text[match.start() : end]
            unpaired = last in ")]}" and address.count(last) > address.count("([{"[")]}".index(last)])
            if last not in ".,;:!?'*_" and not unpaired:
                break
            end -= 1
        if may_open(text[match.start() : end]):
            yield match.start(), end


_DELIMITERS: dict[str, Style] = {"strong": "bold", "em": "italic", "s": "strike", "link": "link"}


class InlineText(Struct, frozen=True):
    """`origins[i]` is the offset into the inline content of the visible character i."""

    text: str
    origins: tuple[int, ...]
    styles: tuple[Styled, ...]


def align_inline(
    content: str, children: Sequence[Node], keep_indent: bool = False, line_break: str = "\n"
) -> InlineText:
    """The visible form of `children`, the parser's parts of `content`.

    `keep_indent`: the spaces that lines after the first begin with are shown. `line_break` is shown for <br>.
    """
    reader = _Reader(content, keep_indent, line_break)
    for node in children:
        reader.take(node)
    return InlineText("".join(reader.shown), tuple(reader.origins), tuple(reader.styles))


class _Reader:
    def __init__(self, content: str, keep_indent: bool, line_break: str) -> None:
        self.content = content
        self._line_break = line_break
        self._keep_indent = keep_indent
        self.at = 0
        self.shown: list[str] = []
        self.origins: list[int] = []
        self.styles: list[Styled] = []
        self._open: list[tuple[Style, int, str]] = []
        self._inside: Counter[Style] = Counter()  # how many of each are open

    def take(self, node: Node) -> None:
        kind, _, edge = node.type.rpartition("_")
        if edge in ("open", "close") and kind in _DELIMITERS:
            self._delimiter(node, _DELIMITERS[kind], edge == "open")
        elif node.type in ("softbreak", "hardbreak"):
            self._break(node)
        elif node.type == "footnote_ref":
            self._footnote(node)
        elif node.type == "code_inline":
            self._code(node)
        elif node.type == "image":
            self._image(node)
        elif node.type == "text_special":
            self._special(node)
        elif node.type == "math":
            self._math(node)
        elif node.content:
            self._text(node.content)

    def _show(self, text: str, origins: Sequence[int]) -> None:
        self.shown.append(text)
        self.origins.extend(origins)

    def _text(self, text: str) -> None:
        found = self.content.find(text, self.at)
        if found < 0:
            # An automatic link is shown with a normalised address: match the common part.
            self._loosely(text)
            return
        if not self._inside["link"]:
            start = len(self.origins)
            for low, high in bare_links(text):
                self.styles.append(Styled(start + low, start + high, "link", text[low:high]))
        self._show(text, range(found, found + len(text)))
        self.at = found + len(text)

    def _math(self, node: Node) -> None:
        """A simple formula is shown as Unicode, without its marks; any other as its source, to be typeset."""
        opening = max(self.at, self.content.find(node.markup + node.content, self.at))
        inner, start = opening + len(node.markup), len(self.origins)
        self.at = inner + len(node.content) + len(node.info)
        display = node.markup not in ("$", "\\(")
        formula = None if display else legible(node.content)
        if formula is None:
            self._show(self.content[opening : self.at], range(opening, self.at))
            style: Style = "display" if display else "formula"
            self.styles.append(Styled(start, len(self.origins), style, node.content))
            return
        self.styles += [Styled(start + low, start + high, "bold") for low, high in formula.bold]
        self._show(formula.text, [inner + place for place in formula.places])

    def _loosely(self, text: str) -> None:
        for character in text:
            found = self.content.find(character, self.at)
            if 0 <= found - self.at <= 8:
                self.at = found
                self._show(character, (found,))
                self.at += 1
            else:
                self._show(character, (max(0, min(self.at, len(self.content) - 1)),))

    def _special(self, node: Node) -> None:
        """An escape or an entity: one mark in the source, other characters to see."""
        found = self.content.find(node.markup, self.at)
        if found < 0:
            self._text(node.content)
            return
        # The backslash of an escape is hidden; the character after it is visible.
        place = found + 1 if node.info == "escape" else found
        self._show(node.content, (place,) * len(node.content))
        self.at = found + len(node.markup)

    def _footnote(self, node: Node) -> None:
        """[^1] is shown as [1]."""
        found = max(self.at, self.content.find(node.markup, self.at))
        label = found + 2
        self._show(f"[{node.content}]", [found, *range(label, label + len(node.content) + 1)])
        self.at = found + len(node.markup)

    def _break(self, node: Node) -> None:
        if node.markup.startswith("<"):
            found = max(self.at, self.content.find(node.markup, self.at))
            self._show(self._line_break, (found,))
            self.at = found + len(node.markup)
            return
        found = self.content.find("\n", self.at)
        self.at = found if found >= 0 else self.at
        self._show("\n", (min(self.at, len(self.content) - 1),))
        self.at += 1
        if self._keep_indent:
            end = self.at
            while self.content[end : end + 1] in (" ", "\t"):
                end += 1
            self._show(self.content[self.at : end], range(self.at, end))
            self.at = end

    def _code(self, node: Node) -> None:
        opening = self.content.find(node.markup, self.at)
        inner = max(opening, 0) + len(node.markup)
        raw = self.content[inner : inner + len(node.content)].replace("\n", " ")
        if raw != node.content:  # one space on each side was taken off
            inner += 1
        start = len(self.origins)
        self._show(node.content, range(inner, inner + len(node.content)))
        self.styles.append(Styled(start, len(self.origins), "code"))
        closing = self.content.find(node.markup, inner + len(node.content))
        self.at = (closing if closing >= 0 else inner + len(node.content)) + len(node.markup)

    def _image(self, node: Node) -> None:
        """Images are never fetched: their description is shown."""
        start = len(self.origins)
        self.at = max(self.at, self.content.find("![", self.at) + 2)
        for child in node.children or ():
            self.take(child)
        self.styles.append(Styled(start, len(self.origins), "link", str(node.attrGet("src") or "")))
        self._skip_target()

    def _delimiter(self, node: Node, style: Style, opening: bool) -> None:
        mark = node.markup if node.markup not in ("", "linkify") else "["
        if opening:
            if style == "link":
                mark = "<" if node.markup == "autolink" else "["
            found = self.content.find(mark, self.at)
            self.at = found + len(mark) if found >= 0 else self.at
            self._inside[style] += 1
            self._open.append((style, len(self.origins), str(node.attrGet("href") or "")))
            return
        if style == "link":
            if node.markup == "autolink":
                self.at = max(self.at, self.content.find(">", self.at) + 1)
            else:
                self._skip_target()
        else:
            found = self.content.find(node.markup, self.at)
            self.at = found + len(node.markup) if found >= 0 else self.at
        if self._open:
            opened, start, target = self._open.pop()
            self._inside[opened] -= 1
            # Bold in bold is bold: thousands of them would be as many formats over the same words.
            if start < len(self.origins) and not self._inside[opened]:
                self.styles.append(Styled(start, len(self.origins), style, target))

    def _skip_target(self) -> None:
        """Step over `](address "title")`."""
        content, at = self.content, self.content.find("](", self.at)
        if at < 0:
            return
        at += 2
        depth, quote = 1, ""
        while at < len(content) and depth:
            character = content[at]
            if character == "\\":
                at += 1
            elif quote:
                quote = "" if character == quote else quote
            elif character == "<" and content[at - 1] in "( \n":
                quote = ">"
            elif character in "\"'" and content[at - 1] in " \n":
                quote = character
            else:
                depth += {"(": 1, ")": -1}.get(character, 0)
            at += 1
        self.at = at
