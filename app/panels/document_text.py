"""A document's text as the Document tab shows it, and the search in it. Pure; no Qt."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, islice, pairwise

from msgspec import Struct

from app.chat.reading_map import heading_levels
from app.richtext.selection import pattern_of

# Laid out in a few milliseconds; a line of a CSV or minified JSON can have a million characters.
_LONG_CHARACTERS = 2000
# A line of prose of at least this length was wrapped there; one that does not begin like prose was not.
_WRAPPED_CHARACTERS = 40
_NO_PROSE = re.compile(r"\s|[-*+|>#~`•]|\d+[.)]\s")
# A single letter would match everywhere in a long document.
MOST_MATCHES = 10_000


def shown_text(text: str) -> tuple[str, list[int]]:
    """Returns `text` with the same positions, to be wrapped at any width, and where its headings begin.

    A line break inside prose that was wrapped at a fixed width becomes a space. In a very long line a space
    becomes a line break now and then.
    """
    lines = text.replace("\r", " ").split("\n")
    levels = heading_levels(lines)
    starts = accumulate((len(line) + 1 for line in lines), initial=0)
    headings = [start for start, level in zip(starts, levels) if level]
    parts = [lines[0]]
    for number, (before, line) in enumerate(pairwise(lines)):
        wrapped = len(before) >= _WRAPPED_CHARACTERS and not (_NO_PROSE.match(before) or levels[number])
        goes_on = bool(line.strip()) and not (_NO_PROSE.match(line) or levels[number + 1])
        parts += [" " if wrapped and goes_on else "\n", line]
    return "\n".join(map(_broken, "".join(parts).split("\n"))), headings


def _broken(line: str) -> str:  # with line breaks for some spaces, if it is long
    parts, start = [], 0
    while (space := line.find(" ", start + _LONG_CHARACTERS)) >= 0:
        parts.append(line[start:space])
        start = space + 1
    return "\n".join([*parts, line[start:]])


class Matches(Struct, frozen=True):
    """Match i is the range `starts[i]` to `ends[i]` (end-exclusive); `current` is its selected match, or −1.

    `whole`: there are no further matches.
    """

    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    current: int = -1
    whole: bool = True


NO_MATCHES = Matches()


def matches_of(text: str, needle: str, shown: Callable[[int], bool], first_seen: int) -> Matches:
    """The matches of `needle` in the `shown` parts of `text`; the first from `first_seen` on is current."""
    return matches_among(lambda pattern: spans_in(text, pattern), needle, shown, first_seen)


def spans_in(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Where `text` matches."""
    return (match.span() for match in pattern.finditer(text))


def matches_among(
    spans_of: Callable[[re.Pattern[str]], Iterable[tuple[int, int]]],
    needle: str,
    shown: Callable[[int], bool],
    first_seen: int,
) -> Matches:
    """As `matches_of`, of the spans that `spans_of` returns for the pattern of `needle`, in order."""
    pattern = pattern_of(needle)
    if pattern is None:
        return NO_MATCHES
    found = list(islice(spans_of(pattern), MOST_MATCHES + 1))
    whole = len(found) <= MOST_MATCHES
    found = [span for span in found[:MOST_MATCHES] if shown(span[0])]
    starts, ends = zip(*found) if found else ((), ())
    return Matches(starts, ends, bisect_left(starts, first_seen) % len(starts) if starts else -1, whole)
