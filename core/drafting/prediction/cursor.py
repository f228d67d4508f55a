"""PredictionCursor: where in a predicted answer the real one is, and how likely it goes on like it.

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
