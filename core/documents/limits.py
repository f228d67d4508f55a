"""Limits for reading one document, why one cannot be read, and the text that is gathered.

The reading process imports this first, so it must not import slow modules (such as msgspec).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

# Plain text and HTML are held whole; longer ones could not be in any context.
MOST_TEXT_BYTES = 32 * 1024 * 1024
# Larger, because most of such a file is pictures, written as digits, and attachments.
MOST_RTF_BYTES = 128 * 1024 * 1024
MOST_MAIL_BYTES = 48 * 1024 * 1024
# PDF and Word files are mostly pictures and fonts.
MOST_DOCUMENT_BYTES = 512 * 1024 * 1024
# Decoded and looked at between two frames.
QUICK_BYTES = 1024 * 1024

_MOST_PLACES = 200

Unit = Literal["pages", "bytes"]
# Parts of a file that its text leaves out, marks or guesses; `strings.left_out` has their words.
Kind = Literal[
    "hidden word", "hidden sheet", "hidden row", "hidden column", "hidden cell",
    "hidden slide", "scanned page",
    "missing page", "unreadable page", "picture", "equation", "object", "attachment", "deleted word",
    "damaged character", "later frame",
]  # fmt: skip
# How far a reading is: done, of all.
Told = Callable[[int, int, Unit], None]


class Limits(NamedTuple):
    """Limits of the process that reads one document. A book of 5,000 pages takes minutes."""

    memory_bytes: int = 512 * 1024 * 1024
    # Without a page or a megabyte more; of a processor's time and on the clock in all.
    silence_s: float = 30.0
    whole_s: float = 600.0
    # Beyond any context: about two million tokens.
    characters: int = 8_000_000


class ImageLimits(NamedTuple):
    """Limits of the process that decodes one image.

    A photograph of 48 million pixels takes about a second.
    """

    memory_bytes: int = 1024 * 1024 * 1024
    silence_s: float = 30.0
    whole_s: float = 60.0


class PageLimits(NamedTuple):
    """Limits of the process that draws pages of one PDF. One of a scan takes about 0.2 s."""

    memory_bytes: int = 1024 * 1024 * 1024
    # Without a page more; of a processor's time and on the clock in all.
    silence_s: float = 20.0
    whole_s: float = 60.0


# Limits of an image: file, pixels, and ratio of the longer to the shorter side; models accept no longer ones.
MOST_IMAGE_BYTES = 128 * 1024 * 1024
MOST_PIXELS = 64_000_000
MOST_ASPECT = 200


class UnreadableError(Exception):
    """Base class: a document has no readable text."""


class DamagedError(UnreadableError):
    """The file is damaged, incomplete or of another kind than its beginning."""


class LockedError(UnreadableError):
    """The file is encrypted with a password or an unsupported method."""


class NotWordError(UnreadableError):
    """A zip without Word's main part."""


class TooLongError(UnreadableError):
    """It has more characters than allowed."""


class UnpacksError(UnreadableError):
    """It unpacks to `size_bytes`, more than `most_bytes`."""

    def __init__(self, size_bytes: int, most_bytes: int) -> None:
        super().__init__(size_bytes, most_bytes)
        self.size_bytes, self.most_bytes = size_bytes, most_bytes


class EncodedError(UnreadableError):
    """Its text is in an encoding that its kind does not use: `encoding`."""

    def __init__(self, encoding: str) -> None:
        super().__init__(encoding)
        self.encoding = encoding


class Gathered:
    """Collects pieces of text and their omissions. `left` is the number of characters still allowed."""

    def __init__(self, most_characters: int) -> None:
        self.left = most_characters
        self.left_out: dict[tuple[Kind, str], int] = {}
        self._pieces: list[str] = []

    def inner(self) -> Gathered:
        """For the text of a part, with the same record."""
        part = Gathered(self.left)
        part.left_out = self.left_out
        return part

    def leave_out(self, kind: Kind, count: int = 1, place: str = "") -> None:
        """Record `count` parts that are not in the text, and where they are, such as `page 3`."""
        if len(self.left_out) >= _MOST_PLACES and (kind, place) not in self.left_out:
            place = ""
        self.left_out[kind, place] = self.left_out.get((kind, place), 0) + count

    def add(self, piece: str) -> None:
        """Add a piece of text. Raises `TooLongError`."""
        self.left -= len(piece)
        if self.left < 0:
            raise TooLongError
        self._pieces.append(piece)

    def text(self) -> str:
        """All of them."""
        return "".join(self._pieces)
