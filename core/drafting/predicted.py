"""Predicted answers: any drafter with a copy of the prediction in front of it.

While the answer follows the prediction, the drafter copies it: a chain with confidences, as long as it is
probable enough. If the copy is short, the underlying drafter drafts too, and the draft with more expected
accepted tokens is used: by its confidences, or by the recent yield of drafts without confidences. The
underlying drafter observes every token in either case. A planner takes as much of the copy as pays; without
one, the copy ends where its probability falls below a half.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from msgspec.structs import replace

from core.drafting.draft import Draft, Drafter, RejectedRow
from core.events import DraftSource, Occupancy, TableFigures

# The largest draft that any drafter's settings allow.
MAX_TOKENS = 64
_MIN_UNPLANNED = 0.5
# A copy with this many expected accepted tokens is used without calling the drafter.
_COPY_ONLY_TOKENS = 4.0
# Drafts without confidences: their accepted tokens average about ten drafts, starting from this value.
_YIELD_DECAY = 0.9
_YIELD_AT_FIRST = 1.0
# Minimum path probability of a copied token if a planner selects.
_MIN_PLANNED = 0.02


class PredictedDrafter(Drafter):
    """`begun` are the tokens at the end of the prompt that belong to the answer; `planned`: a planner
    selects.
    """

    def __init__(
        self, drafter: Drafter, prediction: Sequence[int], *, planned: bool, begun: Sequence[int] = ()
    ) -> None:
        self._drafter = drafter
        self._prediction = prediction
        self._begun = begun
        self._min_probability = _MIN_PLANNED if planned else _MIN_UNPLANNED
        self._cursor = PredictionCursor(())
        self._copied = False
        self._yield = _YIELD_AT_FIRST

    def begin(self, prompt: Sequence[int]) -> None:
        self._drafter.begin(prompt)
        self._cursor = PredictionCursor(self._prediction)
        for token in self._begun:
            self._cursor.follow(token)
        self._cursor.restart()
        self._copied = False
        self._yield = _YIELD_AT_FIRST

    def observe(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            self._cursor.follow(token)
        self._drafter.observe(tokens)

    def observe_top(self, ids: Sequence[Sequence[int]], rejected: Sequence[RejectedRow] = ()) -> None:
        self._drafter.observe_top(ids, rejected)

    def draft(self, budget: int) -> Draft:
        copy = self._copy(min(budget, MAX_TOKENS))
        copied_tokens = _expected(copy)
        self._copied = copied_tokens >= _COPY_ONLY_TOKENS
        if self._copied:
            return copy
        guessed = self._drafter.draft(budget)
        drafted_tokens = _expected(guessed) if guessed.confidence else self._yield * bool(len(guessed))
        self._copied = copied_tokens > drafted_tokens
        return copy if self._copied else guessed

    def feedback(self, draft: Draft, accepted: int) -> None:
        """Passed on for the underlying drafter's own drafts only."""
        if not self._copied:
            self._yield += (accepted - self._yield) * (1.0 - _YIELD_DECAY)
            self._drafter.feedback(draft, accepted)

    def occupancy(self) -> Occupancy:
        return self._drafter.occupancy()

    @property
    def proposal_cost(self) -> float:
        return self._drafter.proposal_cost

    def figures(self) -> TableFigures | None:
        return self._drafter.figures()

    def _copy(self, most: int) -> Draft:
        tokens, likely = self._cursor.upcoming(most)
        reached, length = 1.0, 0
        while length < len(tokens) and reached * likely[length] >= self._min_probability:
            reached *= likely[length]
            length += 1
        source: DraftSource = "prediction"
        return replace(Draft.chain(tokens[:length], likely[:length]), sources=(source,) * length)


def _expected(draft: Draft) -> float:
    """Expected number of accepted tokens of `draft`."""
    reached: list[float] = []
    for parent, confidence in zip(draft.parents, draft.confidence):
        reached.append(confidence * (reached[parent] if parent >= 0 else 1.0))
    return sum(reached)


ABSENT = -1
_MAX_DIFFERENCES = 8
_LOOK_AHEAD = 3
_GRAM = 3
_MAX_COMPARED = 32
# Occurrences of the last tokens that are compared on each side of the last known position.
_CANDIDATES = 16
# After 0, 1, 2, 4, 8, 16, 32 consecutive matches.
_PRIORS = (0.6, 0.8, 0.88, 0.93, 0.96, 0.98, 0.99)
# Low at 0, so that a wrong prediction is recognised at once.
_STRENGTHS = (2.0, 6.0, 6.0, 6.0, 6.0, 6.0, 6.0)
_DECAY = 0.99


class PredictionCursor:
    """The position of one answer in its prediction, and the probability that it continues like it.

    Starts at the first token. After a token that differs, it assumes a replacement; if the token is one of
    the prediction's next three, omitted words; if it is one of the three expected when the difference began,
    inserted words. After `_MAX_DIFFERENCES` differences the position is lost. While fewer than `_GRAM`
    consecutive tokens match, it searches for the longest match of the answer's last tokens, at least `_GRAM`
    of them, and of equals the nearest after the last position.

    The probability of the next token is learned in this answer, per length of the run of matches; `_PRIORS`
    count as `_STRENGTHS` tokens. Invariant: `at` is an offset into the prediction or its end, or `ABSENT`.
    """

    def __init__(self, prediction: Sequence[int]) -> None:
        self._text = list(prediction)
        self._ends: dict[tuple[int, ...], list[int]] = {}
        for end in range(_GRAM, len(self._text) + 1):
            self._ends.setdefault(tuple(self._text[end - _GRAM : end]), []).append(end)
        self._matched_flags = bytearray(len(self._text))
        self._tail: list[int] = []
        self._last_position = 0  # last position inside the prediction
        self._differences = 0
        self.at = 0
        self.run = 0
        self._hits = [0.0] * len(_PRIORS)
        self._tries = [0.0] * len(_PRIORS)

    @property
    def matched_tokens(self) -> int:
        """Tokens of the prediction that occurred at the expected position or in a match."""
        return sum(self._matched_flags)

    def follow(self, token: int) -> None:
        """Advances by the answer's next `token`."""
        text = self._text
        self._tail = [*self._tail[1 - _MAX_COMPARED :], token]
        if 0 <= self.at < len(text):
            self._step(token, text)
        if self.run < _GRAM:
            self._relocate()
        if self.run >= _GRAM:
            self._last_position = self.at

    def restart(self) -> None:
        """If the position is lost, expects the prediction from its beginning."""
        if not self.run:
            self.at = self._last_position = self._differences = 0

    def upcoming(self, most: int) -> tuple[list[int], list[float]]:
        """At most `most` predicted next tokens, and the probability of each given those before it."""
        if self.at < 0:
            return [], []
        tokens = self._text[self.at : self.at + most]
        return tokens, [self._probability(self.run + depth) for depth in range(len(tokens))]

    def _step(self, token: int, text: list[int]) -> None:
        agrees = text[self.at] == token
        kind = _kind(self.run)
        self._hits[kind] = self._hits[kind] * _DECAY + agrees
        self._tries[kind] = self._tries[kind] * _DECAY + 1.0
        if agrees:
            self._matched_flags[self.at] = True
            self.at += 1
            self.run += 1
            if self.run > 1:
                self._differences = 0
            return
        self.run = 0
        self._differences += 1
        for begin in (self.at + 1, self._last_position):
            if token in (near := text[begin : begin + _LOOK_AHEAD]):
                place = begin + near.index(token)
                self._matched_flags[place] = True
                self.at, self.run = place + 1, 1
                return
        self.at = self.at + 1 if self._differences <= _MAX_DIFFERENCES else ABSENT

    def _relocate(self) -> None:
        ends = self._ends.get(tuple(self._tail[-_GRAM:]))
        if ends is None:
            return
        middle = bisect_left(ends, self._last_position)
        near = ends[max(0, middle - _CANDIDATES) : middle + _CANDIDATES]
        best = max(
            near,
            key=lambda end: (
                self._match_length(end),
                end > self._last_position,
                -abs(end - self._last_position),
            ),
        )
        length = self._match_length(best)
        if length > self.run:
            self.at, self.run, self._differences = best, length, 0
            self._matched_flags[best - length : best] = b"\x01" * length

    def _match_length(self, end: int) -> int:
        """How many of the answer's last tokens equal those before `end`."""
        length = 0
        for token, predicted in zip(
            reversed(self._tail), reversed(self._text[max(0, end - _MAX_COMPARED) : end])
        ):
            if token != predicted:
                break
            length += 1
        return length

    def _probability(self, run: int) -> float:
        kind = _kind(run)
        strength = _STRENGTHS[kind]
        return (self._hits[kind] + _PRIORS[kind] * strength) / (self._tries[kind] + strength)


def _kind(run: int) -> int:
    return min(run.bit_length(), len(_PRIORS) - 1)


def prediction_counts(
    prediction: Sequence[int], begun: Sequence[int], answer: Sequence[int]
) -> tuple[int, int]:
    """Number of tokens of `prediction` that occur in `answer`, which continues `begun`, and of those that
    occur in neither.

    A token counts once, if it occurs where the cursor expects it or in a match, whichever drafter drafted it.
    Tokens that occur in `begun` are in neither count.
    """
    cursor = PredictionCursor(prediction)
    for token in begun:
        cursor.follow(token)
    before = cursor.matched_tokens
    cursor.restart()
    for token in answer:
        cursor.follow(token)
    return cursor.matched_tokens - before, len(prediction) - cursor.matched_tokens
