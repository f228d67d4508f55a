"""Exact parts of a short text in its sources, of any length: where the arguments of a call come from.

Unlike runs (`core.origins.runs`), which show what an answer quotes, every word counts, and letter case and
marks must be equal. White space makes no difference.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

# A shorter part of one word counts only if it is all of the text.
_LEAST_CHARACTERS = 4
_WORD_OR_MARK = re.compile(r"[^\W_]+|[^\w\s\0]|_")
_BETWEEN = "\0"


class Copy(NamedTuple):
    """Characters `start` to `end` (end-exclusive) of a text that occur in source number `source`."""

    start: int
    end: int
    source: int


def copies(text: str, sources: Sequence[str]) -> list[Copy]:
    """The parts of `text` that occur in one of `sources`, in order and without overlaps.

    From left to right, each is as long as possible; if several sources have it, the first one counts. It
    begins and ends between words and has a letter or digit.
    """
    words = [(match.start(), match.end(), match[0]) for match in _WORD_OR_MARK.finditer(text)]
    prepared = [_prepared(source) for source in sources]
    found: list[Copy] = []
    at = 0
    while at < len(words):
        lengths = [_longest(words, at, source) for source in prepared]
        longest = max(lengths, default=0)
        if not longest:
            at += 1
            continue
        part = words[at : at + longest]
        start, end = part[0][0], part[-1][1]
        is_long = longest > 1 and end - start >= _LEAST_CHARACTERS
        is_long = is_long or len(part[0][2]) >= _LEAST_CHARACTERS or longest == len(words)
        if is_long and any(word[0].isalnum() for _, _, word in part):
            found.append(Copy(start, end, lengths.index(longest)))
        at += longest
    return found


@lru_cache(maxsize=32)
def _prepared(text: str) -> str:
    """The words and marks of `text`, each between two separators."""
    return _BETWEEN + _BETWEEN.join(_WORD_OR_MARK.findall(text)) + _BETWEEN


def _longest(words: Sequence[tuple[int, int, str]], at: int, source: str) -> int:
    """How many of the words from `at` on occur in a row in `source`."""

    def stands(count: int) -> bool:
        return _BETWEEN + _BETWEEN.join(word for _, _, word in words[at : at + count]) + _BETWEEN in source

    most = len(words) - at
    low, high = 0, 1
    while high <= most and stands(high):
        low, high = high, 2 * high
    high = min(high, most + 1)  # `low` words occur, `high` do not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if stands(middle) else (low, middle)
    return low
