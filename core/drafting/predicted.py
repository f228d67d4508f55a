"""PredictedDrafter: any drafter, with a predicted answer in front of it.

While the answer goes like the prediction, that is copied: a chain with confidences, as long as it is likely
enough. Where little of it is, the drafter is asked, too, and the draft that promises more tokens is taken:
by its confidences, or where it has none by what came of such drafts lately. The drafter hears of every token
either way.

Where a planner shapes the drafts it takes as much of the copy as pays. Where none does, the copy ends where
it is no longer likelier than not.

PredictionCursor: where in a predicted answer the real one is, and how likely it goes on like it.

It starts at the prediction's first token. A token that differs is taken for a replaced one; if it is one of
the prediction's next three, for the first behind words that were left out; and if it is one of the three that
were expected when the difference began, for the first behind words that were put in. After `_PATIENCE`
differences the place is lost. Where fewer than `_GRAM` tokens agree in a row, the place is looked for anew:
the longest match of the answer's last tokens, at least `_GRAM` of them, and of equals the nearest behind the
place that was left.

How likely the next token agrees is learned from how it went after as many agreements in a row, in this
answer; `_PRIORS` count for `_STRENGTHS` tokens.

Invariant: `at` is an offset into the prediction or its end, or `NOWHERE`. Knows token ids only; any int
is one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from core.drafting.draft import EMPTY, Draft, Drafter, RejectedRow
from core.events import Occupancy, TableFigures

# As wide as any drafter's drafts may be set to.
MOST_TOKENS = 64
_SURE = 0.5
# A copy of which so many tokens are expected needs no second opinion.
_PLENTY_TOKENS = 4.0
# What came of a draft without confidences is an average over about ten; at first this is taken for it.
_YIELD_DECAY = 0.9
_YIELD_AT_FIRST = 1.0
# Of a copy that a planner shapes: what is hardly ever reached is not worth its look.
_LEAST_REACHED = 0.02


class PredictedDrafter(Drafter):
    """`begun` are the tokens at the prompt's end that the answer begins with; `planned`: a planner shapes."""

    def __init__(
        self, drafter: Drafter, prediction: Sequence[int], *, planned: bool, begun: Sequence[int] = ()
    ) -> None:
        self._drafter = drafter
        self._prediction = prediction
        self._begun = begun
        self._least = _LEAST_REACHED if planned else _SURE
        self._cursor = PredictionCursor(())
        self._copied = False
        self._yield = _YIELD_AT_FIRST

    def begin(self, prompt: Sequence[int]) -> None:
        self._drafter.begin(prompt)
        self._cursor = PredictionCursor(self._prediction)
        for token in self._begun:
            self._cursor.follow(token)
        self._cursor.start_again()
        self._copied = False
        self._yield = _YIELD_AT_FIRST

    def observe(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            self._cursor.follow(token)
        self._drafter.observe(tokens)

    def observe_top(self, ids: Sequence[Sequence[int]], rejected: Sequence[RejectedRow] = ()) -> None:
        self._drafter.observe_top(ids, rejected)

    def draft(self, budget: int) -> Draft:
        copy = self._copy(min(budget, MOST_TOKENS))
        worth = _expected(copy)
        self._copied = worth >= _PLENTY_TOKENS
        if self._copied:
            return copy
        guessed = self._drafter.draft(budget)
        opinion = _expected(guessed) if guessed.confidence else self._yield * bool(len(guessed))
        self._copied = worth > opinion
        return copy if self._copied else guessed

    def feedback(self, draft: Draft, accepted: int) -> None:
        """The drafter hears of its own drafts only."""
        if not self._copied:
            self._yield += (accepted - self._yield) * (1.0 - _YIELD_DECAY)
            self._drafter.feedback(draft, accepted)

    def occupancy(self) -> Occupancy:
        return self._drafter.occupancy()

    def figures(self) -> TableFigures | None:
        return self._drafter.figures()

    def _copy(self, most: int) -> Draft:
        tokens, likely = self._cursor.ahead(most)
        reached, length = 1.0, 0
        while length < len(tokens) and reached * likely[length] >= self._least:
            reached *= likely[length]
            length += 1
        if not length:
            return EMPTY
        return Draft(tuple(tokens[:length]), tuple(range(-1, length - 1)), tuple(likely[:length]))


def _expected(draft: Draft) -> float:
    """How many tokens of `draft` are expected to be accepted."""
    reached: list[float] = []
    for parent, confidence in zip(draft.parents, draft.confidence):
        reached.append(confidence * (reached[parent] if parent >= 0 else 1.0))
    return sum(reached)


NOWHERE = -1
_PATIENCE = 8
_LOOK_AHEAD = 3
_GRAM = 3
_MOST_COMPARED = 32
# Of the places where the last tokens occur, so many are compared on each side of the one that was left.
_CANDIDATES = 16
# After 0, 1, 2, 4, 8, 16, 32 agreements in a row.
_PRIORS = (0.6, 0.8, 0.88, 0.93, 0.96, 0.98, 0.99)
# A wrong prediction shows at once.
_STRENGTHS = (2.0, 6.0, 6.0, 6.0, 6.0, 6.0, 6.0)
_DECAY = 0.99


class PredictionCursor:
    """Of one answer."""

    def __init__(self, prediction: Sequence[int]) -> None:
        self._text = list(prediction)
        self._ends: dict[tuple[int, ...], list[int]] = {}
        for end in range(_GRAM, len(self._text) + 1):
            self._ends.setdefault(tuple(self._text[end - _GRAM : end]), []).append(end)
        self._came = bytearray(len(self._text))
        self._tail: list[int] = []
        self._left = 0  # where the place was that was left last
        self._differences = 0
        self.at = 0
        self.run = 0
        self._hits = [0.0] * len(_PRIORS)
        self._tries = [0.0] * len(_PRIORS)

    @property
    def came(self) -> int:
        """How many of the prediction's tokens came, where they were expected or in a match."""
        return sum(self._came)

    def follow(self, token: int) -> None:
        """The answer goes on with `token`."""
        text = self._text
        self._tail = [*self._tail[1 - _MOST_COMPARED :], token]
        if 0 <= self.at < len(text):
            self._step(token, text)
        if self.run < _GRAM:
            self._look_again()
        if self.run >= _GRAM:
            self._left = self.at

    def start_again(self) -> None:
        """If the place is lost, the prediction is of what comes from here on."""
        if not self.run:
            self.at = self._left = self._differences = 0

    def ahead(self, most: int) -> tuple[list[int], list[float]]:
        """At most `most` tokens that are predicted next, and how likely each is if those before it come."""
        if self.at < 0:
            return [], []
        tokens = self._text[self.at : self.at + most]
        return tokens, [self._likely(self.run + depth) for depth in range(len(tokens))]

    def _step(self, token: int, text: list[int]) -> None:
        agrees = text[self.at] == token
        kind = _kind(self.run)
        self._hits[kind] = self._hits[kind] * _DECAY + agrees
        self._tries[kind] = self._tries[kind] * _DECAY + 1.0
        if agrees:
            self._came[self.at] = True
            self.at += 1
            self.run += 1
            if self.run > 1:
                self._differences = 0
            return
        self.run = 0
        self._differences += 1
        for begin in (self.at + 1, self._left):
            if token in (near := text[begin : begin + _LOOK_AHEAD]):
                place = begin + near.index(token)
                self._came[place] = True
                self.at, self.run = place + 1, 1
                return
        self.at = self.at + 1 if self._differences <= _PATIENCE else NOWHERE

    def _look_again(self) -> None:
        ends = self._ends.get(tuple(self._tail[-_GRAM:]))
        if ends is None:
            return
        middle = bisect_left(ends, self._left)
        near = ends[max(0, middle - _CANDIDATES) : middle + _CANDIDATES]
        best = max(near, key=lambda end: (self._matched(end), end > self._left, -abs(end - self._left)))
        length = self._matched(best)
        if length > self.run:
            self.at, self.run, self._differences = best, length, 0
            self._came[best - length : best] = b"\x01" * length

    def _matched(self, end: int) -> int:
        """How many of the answer's last tokens are those before `end`."""
        length = 0
        for token, told in zip(
            reversed(self._tail), reversed(self._text[max(0, end - _MOST_COMPARED) : end])
        ):
            if token != told:
                break
            length += 1
        return length

    def _likely(self, run: int) -> float:
        kind = _kind(run)
        strength = _STRENGTHS[kind]
        return (self._hits[kind] + _PRIORS[kind] * strength) / (self._tries[kind] + strength)


def _kind(run: int) -> int:
    return min(run.bit_length(), len(_PRIORS) - 1)


def came_and_not(prediction: Sequence[int], begun: Sequence[int], answer: Sequence[int]) -> tuple[int, int]:
    """How many tokens of `prediction` came in `answer`, which went on from `begun`, and how many never did.

    A token counts once, and if it came where the cursor expected it or in a match, whoever drafted it. Those
    that `begun` had are in neither.
    """
    cursor = PredictionCursor(prediction)
    for token in begun:
        cursor.follow(token)
    before = cursor.came
    cursor.start_again()
    for token in answer:
        cursor.follow(token)
    return cursor.came - before, len(prediction) - cursor.came
