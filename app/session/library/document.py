"""KeptDocument: what is known of a document in the library, without its text. Pure."""

from __future__ import annotations

import hashlib
from datetime import datetime

from msgspec import Struct, field


class KeptDocument(Struct, frozen=True):
    """`digest` names its text: the same text is kept once. `counts` are its tokens by tokenizer family.

    `used` is when it was attached last, `removed` since when it waits for its end.
    """

    id: str
    name: str
    digest: str
    characters: int
    added: datetime
    used: datetime
    counts: dict[str, int] = field(default_factory=dict)
    removed: datetime | None = None


class DocumentHit(Struct, frozen=True):
    """A document that a search found. `passage` is empty if only the name matched; `marks` as in `Hit`.

    `similar`: the passage means something like the words, and does not have them.
    """

    id: str
    passage: str = ""
    marks: tuple[tuple[int, int], ...] = ()
    similar: bool = False


def digest_of(text: str) -> str:
    """What a text is known by."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
