"""Links: which addresses may be opened, and addresses that stand in plain text. No Qt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

_SCHEMES = frozenset(("http", "https", "mailto"))
_BARE = re.compile(r"\bhttps?://[^\s<>\"`]+")
_LONGEST = 2_000  # characters; nobody opens a longer one


def may_open(address: str) -> bool:
    """Whether a click may hand `address` to the system: web pages and mail, nothing on this machine."""
    try:
        parts = urlsplit(address.strip())
    except ValueError:
        return False
    return parts.scheme.lower() in _SCHEMES and bool(parts.netloc or parts.scheme.lower() == "mailto")


def bare_links(text: str) -> Iterator[tuple[int, int]]:
    """Where addresses stand in `text`, without the punctuation of the sentence around them."""
    for match in _BARE.finditer(text):
        end = match.end()
        if end - match.start() > _LONGEST:
            continue
        while end > match.start():
            last, address = text[end - 1], text[match.start() : end]
            unpaired = last in ")]}" and address.count(last) > address.count("([{"[")]}".index(last)])
            if last not in ".,;:!?'*_" and not unpaired:
                break
            end -= 1
        if may_open(text[match.start() : end]):
            yield match.start(), end
