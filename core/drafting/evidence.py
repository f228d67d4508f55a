"""Evidence: all that is known about what may come next at one place, as weighed guesses.

It asks, in this order, what followed the suffixes of the text (longest first, at most
`_CONTEXTS` of them), where the copy thread points, what the verifier ranked high after the same
token, what it passed over lately, what the family's learned table expects, and what its n-gram
table remembers of other chats, if there are such tables. Each token is judged by the longest
context it was seen in; the other sources add to that, or bring it in.

A *position* is a place to guess at: the end of the text, or a place after guesses that are assumed
to have come. Evidence at an assumed place is the same as it will be when the walk gets there,
which is why one calibration serves every depth of a draft.

Invariant: guesses come likeliest first, no token twice, and their probabilities sum to at most 1.
Owns the sources; knows no draft, no budget and no cost.

CopyCursor: where in the text the answer is being copied from, followed across changed words.

A suffix match breaks at the first token that differs from its source and needs several tokens to
become long again, though an edited copy mostly goes on right behind the change. So the thread
keeps its place: after a token that differs it takes it for a replaced one and moves on by one,
or, if the token is one of the source's next three, for words left out. It is lost after
`_PATIENCE` differences with no two tokens in a row that agree.

It takes up a new place where a suffix of two tokens matches and it had none (or has just failed),
or of four and its own run is shorter than that match.

Invariant: `at` is an offset into the index's text or `NOWHERE`; nothing is promised about it but
that. `run` counts the tokens that agreed in a row, `trust` does so too and is only halved by a
difference: the longer it went well, the likelier it goes on behind a change (1 to 3% in copies
with one word in fifty changed). Knows no probabilities.

Recycled: what the verifier ranked high where it has already been asked, kept as evidence.

A forward gives the verifier's best ids at every row, and plain decoding uses the first only. Two
uses of the others:
- *after* a token: what ranked high the last time this token was the last one. A weak guess at
  what follows, but there is one as soon as a token occurs twice.
- *passed over*: what ranked high one or two places ago and was not said. Such words come soon:
  in recorded answers the runner-up of one place is the very next token 5% of the time, often
  where nothing else is known at all.

Invariant: at most one row of ids a token, the newest; at most `capacity` rows, the least recently
written one leaves. Knows no probabilities, for the verifier's are not handed over.

Source: the adjacency matrix of "Token Recycling" (Luo et al., 2024), kept as a dict of rows
without its breadth-first tree; that words passed over come soon is measured here.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

from core.drafting.calibration import (
    LEARNED_KIND,
    REMEMBERED_KIND,
    Calibration,
    Weights,
    kind_of,
    log2_1,
    logit,
)
from core.drafting.suffix_index import NOWHERE, ROOT, SuffixIndex
from core.drafting.table_evidence import Learned, Outlook, Remembered, Trail

# Contexts asked at a position, and followers looked at in each: where more followed, the newest one
# only. Both bound the work at a position whatever the text.
_CONTEXTS = 6
_FAN = 12
# How deep into the verifier's rows new guesses are looked for.
_NEW_AFTER = 4
_NEW_PASSED = 3
_NEW_PASSED_BEFORE = 1
# Of what only the learned table expects.
_NEW_LEARNED = 4
# The places whose tokens a learned table is asked with.
TAIL_TOKENS = 4
# Kinds of guesses that were seen in the session, and kinds that a row after the last token has a say in.
_SEEN = kind_of(1, False)
_SHORT = kind_of(2, True)
# The best few are normalised together; those are also what the calibration learns from.
_NORMALISED = 8
_LEARNED = 4

_NO_TRAIL = Trail(None, 0)

_second = itemgetter(1)


class DraftPosition(NamedTuple):
    """`place` and `matched`: the longest suffix known to the index. `thread`: the copy thread's
    offset, `trust`: its trust.

    `tail`: the newest tokens, those that tables ask for. `trail`: the place in the n-gram table; no
    hash where the session knows better. `assumed`: tokens since the end
    of the text. `unranked`: tokens since the newest known ranking.
    """

    place: int
    matched: int
    tail: tuple[int, ...]
    thread: int
    trust: int
    trail: Trail
    assumed: int
    unranked: int


class Guess(NamedTuple):
    """`log_odds` are the evidence's own; `probability` is corrected and normalised."""

    token: int
    probability: float
    log_odds: float
    kind: int


class Evidence:
    """Of one request. `calibration` may have learned from earlier ones; it starts anew if not given.

    `learned`: the family's frozen continuations, if there are any; `remembered`: its n-gram table.
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
        self.recycled = Recycled()
        self._learned = learned
        self._remembered = remembered
        self._tail = max(TAIL_TOKENS, remembered.table.n) if remembered else TAIL_TOKENS
        self._thread = CopyCursor()
        self._unranked: int = 0
        self._here: list[Guess] | None = None

    def read(self, tokens: Sequence[int]) -> None:
        """Take in a prompt: nothing is learned from how well it could have been guessed."""
        self.index.extend(tokens)
        if self._remembered is not None:
            self._remembered.read(tokens)
        self._thread.take_up(self.index)
        self._here = None

    def hear(self, token: int, guesses: Sequence[Guess] | None = None) -> None:
        """The answer goes on with `token`: learn from it, then take it in.

        `guesses` are those for this place if they were worked out already, when it was assumed.
        """
        index, calibration = self.index, self.calibration
        for guess in (self.here() if guesses is None else guesses)[:_LEARNED]:
            calibration.learn(guess.log_odds, guess.kind, guess.token == token)
        if self._learned is not None:
            self._learned.hear(tuple(index.text[-TAIL_TOKENS:]), token)
        newest = index.newest(index.tip()) if index.tip() != ROOT else NOWHERE
        calibration.learn_familiarity(newest >= 0 and index.text[newest] == token)
        self._thread.follow(index, token)
        dropped = index.dropped
        index.append(token)
        if self._remembered is not None:
            self._remembered.hear(token)
        if index.dropped != dropped:
            self._thread.lose()
        self._thread.take_up(index)
        self._unranked += 1
        self._here = None

    @property
    def learned_is_wrong(self) -> bool:
        """Whether what comes is not what the learned table says at all."""
        return self._learned is not None and self._learned.is_wrong

    def put_aside_learned(self, weights: Weights) -> None:
        """Go on without the learned table, by `weights`."""
        self._learned = None
        self.calibration.go_by(weights)

    def hear_top(self, rows: Sequence[Sequence[int]]) -> None:
        """The verifier's ranking at the places of the newest `len(rows)` tokens, in order."""
        text = self.index.text
        known = min(len(rows), len(text) - 1)
        for row, at in zip(rows[len(rows) - known :], range(len(text) - known, len(text))):
            self.recycled.see(text[at - 1], row, text[at])
            self._unranked = 0
        self._here = None

    def hear_rejected(self, last: int, row: Sequence[int]) -> None:
        """The verifier's ranking after `last`, a guess that was verified and did not come."""
        self.recycled.see_rejected(last, row)
        self._here = None

    # ---- guessing

    def position(self) -> DraftPosition:
        """The end of the text."""
        index, thread = self.index, self._thread
        place = index.tip()
        tail = tuple(index.text[-self._tail :])
        trail = self._remembered.trail() if self._remembered else _NO_TRAIL
        return DraftPosition(
            place, index.length(place), tail, thread.at, thread.trust, trail, 0, self._unranked
        )

    def here(self) -> list[Guess]:
        """The guesses at the end of the text; worked out once."""
        if self._here is None:
            self._here = self.guesses(self.position())
        return self._here

    def after(self, position: DraftPosition, token: int) -> DraftPosition:
        """The position behind `token`, if that comes."""
        index = self.index
        place, matched = position.place, position.matched
        onward = index.step(place, token)
        while onward < 0 and place > ROOT:
            place = index.up(place)
            matched = index.length(place)
            onward = index.step(place, token)
        if onward < 0:
            onward, matched = ROOT, -1
        thread, trust = position.thread, position.trust
        if 0 <= thread < len(index.text):
            trust = trust + 1 if index.text[thread] == token else trust // 2
            thread += 1
            if thread == len(index.text):
                # A text that repeats itself: behind its end come the guesses, which are its copy.
                thread = self._thread.at
        else:
            thread, trust = NOWHERE, 0
        tail = (*position.tail[1 - self._tail :], token)
        trail = position.trail
        if self._remembered is not None:
            trail = self._remembered.after(trail, position.tail, token)
        return DraftPosition(
            onward, matched + 1, tail, thread, trust, trail, position.assumed + 1, position.unranked + 1
        )

    def guesses(self, position: DraftPosition) -> list[Guess]:
        """What may come at `position`."""
        return self._ranked(*self.weighed(position))

    def weighed(self, position: DraftPosition) -> tuple[dict[int, float], dict[int, int]]:
        """Every guess at `position` with its log-odds, and with its kind.

        The log-odds are linear in the calibration's weights.
        """
        calibration = self.calibration
        odds: dict[int, float] = {}
        kinds: dict[int, int] = {}
        longest = self._followed(position, odds, kinds)
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
                    if kind <= _SHORT and token not in row:
                        odds[token] = odds[token] + weights.not_after
                for rank, token in enumerate(row):
                    if token in odds:
                        if kinds[token] <= _SHORT:
                            odds[token] = odds[token] + weights.after[min(rank, 2)]
                    elif rank < _NEW_AFTER:
                        odds[token], kinds[token] = fresh + weights.after[min(rank, 2)], 0
                fresh = fresh + weights.not_after
        self._pass_over(position.unranked, fresh, odds, kinds)
        if self._learned is not None:
            self._weigh_learned(self._learned.after(position.tail[-TAIL_TOKENS:]), fresh, odds, kinds)
        # A suffix as long as the table's is known better from the session itself.
        if self._remembered is not None and longest < self._remembered.table.n:
            kept = self._remembered.guess(position.trail)
            if kept is not None:
                self._weigh_remembered(kept, log2_1(min(position.trail.run, 32)), fresh, odds, kinds)
        return odds, kinds

    def _followed(self, position: DraftPosition, odds: dict[int, float], kinds: dict[int, int]) -> int:
        """Weigh what followed the position's suffixes; the length of the longest that was followed."""
        index, calibration = self.index, self.calibration
        count, latest, end = index.count, index.latest, len(index.text)
        place, matched, longest = position.place, position.matched, 0
        for _ in range(_CONTEXTS):
            if place <= ROOT:
                break
            seen = count[place] - (latest[place] == end)
            if seen > 0:
                longest = longest or matched
                kind = kind_of(matched, False)
                base = calibration.context(matched, seen, longest - matched, position.assumed)
                if index.fan(place) <= _FAN:
                    for token, onward in index.followers(place):
                        if token not in odds:
                            odds[token] = base + calibration.share(count[onward], seen)
                            kinds[token] = kind
                else:
                    token = index.text[index.newest(place)]
                    if token not in odds:
                        odds[token] = base + calibration.share(count[index.step(place, token)], seen)
                        kinds[token] = kind
            place = index.up(place)
            matched = index.length(place) if place > ROOT else 0
        return longest

    def _pass_over(self, unranked: int, fresh: float, odds: dict[int, float], kinds: dict[int, int]) -> None:
        """Weigh what the verifier ranked high lately and did not say."""
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

    def _weigh_learned(
        self, outlook: Outlook, fresh: float, odds: dict[int, float], kinds: dict[int, int]
    ) -> None:
        """Weigh what the table expects; of the guesses that nothing else knows, only its likeliest."""
        weights = self.calibration.weights
        likely, unknown = outlook
        for token, kind in kinds.items():
            log_odds = logit(likely.get(token, unknown))
            base, slope = weights.learned_new if kind < _SEEN else weights.learned[kind > _SHORT]
            odds[token] = odds[token] + base + slope * log_odds
        base, slope = weights.learned_new
        for token, probability in sorted(likely.items(), key=_second, reverse=True)[:_NEW_LEARNED]:
            if token not in odds:
                odds[token], kinds[token] = fresh + base + slope * logit(probability), LEARNED_KIND

    def _weigh_remembered(
        self, token: int, run: float, fresh: float, odds: dict[int, float], kinds: dict[int, int]
    ) -> None:
        """Weigh the one token that the n-gram table expects."""
        weights = self.calibration.weights
        base, slope = weights.remembered if token in odds else weights.remembered_new
        odds[token] = odds.get(token, fresh) + base + slope * run
        kinds[token] = REMEMBERED_KIND + (run > 0)

    def _ranked(self, odds: dict[int, float], kinds: dict[int, int]) -> list[Guess]:
        probability = self.calibration.probability
        best = sorted(
            ((probability(logit, kinds[token]), token) for token, logit in odds.items()), reverse=True
        )[:_NORMALISED]
        # The likeliest keeps its estimate; the others share what it leaves.
        rest = sum(likely for likely, _ in best[1:])
        room = 1.0 - best[0][0] if best else 0.0
        scale = room / rest if rest > room else 1.0
        return [
            Guess(token, likely * scale if rank else likely, odds[token], kinds[token])
            for rank, (likely, token) in enumerate(best)
        ]


_PATIENCE = 8
_LOOK_AHEAD = 3
_TAKE_UP = 2
_CHANGE_OVER = 4


class CopyCursor:
    """Of one request, beside its index."""

    __slots__ = ("_differences", "at", "run", "trust")

    def __init__(self) -> None:
        self.lose()

    def lose(self) -> None:
        """There is no source."""
        self.at: int = NOWHERE
        self.run: int = 0
        self.trust: int = 0
        self._differences: int = 0

    def follow(self, index: SuffixIndex, token: int) -> None:
        """`token` comes next; `index` does not hold it yet."""
        text = index.text
        if not 0 <= self.at < len(text):
            self.lose()
            return
        if text[self.at] == token:
            self.at += 1
            self.run += 1
            self.trust += 1
            if self.run > 1:
                self._differences = 0
            return
        self.run = 0
        self.trust //= 2
        self._differences += 1
        if self._differences > _PATIENCE:
            self.lose()
            return
        ahead = text[self.at + 1 : self.at + 1 + _LOOK_AHEAD]
        self.at += ahead.index(token) + 2 if token in ahead else 1

    def take_up(self, index: SuffixIndex) -> None:
        """Start anew where the index, which holds the newest token by now, has a better match."""
        place = index.tip()
        if place == ROOT:
            return
        matched = index.length(place)
        alive = self.at >= 0 and self.run > 0
        if matched >= (_CHANGE_OVER if alive else _TAKE_UP) and (not alive or self.run < matched - 2):
            self.at, self._differences = index.newest(place), 0
            self.run = self.trust = matched


Row = tuple[int, ...]

ROW_IDS = 8
# About a vocabulary's worth: there is a row for each different token at most.
CAPACITY_ROWS = 1 << 16


class Recycled:
    """Of one request. Rows are best first."""

    def __init__(self, capacity: int = CAPACITY_ROWS) -> None:
        self._capacity = capacity
        self._after: dict[int, Row] = {}
        self._passed: tuple[Row, Row] = ((), ())

    def __len__(self) -> int:
        """Rows held."""
        return len(self._after)

    def see(self, last: int, ids: Sequence[int], said: int) -> None:
        """After `last` the verifier ranked `ids`, and `said` was said."""
        row = self.see_rejected(last, ids)
        newest = self._passed[0]
        self._passed = (
            tuple(token for token in row if token != said),
            tuple(token for token in newest if token != said),
        )

    def see_rejected(self, last: int, ids: Sequence[int]) -> Row:
        """The same for a place that was verified and is not part of the answer."""
        row = tuple(ids[:ROW_IDS])
        self._after.pop(last, None)
        self._after[last] = row
        if len(self._after) > self._capacity:
            del self._after[next(iter(self._after))]
        return row

    def after(self, last: int) -> Row:
        """What ranked high the last time `last` was the last token; empty if that is not known."""
        return self._after.get(last, ())

    def passed_over(self, places_ago: int) -> Row:
        """What ranked high 1 or 2 places ago (1 is the newest place seen) and has not been said since."""
        return self._passed[places_ago - 1]
