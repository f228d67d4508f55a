"""Markup: cuts HTML into texts and tags as browsers do, in one pass.

Each search either advances to its match or, without one, ends the page, so that time is linear in the length.
html.parser searches for the end of each unfinished tag again, and parsers in C build a tree of the whole
page. Unfinished tags are dropped as in browsers. Pure; of an element it only uses whether it contains markup.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

# Any other bracket is text.
_MARK = re.compile("<[A-Za-z/!?]")
_SPACES = re.compile(r"[ \t\n\f\r/]*")
_EQUALS = re.compile(r"[ \t\n\f\r]*=[ \t\n\f\r]*")
_TAG_NAME = re.compile(r"[^ \t\n\f\r/>]*")
# An equals sign may begin a name, and only begin it.
_ATTRIBUTE_NAME = re.compile(r"[^ \t\n\f\r/>][^ \t\n\f\r/>=]*")
_UNQUOTED = re.compile(r"[^ \t\n\f\r>]*")
_CDATA = "<![CDATA["
_XML = re.compile(r"\ufeff?\s*<(?:\?xml\s|(?:!doctype [^>]*>\s*<)?html[^>]*\sxmlns=)", re.I)
_COMMENT_END = re.compile(r"--!?>")
# Inside these only their own end counts; inside the second, references do, too.
_RAW = ("script", "style", "xmp", "iframe", "noembed", "noframes")
_RAW_WITH_REFERENCES = ("title", "textarea")
_ENDS = {tag: re.compile(rf"</{tag}(?=[ \t\n\f\r/>])", re.I | re.A) for tag in _RAW + _RAW_WITH_REFERENCES}
# Python refuses numbers of thousands of digits; no letter has eight.
_LONG_NUMBER = re.compile(r"&#([0-9]{8,});?")


class TagText(NamedTuple):
    """Words, references resolved."""

    data: str


class StartTag(NamedTuple):
    """A tag, its name in small letters. `closed`: it ends in a slash."""

    tag: str
    attributes: dict[str, str]
    closed: bool


class EndTag(NamedTuple):
    """An element's end."""

    tag: str


class Markup:
    """Iterate over it, once. `place` is how far it is; of the attributes those in `wanted` are kept."""

    def __init__(self, markup: str, wanted: frozenset[str] = frozenset()) -> None:
        self._markup = markup
        self._wanted = wanted
        self.place = 0
        self._slash_is_free = False
        self._is_xml = bool(_XML.match(markup))  # where browsers read CDATA as text

    def __iter__(self) -> Iterator[TagText | StartTag | EndTag]:
        markup = self._markup
        while found := _MARK.search(markup, self.place):
            at = found.start()
            if at > self.place:
                yield TagText(resolved(markup[self.place : at]))
            self.place = at + 1
            letter = markup[at + 1 : at + 2]
            if letter.isascii() and letter.isalpha():
                start = self._start()
                if start is None:
                    return
                yield start
                if not start.closed:
                    yield from self._raw(start.tag)
            elif letter == "/":
                yield from self._end()
            elif letter == "!" and self._is_xml and markup.startswith(_CDATA, at):
                end = markup.find("]]>", at)
                end = end if end >= 0 else len(markup)
                yield TagText(markup[at + len(_CDATA) : end])
                self.place = min(end + 3, len(markup))
            elif letter == "!":
                self._skip_declaration()
            else:
                self._skip_to(">", self.place)
        if self.place < len(markup):
            yield TagText(resolved(markup[self.place :]))
        self.place = len(markup)

    def _start(self) -> StartTag | None:
        """The tag at `place`; None if the page ends in it."""
        tag = self._name()
        kept = self._attributes()
        if kept is None:
            return None
        closed = self._markup[self.place - 2] == "/" and self._slash_is_free
        return StartTag(tag, kept, closed)

    def _end(self) -> Iterator[TagText | EndTag]:
        following = self._markup[self.place + 1 : self.place + 2]
        if following.isascii() and following.isalpha():
            self.place += 1
            tag = self._name()
            if self._attributes() is not None:
                yield EndTag(tag)
        elif following:
            self._skip_to(">", self.place + 1)
        else:
            yield TagText("<")

    def _raw(self, tag: str) -> Iterator[TagText]:
        """The content of an element that contains text only, such as a script."""
        markup = self._markup
        if tag in _ENDS:
            found = _ENDS[tag].search(markup, self.place)
            end = found.start() if found else len(markup)
        elif tag == "plaintext":
            end = len(markup)
        else:
            return
        inside = markup[self.place : end]
        self.place = end
        if inside:
            yield TagText(resolved(inside) if tag in _RAW_WITH_REFERENCES else inside)

    def _name(self) -> str:
        found = _TAG_NAME.match(self._markup, self.place)
        assert found
        self.place = found.end()
        return found.group().lower()

    def _attributes(self) -> dict[str, str] | None:
        """The wanted attributes; afterwards `place` is after the tag. None if the page ends within it."""
        markup, wanted = self._markup, self._wanted
        kept: dict[str, str] = {}
        while True:
            spaces = _SPACES.match(markup, self.place)
            assert spaces
            self._slash_is_free = spaces.end() > self.place
            self.place = spaces.end()
            found = _ATTRIBUTE_NAME.match(markup, self.place)
            if found is None:
                # A closing bracket or the end of the page.
                self.place += 1
                return kept if self.place <= len(markup) else None
            self.place = found.end()
            value = ""
            if equals := _EQUALS.match(markup, self.place):
                start = equals.end()
                if (quote := markup[start : start + 1]) in ("'", '"'):
                    end = markup.find(quote, start + 1)
                    if end < 0:
                        self.place = len(markup)
                        return None
                    value, self.place = markup[start + 1 : end], end + 1
                else:
                    bare = _UNQUOTED.match(markup, start)
                    assert bare
                    value, self.place = bare.group(), bare.end()
            if found.end() - found.start() < 40 and (name := found.group().lower()) in wanted:
                kept.setdefault(name, resolved(value))

    def _skip_declaration(self) -> None:
        """A comment, or anything else that begins with an exclamation mark."""
        markup, at = self._markup, self.place
        if not markup.startswith("!--", at):
            self._skip_to(">", at)
        elif markup.startswith((">", "->"), at + 3):
            self._skip_to(">", at + 3)
        else:
            found = _COMMENT_END.search(markup, at + 3)
            self.place = found.end() if found else len(markup)

    def _skip_to(self, mark: str, start: int) -> None:
        end = self._markup.find(mark, start)
        self.place = end + len(mark) if end >= 0 else len(self._markup)


def resolved(text: str) -> str:
    """`text` with its references resolved."""
    return html.unescape(_LONG_NUMBER.sub(_shortened, text)) if "&" in text else text


def _shortened(found: re.Match[str]) -> str:
    digits = found.group(1).lstrip("0")
    return f"&#{digits or 0};" if len(digits) < 8 else "\ufffd"
