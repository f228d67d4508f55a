"""Chooses the pages without text that the model gets as images: those most relevant to the question. Pure.

Such a page has no words to compare, but its neighbours have. The text around a page is cut into pieces; each
counts the question's terms that it has, rare ones more, and half as much for a page one piece further away.
The page's number is a separate piece, so a question about “page 12” finds that page. Terms
are the beginnings of words, and pairs of letters in scripts without spaces; the language does not matter.
Equally relevant pages are taken in their order, those that the chat already has first: a follow-up question
without terms adds no page.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set

from msgspec import Struct

from core.documents.page_images import SIDE_PX
from core.documents.strings import PAGE_MARK, page_image
from core.events import Attachment, Image, Message

MOST_PAGES = 8
# Width and height of the largest image of a page.
LARGEST_PX = (SIDE_PX, SIDE_PX)

_PIECE_CHARACTERS = 800
# Pieces before and after a run of pages without text that are compared.
_REACH = 4
_NEXT = 0.5
_STEM = 6
# Terms that more pieces have than both of these, the second as a share, say nothing.
_COMMON, _COMMON_SHARE = 6, 0.25
# Ideographs, and scripts of South-East Asia, whose words have no spaces.
_WIDE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u9fff\uac00-\ud7af\uf900-\ufaff"
_TERM = rf"(?P<wide>[{_WIDE}]+)|(?:(?![{_WIDE}])\w)+"  # compiled with the first scan
# Only the beginning and end of a longer question count.
_ASKED_CHARACTERS = 500


class Page(Struct, frozen=True):
    """A page without text: of which attachment, and its number, from 1."""

    of: Attachment
    number: int

    @property
    def name(self) -> str:
        """The name of its image."""
        return page_image(self.of.name, self.number)

    @property
    def key(self) -> tuple[str, int]:
        """As `Image.scan` and `Image.page` have it."""
        return (self.of.scans.hash if self.of.scans else "", self.number)


def most_pages(context_tokens: int, prompt_tokens: int, page_tokens: int) -> int:
    """Most pages of `page_tokens` in addition to a prompt: half of the context, with an eighth left free."""
    room = min(context_tokens // 2, context_tokens - prompt_tokens - context_tokens // 8)
    return max(0, min(MOST_PAGES, room // max(1, page_tokens)))


def nearest_pages(messages: Sequence[Message], most: int = MOST_PAGES) -> list[Page]:
    """The pages that the last of `messages` is to have as images, in their order.

    At most `most` are nearest to it; those that earlier messages have as images are left out.
    """
    sent = {key_of(image) for message in messages for image in message.images}
    question = messages[-1].content if messages else ""
    if len(question) > 2 * _ASKED_CHARACTERS:
        question = f"{question[:_ASKED_CHARACTERS]} {question[-_ASKED_CHARACTERS:]}"
    asked = frozenset(_terms(question))
    pages: list[tuple[float, bool, int, Page]] = []
    for attachment in scanned(messages):
        figures = _figures(attachment.text, asked)
        for number in attachment.scans.pages if attachment.scans else ():
            page = Page(attachment, number)
            pages.append((-figures.get(number, 0.0), page.key not in sent, len(pages), page))
    nearest = sorted(pages, key=lambda each: each[:3])[: max(0, most)]
    return [page for _, is_new, _, page in sorted(nearest, key=lambda each: each[2]) if is_new]


def unread_pages(messages: Sequence[Message]) -> list[tuple[Attachment, tuple[int, ...]]]:
    """The pages without text that are not among the images of `messages`, by document."""
    sent = {key_of(image) for message in messages for image in message.images}
    found = []
    for attachment in scanned(messages):
        assert attachment.scans
        left = tuple(page for page in attachment.scans.pages if (attachment.scans.hash, page) not in sent)
        if left:
            found.append((attachment, left))
    return found


def scanned(messages: Iterable[Message]) -> list[Attachment]:
    """The documents of `messages` that have pages without text, each file once."""
    found: dict[str, Attachment] = {}
    for message in messages:
        for attachment in message.attachments:
            if attachment.scans:
                found.setdefault(attachment.scans.hash, attachment)
    return list(found.values())


def key_of(image: Image) -> tuple[str, int]:
    """Which page an image is; ("", 0) for another image."""
    return image.scan, image.page


def _figures(text: str, asked: Set[str]) -> dict[int, float]:
    """How near each page without text is to the terms `asked`; pages without a mark are left out."""
    pieces = list(_pieces(text))
    counts = [Counter(term for term in _terms(piece) if term in asked) for _, piece in pieces]
    having = Counter(term for count in counts for term in count)
    most = max(_COMMON, _COMMON_SHARE * len(pieces))
    rarity = {
        term: math.log((len(pieces) + 1) / (each + 0.5)) ** 2 if each <= most else 0.0
        for term, each in having.items()
    }
    own = [sum(rarity[term] * each / (each + 1) for term, each in count.items()) for count in counts]
    carried = list(own)
    for order in (range(1, len(own)), range(len(own) - 2, -1, -1)):
        last = own[order.start - order.step] if own else 0.0
        for at in order:
            last = max(own[at], _NEXT * last)
            carried[at] = max(carried[at], last)
    return {number: carried[at] for at, (number, _) in enumerate(pieces) if number}


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """The numbers of pages with a mark, and the text around these in pieces, each with 0."""
    end = 0
    reach = _REACH * _PIECE_CHARACTERS
    marks = list(PAGE_MARK.finditer(text))
    for mark in marks:
        between = text[end : mark.start()]
        if len(between) > 2 * reach or (end == 0 and len(between) > reach):
            head = "" if end == 0 else between[:reach]
            yield from ((0, piece) for piece in _cut(head))
            between = between[-reach:]
        yield from ((0, piece) for piece in _cut(between))
        number = int(mark[1].replace(",", ""))
        yield number, str(number)
        end = mark.end()
    if marks:
        yield from ((0, piece) for piece in _cut(text[end : end + reach]))


def _cut(text: str) -> Iterator[str]:
    for start in range(0, len(text), _PIECE_CHARACTERS):
        if not (piece := text[start : start + _PIECE_CHARACTERS]).isspace():
            yield piece


def _terms(text: str) -> Iterator[str]:
    for found in re.finditer(_TERM, text.casefold()):
        word = found[0]
        if found["wide"]:
            yield from (word[at : at + 2] for at in range(max(1, len(word) - 1)))
        else:
            yield word[:_STEM]
