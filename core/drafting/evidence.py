"""Evidence: all sources combined into weighed guesses of the next token at one position.

Sources, in this order: what followed the suffixes of the text (longest first, at most `_MAX_CONTEXTS` of
them), the token at the copy cursor, the target's ranking after the same token, tokens that it ranked high
recently without emitting them, the family's short n-grams (a prebuilt table and own counts), and its n-gram
table. The longest context in which a token was seen gives its base log-odds; the other sources add to them or
add new guesses.

A *position* is the end of the text, or follows guesses that are assumed to be right. The evidence at an
assumed position is the same as after the guesses were accepted, so one calibration serves every depth of a
draft.

Invariant: guesses are ordered by probability, no token occurs twice, and the probabilities sum to at most 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from core.drafting.calibration import (
    LEARNED_KIND,
    REMEMBERED_KIND,
    Calibration,
    kind_of,
    log2_1,
)
from core.drafting.cursor import Cursor
from core.drafting.draft import PROPOSED_KIND, Guess
from core.drafting.odds import logit
from core.drafting.suffix_index import ABSENT, ROOT, SuffixIndex
from core.drafting.table_evidence import Learned, Remembered, TableCursor, TokenProbabilities

# Contexts looked up per position, and followers considered in each; of a context with more followers only the
# newest one counts. Both bound the work per position, whatever the text.
_MAX_CONTEXTS = 6
_MAX_FOLLOWERS = 12
# Ranks of the target's rankings from which new guesses are taken.
_NEW_AFTER = 4
_NEW_PASSED = 3
_NEW_PASSED_BEFORE = 1
# Last tokens with which the prebuilt table is looked up.
TAIL_TOKENS = 4
# The lowest kind of guesses seen in the session, and the highest kind that a ranking after the last token
# modifies.
_SEEN_KIND = kind_of(1, False)
_SHORT_KIND = kind_of(2, True)
# Most probable guesses that are normalised together, and of these the ones that the calibration learns from.
_NORMALISED = 8
_LEARNED = 4

_NO_CURSOR = TableCursor(None, 0)


class DraftPosition(NamedTuple):
    """A position to guess at.

    - `state`, `matched`: the longest suffix in the index, and its length.
    - `tail`: the newest tokens, for table look-ups.
    - `thread`, `trust`: the copy cursor's offset and its trust.
    - `table_cursor`: the position in the n-gram table; its hash is None without a table, or with too little
      text.
    - `assumed`: tokens after the end of the text.
    - `unranked`: tokens after the newest known ranking.
    """

    state: int
    matched: int
    tail: tuple[int, ...]
    thread: int
    trust: int
    table_cursor: TableCursor
    assumed: int
    unranked: int

    @property
    def assumed_tokens(self) -> tuple[int, ...]:
        """The tokens after the end of the text; the newest ones if they are more than `tail`."""
        return self.tail[max(0, len(self.tail) - self.assumed) :]


class Evidence:
    """Evidence of one request.

    `calibration`: None starts a new one. `learned` is the family's
    prebuilt table and `remembered` its n-gram table, if there are any.
    """

    def __init__(
        self,
        capacity_tokens: int,
        calibration: Calibration | None = None,
        learned: Learned | None = None,
        remembered: Remembered | None = None,
    ) -> None:
        self.index = SuffixIndex(capacity_tokens)
        self.calibration = calibration if calibration is not None else Calibration()
        self.recycled = RecycledRankings()
        self.learned = learned
        self._remembered = remembered
        self._tail = max(TAIL_TOKENS, remembered.table.n) if remembered else TAIL_TOKENS
        self._cursor = Cursor(self.index.text)
        self._unranked: int = 0
        self._current_guesses: list[Guess] | None = None

    def read(self, tokens: Sequence[int]) -> None:
        """Appends prompt tokens without learning from how well they could have been guessed."""
        self.index.extend(tokens)
        if self._remembered is not None:
            self._remembered.read(tokens)
        self._cursor = Cursor(self.index.text)
        self._relocate()
        self._current_guesses = None

    def observe(self, token: int, guesses: Sequence[Guess] | None = None) -> None:
        """Learns from the answer's next `token` and appends it.

        `guesses` are the guesses at its position, if they were computed for a draft.
        """
        index, calibration = self.index, self.calibration
        known = self.current_guesses() if guesses is None else guesses
        for guess in [each for each in known if each.kind != PROPOSED_KIND][:_LEARNED]:
            calibration.learn(guess.log_odds, guess.kind, guess.token == token)
        if self.learned is not None:
            self.learned.observe(tuple(index.text[-TAIL_TOKENS:]), token)
        newest = index.newest_follower(index.longest_suffix()) if index.longest_suffix() != ROOT else ABSENT
        calibration.learn_familiarity(newest >= 0 and index.text[newest] == token)
        self._cursor.follow(token)
        dropped = index.dropped
        index.append(token)
        if self._remembered is not None:
            self._remembered.observe(token)
        if index.dropped != dropped:
            self._cursor = Cursor(index.text)
        self._relocate()
        self._unranked += 1
        self._current_guesses = None

    def _relocate(self) -> None:
        """Moves the copy cursor to the longest match of the text's end, if that is a better one."""
        state = self.index.longest_suffix()
        self._cursor.relocate(self.index.newest_follower(state), self.index.length(state))

    def observe_ranking(self, rows: Sequence[Sequence[int]]) -> None:
        """Records the target's rankings at the positions of the newest `len(rows)` tokens, in order."""
        text = self.index.text
        known = min(len(rows), len(text) - 1)
        for row, at in zip(rows[len(rows) - known :], range(len(text) - known, len(text))):
            self.recycled.record(text[at - 1], row, text[at])
            self._unranked = 0
        self._current_guesses = None

    def observe_rejected(self, last: int, row: Sequence[int]) -> None:
        """Records the target's ranking after `last`, a rejected guess."""
        self.recycled.record_rejected(last, row)
        self._current_guesses = None

    # ---- guessing

    def position(self) -> DraftPosition:
        """The end of the text."""
        index, cursor = self.index, self._cursor
        state = index.longest_suffix()
        tail = tuple(index.text[-self._tail :])
        table_cursor = self._remembered.table_cursor() if self._remembered else _NO_CURSOR
        return DraftPosition(
            state, index.length(state), tail, cursor.at, cursor.trust, table_cursor, 0, self._unranked
        )

    def current_guesses(self) -> list[Guess]:
        """The guesses at the end of the text, computed once."""
        if self._current_guesses is None:
            self._current_guesses = self.guesses(self.position())
        return self._current_guesses

    def after(self, position: DraftPosition, token: int) -> DraftPosition:
        """The position after `token`, assuming that it is right."""
        index = self.index
        state, matched = index.advance(position.state, position.matched, token)
        thread, trust = position.thread, position.trust
        if 0 <= thread < len(index.text):
            trust = trust + 1 if index.text[thread] == token else trust // 2
            thread += 1
            if thread == len(index.text):
                # In a text that repeats itself, the guesses after its end continue the copy.
                thread = self._cursor.at
        else:
            thread, trust = ABSENT, 0
        tail = (*position.tail[1 - self._tail :], token)
        table_cursor = position.table_cursor
        if self._remembered is not None:
            table_cursor = self._remembered.after(table_cursor, position.tail, token)
        return DraftPosition(
            state,
            matched,
            tail,
            thread,
            trust,
            table_cursor,
            position.assumed + 1,
            position.unranked + 1,
        )

    def guesses(self, position: DraftPosition) -> list[Guess]:
        """The guesses at `position`, most probable first."""
        return self._normalised(*self.log_odds_of_guesses(position))

    def log_odds_of_guesses(self, position: DraftPosition) -> tuple[dict[int, float], dict[int, int]]:
        """Every guess at `position` with its log-odds, and with its kind.

        The log-odds are linear in the calibration's weights.
        """
        calibration = self.calibration
        outlook = self.learned.after(position.tail[-TAIL_TOKENS:]) if self.learned is not None else None
        if outlook is not None:
            calibration.trust(outlook.trust)
        odds: dict[int, float] = {}
        kinds: dict[int, int] = {}
        longest = self._add_suffix_followers(position, odds, kinds)
        weights = calibration.weights
        fresh = calibration.unseen(longest, position.assumed)
        text = self.index.text
        if 0 <= position.thread < len(text):
            token = text[position.thread]
            if token not in odds:
                odds[token], kinds[token] = fresh, 0
            worth = weights.thread + weights.thread_trust * log2_1(min(position.trust, 32))
            odds[token] = odds[token] + worth
            kinds[token] += 1
        if position.tail:
            row = self.recycled.after(position.tail[-1])
            if row:
                for token, kind in kinds.items():
                    if kind <= _SHORT_KIND and token not in row:
                        odds[token] = odds[token] + weights.not_after
                for rank, token in enumerate(row):
                    if token in odds:
                        if kinds[token] <= _SHORT_KIND:
                            odds[token] = odds[token] + weights.after[min(rank, 2)]
                    elif rank < _NEW_AFTER:
                        odds[token], kinds[token] = fresh + weights.after[min(rank, 2)], 0
                fresh = fresh + weights.not_after
        self._add_passed_over(position.unranked, fresh, odds, kinds)
        if outlook is not None:
            self._add_learned(outlook, fresh, odds, kinds)
        # For a suffix of at least n tokens, the session itself is the better source.
        if self._remembered is not None and longest < self._remembered.table.n:
            expected = self._remembered.guess(position.table_cursor)
            if expected is not None:
                self._add_remembered(expected, log2_1(min(position.table_cursor.run, 32)), fresh, odds, kinds)
        return odds, kinds

    def _add_suffix_followers(
        self, position: DraftPosition, odds: dict[int, float], kinds: dict[int, int]
    ) -> int:
        """Adds what followed the position's suffixes. Returns the length of the longest suffix with a
        follower.
        """
        index, calibration = self.index, self.calibration
        count, latest, end = index.count, index.latest, len(index.text)
        state, matched, longest = position.state, position.matched, 0
        for _ in range(_MAX_CONTEXTS):
            if state <= ROOT:
                break
            seen = count[state] - (latest[state] == end)
            if seen > 0:
                longest = longest or matched
                kind = kind_of(matched, False)
                base = calibration.context(matched, seen, longest - matched, position.assumed)
                if index.follower_count(state) <= _MAX_FOLLOWERS:
                    for token, onward in index.followers(state):
                        if token not in odds:
                            odds[token] = base + calibration.share(count[onward], seen)
                            kinds[token] = kind
                else:
                    token = index.text[index.newest_follower(state)]
                    if token not in odds:
                        odds[token] = base + calibration.share(count[index.transition(state, token)], seen)
                        kinds[token] = kind
            state = index.suffix_link(state)
            matched = index.length(state) if state > ROOT else 0
        return longest

    def _add_passed_over(
        self, unranked: int, fresh: float, odds: dict[int, float], kinds: dict[int, int]
    ) -> None:
        """Adds tokens that the target recently ranked high and did not emit."""
        weights = self.calibration.weights
        if unranked == 0:
            for rank, token in enumerate(self.recycled.passed_over(1)):
                weight = weights.passed_over if rank else weights.runner_up
                if token in odds:
                    odds[token] = odds[token] + weight
                elif rank < _NEW_PASSED:
                    odds[token], kinds[token] = fresh + weight, 0
        if unranked <= 1:
            for rank, token in enumerate(self.recycled.passed_over(2 - unranked)):
                if token in odds:
                    odds[token] = odds[token] + weights.passed_over_before
                elif rank < _NEW_PASSED_BEFORE:
                    odds[token], kinds[token] = fresh + weights.passed_over_before, 0

    def _add_learned(
        self, outlook: TokenProbabilities, fresh: float, odds: dict[int, float], kinds: dict[int, int]
    ) -> None:
        """Adds the prebuilt table's probabilities; new guesses are its likeliest tokens only."""
        weights = self.calibration.weights
        probabilities, unstated = outlook.probabilities, logit(outlook.other)
        for token, kind in kinds.items():
            log_odds = logit(probabilities[token]) if token in probabilities else unstated
            base, slope = weights.learned_new if kind < _SEEN_KIND else weights.learned[kind > _SHORT_KIND]
            odds[token] = odds[token] + base + slope * log_odds
        base, slope = weights.learned_new
        for token, log_odds in outlook.likeliest:
            if token not in odds:
                odds[token], kinds[token] = fresh + base + slope * log_odds, LEARNED_KIND

    def _add_remembered(
        self, token: int, run: float, fresh: float, odds: dict[int, float], kinds: dict[int, int]
    ) -> None:
        """Adds the token that the n-gram table holds."""
        weights = self.calibration.weights
        base, slope = weights.remembered if token in odds else weights.remembered_new
        odds[token] = odds.get(token, fresh) + base + slope * run
        kinds[token] = REMEMBERED_KIND + (run > 0)

    def _normalised(self, odds: dict[int, float], kinds: dict[int, int]) -> list[Guess]:
        best = self.calibration.best(odds, kinds, _NORMALISED)
        # The most probable guess keeps its estimate; the others share the remainder.
        rest = sum(likely for likely, _ in best[1:])
        room = 1.0 - best[0][0] if best else 0.0
        scale = room / rest if rest > room else 1.0
        return [
            Guess(token, likely * scale if rank else likely, odds[token], kinds[token])
            for rank, (likely, token) in enumerate(best)
        ]


Row = tuple[int, ...]

ROW_IDS = 8


class RecycledRankings:
    """The target's rankings at positions that were already computed, for one request. Rows are best first.

    A forward pass ranks ids at every row, of which plain decoding uses the best only. The others serve twice:
    - *after* a token: the ranking the last time this token was the last one. Weak evidence, but available as
      soon as a token occurs twice.
    - *passed over*: ids ranked high one or two positions ago and not emitted. In recorded answers the
      runner-up is the very next token in 5% of positions, often without any other evidence.

    Invariant: at most one row per token, the newest. Source: the adjacency matrix of “Token Recycling” (Luo
    et al., 2024), here a dict of rows without its breadth-first tree. The use of passed-over ids is ours.
    """

    def __init__(self) -> None:
        self._after: dict[int, Row] = {}
        self._passed: tuple[Row, Row] = ((), ())

    def record(self, last: int, ids: Sequence[int], emitted: int) -> None:
        """Records that the target ranked `ids` after `last` and emitted `emitted`."""
        row = self.record_rejected(last, ids)
        newest = self._passed[0]
        self._passed = (
            tuple(token for token in row if token != emitted),
            tuple(token for token in newest if token != emitted),
        )

    def record_rejected(self, last: int, ids: Sequence[int]) -> Row:
        """Records the ranking after `last` at a position that is not part of the answer."""
        row = self._after[last] = tuple(ids[:ROW_IDS])
        return row

    def after(self, last: int) -> Row:
        """The ranking the last time `last` was the last token; empty if unknown."""
        return self._after.get(last, ())

    def passed_over(self, places_ago: int) -> Row:
        """Ids ranked high 1 or 2 positions ago (1 is the newest recorded position) and not emitted since."""
        return self._passed[places_ago - 1]
