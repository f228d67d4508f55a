"""Predicted answers: any drafter with a copy of the prediction in front of it.

While the answer follows the prediction, the drafter copies it: a chain with confidences, as long as it is
probable enough. If the copy is short, the underlying drafter drafts too, and the draft with more expected
accepted tokens is used: by its confidences, or by the recent yield of drafts without confidences. The
underlying drafter observes every token in either case. A planner takes as much of the copy as pays; without
one, the copy ends where its probability falls below a half.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from core.drafting.cursor import Cursor
from core.drafting.draft import NO_FACTS, Draft, Drafter, Facts, RejectedRow
from core.drafting.odds import Odds, logit
from core.drafting.suffix_index import ROOT, SuffixIndex
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
    """`planned`: a planner selects."""

    def __init__(self, drafter: Drafter, prediction: Sequence[int], *, planned: bool) -> None:
        self._drafter = drafter
        self._predicted = prediction
        self._min_probability = _MIN_PLANNED if planned else _MIN_UNPLANNED

    def begin(self, prompt: Sequence[int], facts: Facts = NO_FACTS) -> None:
        self._drafter.begin(prompt, facts)
        self._prediction = Prediction(self._predicted)
        for token in facts.begun:
            self._prediction.follow(token)
        self._prediction.restart()
        self._copied = False
        self._yield = _YIELD_AT_FIRST

    def observe(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            self._prediction.follow(token)
        self._drafter.observe(tokens)

    def observe_top(self, ids: Sequence[Sequence[int]], rejected: Sequence[RejectedRow] = ()) -> None:
        self._drafter.observe_top(ids, rejected)

    def draft(self, budget: int) -> Draft:
        copy = self._copy(min(budget, MAX_TOKENS))
        copied_tokens = sum(copy.reach_probabilities())
        self._copied = copied_tokens >= _COPY_ONLY_TOKENS
        if self._copied:
            return copy
        self._drafter.least_probability = self.least_probability
        guessed = self._drafter.draft(budget)
        if guessed.confidence:
            drafted_tokens = sum(guessed.reach_probabilities())
        else:
            drafted_tokens = self._yield * bool(len(guessed))
        self._copied = copied_tokens > drafted_tokens
        return copy if self._copied else guessed

    def sure(self) -> float:
        return max([self._drafter.sure(), *self._prediction.upcoming(1)[1]])

    def feedback(self, draft: Draft, accepted: int) -> None:
        """Passed on for the underlying drafter's own drafts only."""
        if not self._copied:
            self._yield += (accepted - self._yield) * (1.0 - _YIELD_DECAY)
            self._drafter.feedback(draft, accepted)

    def end(self) -> None:
        self._drafter.end()

    def occupancy(self) -> Occupancy:
        return self._drafter.occupancy()

    @property
    def proposal_cost(self) -> float:
        return self._drafter.proposal_cost

    def figures(self) -> TableFigures | None:
        return self._drafter.figures()

    def _copy(self, most: int) -> Draft:
        tokens, likely = self._prediction.upcoming(most)
        reached, length = 1.0, 0
        while length < len(tokens) and reached * likely[length] >= self._min_probability:
            reached *= likely[length]
            length += 1
        source: DraftSource = "prediction"
        return replace(Draft.chain(tokens[:length], likely[:length]), sources=(source,) * length)


# Log-odds of the next token after 0, 1, 2, 4, 8, 16, 32 consecutive matches.
_PRIORS = tuple(map(logit, (0.6, 0.8, 0.88, 0.93, 0.96, 0.98, 0.99)))
# Low at 0, so that a wrong prediction is recognised at once.
_STRENGTHS = (2.0, 6.0, 6.0, 6.0, 6.0, 6.0, 6.0)
_DECAY = 0.99


class Prediction:
    """The tokens of a prediction, the answer's position in it, and the probability that it continues like it.

    The position is a `Cursor`, from the first token on. It moves to the last occurrence of the longest match
    of the answer's last tokens, if that is a better one.

    The probability of the next token is learned in this answer, per length of the run of matches (`Odds`).
    """

    def __init__(self, tokens: Sequence[int]) -> None:
        self._tokens = tokens
        self._index = SuffixIndex(2 * len(tokens))  # enough to drop nothing
        self._index.extend(tokens)
        self._longest = ROOT, 0  # the longest end of the answer that occurs in the prediction
        self._cursor = Cursor(tokens, follows=True)
        self._cursor.move(0, 0)
        self._matched = bytearray(len(tokens))
        self._odds = Odds(_STRENGTHS, decay=_DECAY)

    @property
    def matched_tokens(self) -> int:
        """Tokens of the prediction that occurred at the expected position or in a match."""
        return sum(self._matched)

    def follow(self, token: int) -> None:
        """Advances by the answer's next `token`."""
        cursor = self._cursor
        if 0 <= cursor.at < len(self._tokens):
            kind = _class_of(cursor.run)
            self._odds.learn(_PRIORS[kind], kind, self._tokens[cursor.at] == token)
        found = cursor.follow(token)
        if found >= 0:
            self._matched[found] = True
        self._longest = state, matched = self._index.advance(*self._longest, token)
        if cursor.relocate(end := self._index.latest[state], matched):
            self._matched[end - matched : end] = b"\x01" * matched

    def restart(self) -> None:
        """If no token matched last, expects the prediction from its beginning."""
        if not self._cursor.run:
            self._cursor.move(0, 0)

    def upcoming(self, most: int) -> tuple[Sequence[int], list[float]]:
        """At most `most` predicted next tokens, and the probability of each given those before it."""
        at, run = self._cursor.at, self._cursor.run
        tokens = self._tokens[at : at + most] if at >= 0 else ()
        return tokens, [self._probability(run + depth) for depth in range(len(tokens))]

    def _probability(self, run: int) -> float:
        kind = _class_of(run)
        return self._odds.probability(_PRIORS[kind], kind)


def _class_of(run: int) -> int:
    return min(run.bit_length(), len(_PRIORS) - 1)


def prediction_counts(
    prediction: Sequence[int], begun: Sequence[int], answer: Sequence[int]
) -> tuple[int, int]:
    """Number of tokens of `prediction` that occur in `answer`, which continues `begun`, and of those that
    occur in neither.

    A token counts once, if it occurs where the cursor expects it or in a match, whichever drafter drafted it.
    Tokens that occur in `begun` are in neither count.
    """
    predicted = Prediction(prediction)
    for token in begun:
        predicted.follow(token)
    before = predicted.matched_tokens
    predicted.restart()
    for token in answer:
        predicted.follow(token)
    return predicted.matched_tokens - before, len(prediction) - predicted.matched_tokens
