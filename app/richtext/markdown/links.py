"""Links: which addresses may be opened, and addresses in plain text. No Qt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

_SCHEMES = frozenset(("http", "https", "mailto"))
# Chinese, Japanese and Korean punctuation, which no address has and no space follows.
_FULL_WIDTH = (
    "\u2018-\u201f\u2026\u3001-\u3003\u3008-\u3011\u3014-\u301f"
    "\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
)
_CJK = "\u1100-\u11ff\u3005\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
# Such letters belong to an address at the beginning of one of its parts, not behind its Latin letters.
_BARE = re.compile(rf"(?<![A-Za-z0-9])https?://(?:[^\s<>\"`{_FULL_WIDTH}{_CJK}]|(?<![A-Za-z0-9:])[{_CJK}]+)+")
_LONGEST = 2_000  # characters of an address


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
