"""How much of a document two extractions have in common. Pure.

Words are compared without case, after compatibility decomposition (ligatures, full-width letters), and
without the marks of lists, headings and tables. Chinese and Japanese are compared character by character.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

# pdftotext drops the hyphen at the end of a line, also that of a range of numbers.
_HYPHENATED = re.compile(r"(?<=[^\W_])[-\u2010]\n[ \t]*(?=[^\W_])")
_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|\d[\d.,:/-]*\d|\d|[^\W\d_\u3040-\u30ff\u3400-\u9fff]+")
_DASHES = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2212"), "-")
_INVISIBLE = dict.fromkeys(
    map(ord, "\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\ufeff")
)


def tokens(text: str) -> list[str]:
    """The words and numbers of `text`, in order. A number has its separators."""
    text = _HYPHENATED.sub("", unicodedata.normalize("NFKC", text).translate(_INVISIBLE | _DASHES))
    return _TOKEN.findall(text.casefold())


@dataclass(frozen=True)
class Shares:
    """Counts of one comparison; `order` counts neighbouring words that are neighbours in both."""

    words: int
    words_kept: int
    numbers: int
    numbers_kept: int
    pairs: int
    pairs_kept: int
    ours: int
    added: int

    def __add__(self, other: Shares) -> Shares:
        return Shares(*(a + b for a, b in zip(self._counts, other._counts)))

    @property
    def _counts(self) -> tuple[int, ...]:
        return (
            *(self.words, self.words_kept, self.numbers, self.numbers_kept),
            *(self.pairs, self.pairs_kept, self.ours, self.added),
        )

    @property
    def percent(self) -> tuple[float, float, float, float]:
        """Words, numbers and order kept, and words added, in percent."""
        return (
            _percent(self.words_kept, self.words),
            _percent(self.numbers_kept, self.numbers),
            _percent(self.pairs_kept, self.pairs),
            _percent(self.added, self.ours) if self.ours else 0.0,
        )


NOTHING = Shares(0, 0, 0, 0, 0, 0, 0, 0)


def compared(ours: Sequence[str], theirs: Sequence[str]) -> Shares:
    """What of the reference `theirs` is in `ours`."""
    mine, other = Counter(ours), Counter(theirs)
    common = mine & other
    numbers = Counter({token: count for token, count in other.items() if token[0].isdigit()})
    pairs = Counter(pairwise(theirs))
    return Shares(
        other.total(),
        common.total(),
        numbers.total(),
        (numbers & mine).total(),
        pairs.total(),
        (pairs & Counter(pairwise(ours))).total(),
        mine.total(),
        (mine - other).total(),
    )


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 100.0
