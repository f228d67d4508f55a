"""Runs: the longest matches of an answer in its sources, word by word.

A match is longest if it can be extended in neither direction; one in another source that contains it
replaces it. If two overlap, the longer keeps the shared words; if they are equal, the earlier.
A match is a run if one of its words is rare in the sources, and

- it has five words, or ten characters of an unspaced script, or
- it contains a quotation, or a cell of a table that is a cell of the source, too, or a line of code.

In code, a run has only whole lines. Time is linear in the words of the answer, for each source.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Literal, NamedTuple

from core.origins.index import Index
from core.origins.words import Word, is_unspaced

UnitKind = Literal["quotation", "cell", "line"]

# A character of an unspaced script is half a word.
_LEAST_HALVES = 10
_LEAST_UNIT_HALVES = 4
# Words are rare up to this count, or up to this share of all words.
_RARE_COUNT = 3
_RARE_SHARE = 500
_RARE_LETTERS = 4


class Match(NamedTuple):
    """Words `first` to `last` (inclusive) of the answer. Their first occurrence in source `source` ends with
    its word `end` (exclusive). `length`: words of the match before it was cut.
    """

    first: int
    last: int
    source: int
    end: int
    length: int


class Unit(NamedTuple):
    """Words `first` to `last` (inclusive) of the answer that are a quotation, a cell or a line of code."""

    first: int
    last: int
    kind: UnitKind


class Saved(NamedTuple):
    """State for `Matcher.restore`."""

    words: int
    states: tuple[tuple[int, int], ...]
    is_code: bool
    settled: int
    matches: tuple[Match, ...]
    units: int
    lines: int


class Matcher:
    """Matches the words of a growing answer in complete indexes."""

    def __init__(self, indexes: Sequence[Index]) -> None:
        self.indexes = indexes
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.ids: list[list[int]] = [[] for _ in indexes]
        # The matches that are runs, in order. The last one may still be cut or replaced.
        self.matches: list[Match] = []
        self._halves = [0]  # lengths in half words, summed up to each word
        self._rares = [0]
        self._states = [(0, 0)] * len(indexes)
        self._is_code = False
        self._units: list[Unit] = []
        self._lines: list[Unit] = []
        self._total = sum(len(index.sequence) for index in indexes)

    def save(self) -> Saved:
        """The state between two parts."""
        return Saved(
            len(self.starts),
            tuple(self._states),
            self._is_code,
            self.settled,
            tuple(self.matches[self.settled :]),
            len(self._units),
            len(self._lines),
        )

    def restore(self, saved: Saved) -> None:
        """Return to the state `saved`."""
        for each in (self.starts, self.ends, *self.ids):
            del each[saved.words :]
        del self._halves[saved.words + 1 :], self._rares[saved.words + 1 :]
        del self._units[saved.units :], self._lines[saved.lines :]
        self._states = list(saved.states)
        self.matches[saved.settled :] = saved.matches
        self._is_code = saved.is_code

    @property
    def settled(self) -> int:
        """Number of matches that further words cannot cut or replace: those before the open match."""
        open_first = len(self.starts) - max((length for _, length in self._states), default=0)
        count = len(self.matches)
        while count and self.matches[count - 1].last >= open_first:
            count -= 1
        return count

    def add(
        self,
        part: Sequence[Word],
        offset: int,
        units: Iterable[tuple[int, int, UnitKind]] = (),
        *,
        code: bool = False,
        known: int = 0,
    ) -> None:
        """Add the words of a part, which begins at character `offset` of the answer, except for its first
        `known` ones, which were added before.

        `units`: character ranges of the part, in order. A match does not cross the border of code.
        """
        if code != self._is_code:
            self.interrupt()
            self._is_code = code
        at = len(self.starts) - known
        firsts, lasts = [word.start for word in part], [word.end for word in part]
        for start, end, kind in units:
            first, last = bisect_left(firsts, start), bisect_right(lasts, end) - 1
            if first <= last and last >= known:
                (self._lines if kind == "line" else self._units).append(Unit(at + first, at + last, kind))
        for word in part[known:]:
            self._add(word, offset)

    def _add(self, word: Word, offset: int) -> None:
        self.starts.append(word.start + offset)
        self.ends.append(word.end + offset)
        self._halves.append(self._halves[-1] + (1 if is_unspaced(word.key) else 2))
        count, longest = 0, (0, 0, 0)
        for source, index in enumerate(self.indexes):
            number = index.ids.get(word.key, -1)
            self.ids[source].append(number)
            state, length = self._states[source]
            found = 0, 0
            if number >= 0:
                count += len(index.where[number])
                found = index.automaton.step(state, length, number)
            self._states[source] = found
            if found[1] != length + 1 and length > longest[0]:
                longest = length, source, state
        self._rares.append(self._rares[-1] + self._is_rare(word.key, count))
        if longest[0]:
            self._end(len(self.starts) - 2, *longest)

    def interrupt(self) -> None:
        """End all matches: the next word does not follow the last one."""
        longest = max(
            ((length, -source, state) for source, (state, length) in enumerate(self._states)),
            default=(0, 0, 0),
        )
        if longest[0]:
            self._end(len(self.starts) - 1, longest[0], -longest[1], longest[2])
        self._states = [(0, 0)] * len(self.indexes)

    def _is_rare(self, key: str, count: int) -> bool:
        if not 0 < count <= max(_RARE_COUNT, self._total // _RARE_SHARE):
            return False
        return len(key) >= _RARE_LETTERS or is_unspaced(key) or key[0].isdigit()

    def _end(self, last: int, length: int, source: int, state: int) -> None:
        end = self.indexes[source].automaton.first_end(state)
        match = self._counted(Match(last - length + 1, last, source, end, length))
        if match is None:
            return
        while self.matches and match.first <= self.matches[-1].last:
            before = self.matches[-1]
            if before.length >= match.length:
                if (match := self._counted(match._replace(first=before.last + 1))) is None:
                    return
                break
            self.matches.pop()
            cut = before.last - match.first + 1
            if kept := self._counted(before._replace(last=before.last - cut, end=before.end - cut)):
                self.matches.append(kept)
                break
        self.matches.append(match)

    def _counted(self, match: Match) -> Match | None:
        """The match, cut to whole lines of code; None if it does not count."""
        first, last = match.first, match.last + 1
        if first >= last or self._rares[last] == self._rares[first]:
            return None
        if self._lines:
            match = self._whole_lines(match)
            first, last = match.first, match.last + 1
            if first >= last or self._rares[last] == self._rares[first]:
                return None
        if self._halves[last] - self._halves[first] >= _LEAST_HALVES:
            return match
        units = chain(_inside(self._units, match), _inside(self._lines, match))
        return match if any(self._counts(unit, match) for unit in units) else None

    def _whole_lines(self, match: Match) -> Match:
        lines = self._lines
        at = bisect_right(lines, match.first, key=lambda line: line.first) - 1
        if at >= 0 and lines[at].first < match.first <= lines[at].last:
            match = match._replace(first=lines[at].last + 1)
        at = bisect_right(lines, match.last, key=lambda line: line.first) - 1
        if at >= 0 and lines[at].first <= match.last < lines[at].last:
            cut = match.last - lines[at].first + 1
            match = match._replace(last=match.last - cut, end=match.end - cut)
        return match

    def _counts(self, unit: Unit, match: Match) -> bool:
        first, last = unit.first, unit.last + 1
        if self._rares[last] == self._rares[first]:
            return False
        if unit.kind == "cell":
            index = self.indexes[match.source]
            behind = match.end - (match.last - unit.last)
            return index.is_cell(behind - (last - first), behind - 1)
        return self._halves[last] - self._halves[first] >= _LEAST_UNIT_HALVES


def _inside(units: Sequence[Unit], match: Match) -> Iterable[Unit]:
    for at in range(bisect_left(units, match.first, key=lambda unit: unit.first), len(units)):
        if units[at].first > match.last:
            return
        if units[at].last <= match.last:
            yield units[at]
