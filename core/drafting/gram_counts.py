"""GramCounts: what followed the last few tokens in answers of a family's models, counted as they are given.

A *context* is the last n tokens, n from 0 (any position) to `HIGHEST_ORDER`. Pairs of a context and a
follower are in buckets of `_WAYS` cells, found by the context's hash; those of several contexts share a
bucket. A cell is tag << 32 | count << 24 | id + 1, where the tag distinguishes contexts and 0 is empty. A
bucket starts with the pair that came last.

Three rules bound, prune and age the table. A context is counted only where the one without its oldest token
is known: until then both say the same. In a full bucket a new pair takes a count from the rarest pair, of
equally rare ones the oldest, and its place if that was its last. And a count that reaches `_MOST_COUNT`
halves those of its context, so recent answers weigh more.

How far a context is trusted is not assumed but measured: before an answer is counted, the contexts that are
known predict the next token, and `Odds` compare that with the actual one.

Worker's main thread only.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from copy import deepcopy
from math import log
from operator import itemgetter

import numpy as np

from core.drafting.gram_table import GramRow, extend_hash
from core.drafting.ngram_mod import ID_END, NO_ENTRIES, Entries, check_entries
from core.drafting.odds import STRENGTH, Odds
from core.events import TableFigures

HIGHEST_ORDER = 4
# 2 MiB: the pairs of about 200,000 tokens of answers.
SLOTS = 1 << 18
_WAYS = 8
_TAG_SHIFT = 32
_COUNT_SHIFT = 24
_TOKEN = (1 << _COUNT_SHIFT) - 1
_COUNT = 0xFF << _COUNT_SHIFT
_MOST_COUNT = 64

# ---- classes of contexts, of equal trust: by order, occurrences and number of followers

_TOTALS = 5
_FOLLOWERS = 3
_CLASSES = (HIGHEST_ORDER + 1) * _TOTALS * _FOLLOWERS
# By order, added to the log-odds that occurrences and followers state: what recorded answers corrected.
_PRIOR = (-4.6, -2.0, -1.1, -0.7, -0.6)
# About 1,000 contexts of a class.
_DECAY = 0.999

_second = itemgetter(1)


class GramCounts:
    """`slots` is a power of two from 2^12 to 2^22: cells of 8 bytes, allocated at the first answer."""

    # Instead of a window's length, by which files and windows distinguish tables.
    n = 0

    def __init__(self, slots: int = SLOTS) -> None:
        self.slots = slots
        self._shift = 64 - (slots // _WAYS).bit_length() + 1
        self.reset()

    # ---- looking in

    def lookup(self, context: Sequence[int]) -> list[GramRow]:
        """Rows of the contexts that end `context`, shortest first. About 10 µs."""
        found: list[GramRow] = []
        if self._cells is None:
            return found
        for order, (tag, start) in enumerate(self._places(context)):
            counts = {
                (cell & _TOKEN) - 1: cell >> _COUNT_SHIFT & 0xFF
                for cell in self._cells[start : start + _WAYS]
                if cell and cell >> _TAG_SHIFT == tag
            }
            if not counts:
                break
            total = sum(counts.values())
            followers = tuple((token, count / total) for token, count in counts.items())
            found.append(GramRow(order, total, followers))
        return found

    def trust(self, row: GramRow) -> float:
        """The probability that one of the row's followers follows, by how often that came true."""
        return self._odds.probability(*_stated(row))

    @property
    def used(self) -> int:
        """Cells that hold a pair."""
        return self._used

    @property
    def changes(self) -> int:
        """Pairs added. Only differences are meaningful."""
        return self._added

    def figures(self) -> TableFigures:
        """Counters since the table was made or reset.

        `inserts`: counted tokens; `overwrites`: pairs that lost their place; `lookups` and `tested`: tokens
        of answers that were tested; `hits`: those that a context named; `accepted`: those that the longest
        known context named first.
        """
        return TableFigures(
            self._used,
            self.slots,
            self._inserts,
            self._overwrites,
            self._tested,
            self._hits,
            self._tested,
            self._accepted,
        )

    # ---- learning

    def learn(self, before: Sequence[int], answer: Sequence[int]) -> None:
        """Tests, then counts an answer that followed `before`. About 50 µs a token."""
        text = [*before[-HIGHEST_ORDER:], *answer]
        first = len(text) - len(answer)
        places = [self._places(text[max(0, at - HIGHEST_ORDER) : at]) for at in range(first, len(text))]
        # All of it is tested first, because an answer is not in the table while it is written.
        for at in range(first, len(text)):
            self._test(text[max(0, at - HIGHEST_ORDER) : at], text[at])
        for token, here in zip(answer, places):
            self._count(here, token)

    def _test(self, context: Sequence[int], token: int) -> None:
        rows = self.lookup(context)
        if not rows:
            return
        named = [any(token == follower for follower, _ in row.followers) for row in rows]
        for row, correct in zip(rows, named):
            self._odds.learn(*_stated(row), correct)
        self._tested += 1
        self._hits += any(named)
        self._accepted += max(rows[-1].followers, key=_second)[0] == token

    def _count(self, places: Sequence[tuple[int, int]], token: int) -> None:
        if not 0 <= token < ID_END:
            return
        self._inserts += 1
        for tag, start in places:
            if not self._add(tag, start, token):
                break

    def _add(self, tag: int, start: int, token: int) -> bool:
        """Counts a pair. Returns whether its context was known."""
        cells = self._allocated()
        bucket = cells[start : start + _WAYS]
        known = any(cell >> _TAG_SHIFT == tag for cell in bucket if cell)
        pair, count = tag << _TAG_SHIFT | token + 1, 1
        at = next((at for at, cell in enumerate(bucket) if cell & ~_COUNT == pair), None)
        if at is not None:
            count += bucket.pop(at) >> _COUNT_SHIFT & 0xFF
            if count >= _MOST_COUNT:
                count //= 2
                for other, cell in enumerate(bucket):
                    if cell and cell >> _TAG_SHIFT == tag:
                        halved = max(1, (cell >> _COUNT_SHIFT & 0xFF) // 2)
                        bucket[other] = cell & ~_COUNT | halved << _COUNT_SHIFT
        elif not bucket[-1]:
            bucket.pop()
            self._used += 1
            self._added += 1
        else:
            rarest = min(reversed(range(_WAYS)), key=lambda at: bucket[at] & _COUNT)
            if bucket[rarest] & _COUNT > 1 << _COUNT_SHIFT:
                cells[start + rarest] -= 1 << _COUNT_SHIFT
                return known
            bucket.pop(rarest)
            self._overwrites += 1
            self._added += 1
        bucket.insert(0, pair | count << _COUNT_SHIFT)
        cells[start : start + _WAYS] = bucket
        return known

    # ---- copies and files

    def reset(self) -> None:
        """Erases everything and frees the memory."""
        self._cells: array[int] | None = None
        self._odds = Odds((STRENGTH,) * _CLASSES, decay=_DECAY, each=2.0)
        self._used = self._added = self._inserts = self._overwrites = 0
        self._tested = self._hits = self._accepted = 0

    def copy(self) -> GramCounts:
        """An independent table with the same content."""
        return deepcopy(self)

    def entries(self) -> Entries:
        """A copy of the content; the ages are the counts."""
        if self._cells is None:
            return NO_ENTRIES
        cells = np.frombuffer(self._cells, np.uint64)
        slots = np.flatnonzero(cells)
        held = cells[slots]
        return Entries(
            slots.astype(np.uint32),
            ((held & np.uint64(_TOKEN)) - np.uint64(1)).astype(np.uint32),
            (held >> np.uint64(_COUNT_SHIFT)).astype(np.uint8),
            (held >> np.uint64(_TAG_SHIFT)).astype(np.uint32),
        )

    def restore(self, entries: Entries, figures: TableFigures | None = None) -> None:
        """Replaces the content, as `NgramTable.restore` does."""
        check_entries(entries, self.slots)
        if entries.tags.shape != entries.slots.shape or (entries.ages == 0).any():
            raise ValueError("a pair of the table has no tag or no count")
        self.reset()
        if figures is not None:
            self._inserts, self._overwrites = figures.inserts, figures.overwrites
            self._tested, self._hits, self._accepted = figures.tested, figures.hits, figures.accepted
        if entries.slots.size:
            cells = entries.tags.astype(np.uint64) << np.uint64(_TAG_SHIFT)
            cells |= entries.ages.astype(np.uint64) << np.uint64(_COUNT_SHIFT)
            cells |= entries.tokens.astype(np.uint64) + np.uint64(1)
            np.frombuffer(self._allocated(), np.uint64)[entries.slots] = cells
            self._used = entries.slots.size

    # ---- inside

    def _places(self, context: Sequence[int]) -> list[tuple[int, int]]:
        """Tag and first cell of the contexts that end `context`, shortest first."""
        state, places = 0, [(0, 0)]
        for token in reversed(context[-HIGHEST_ORDER:]):
            state = extend_hash(state, token)
            places.append((state & 0xFFFFFFFF, (state >> self._shift) * _WAYS))
        return places

    def _allocated(self) -> array[int]:
        if self._cells is None:
            self._cells = array("Q", bytes(8 * self.slots))
        return self._cells


def _stated(row: GramRow) -> tuple[float, int]:
    """The log-odds that one of the row's followers follows (Witten and Bell, 1991), and the row's class."""
    total, followers = round(row.total), len(row.followers)
    kind = row.order * _TOTALS + min(total.bit_length() - 1, _TOTALS - 1)
    log_odds = log(row.total / followers) + _PRIOR[row.order]
    return log_odds, kind * _FOLLOWERS + min(followers, _FOLLOWERS) - 1
