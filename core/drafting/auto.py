"""auto: Draftlight's own drafter. Every kind of evidence, each guess with how likely it is.

Grows a tree best first (`best_first`), up to `most_tokens` or where nothing is left that is
likelier than `least_chance`. How much of it to verify is the planner's question alone: the drafter
knows neither the machine nor the price of a row.

Where only chains can be verified, one alternative is followed at each place.

Invariants: parents before children, no equal siblings; a node's confidence is the estimated
probability that it is accepted given that its parent was, and it is learned from every token of
the answer, drafted or not. What was learned about kinds of evidence outlives the request if the
calibration is a shared one; the evidence itself never does.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.drafting.calibration import WEIGHTS, WEIGHTS_LEARNED, Calibration
from core.drafting.draft import EMPTY, Draft, Drafter, Grown, RejectedRow, grow
from core.drafting.evidence import Evidence, Guess
from core.drafting.ngram_table import NgramTable
from core.drafting.table_evidence import Continuations, Learned, Remembered
from core.events import Occupancy, TableFigures
from core.settings.drafting import Auto

# A longer text than this is forgotten by halves: see SuffixIndex.
CAPACITY_TOKENS = 1 << 17


class AutoDrafter(Drafter):
    """One request after the other. `capacity_tokens` is the context it must hold.

    `calibration` is the family's, shared by all its requests, or None to learn for one answer
    only. `continuations` is what was learned beforehand for the family, if anything was; `memory` its
    n-gram table, which is asked and taught.
    """

    def __init__(
        self,
        settings: Auto,
        capacity_tokens: int,
        *,
        tree: bool = True,
        calibration: Calibration | None = None,
        continuations: Continuations | None = None,
        memory: NgramTable | None = None,
    ) -> None:
        self._settings = settings
        self._calibration = calibration
        self._continuations = continuations
        self._memory = memory
        self._capacity = min(capacity_tokens, CAPACITY_TOKENS)
        self._alternatives = settings.alternatives if tree else 1
        self._evidence = self._new_evidence()
        # The last draft: what comes is learned from without looking again.
        self._grown: Grown[Guess] = Grown()

    def begin(self, prompt: Sequence[int]) -> None:
        self._evidence = self._new_evidence()
        self._evidence.calibration.begin_answer()
        self._evidence.read(prompt)
        self._grown = Grown()

    def observe(self, tokens: Sequence[int]) -> None:
        node: int | None = -1
        for token in tokens:
            guesses = self._grown.looked.get(node) if node is not None else None
            self._evidence.hear(token, guesses)
            if self._evidence.learned_is_wrong:
                self._evidence.put_aside_learned(WEIGHTS)
            node = self._grown.nodes.get((node, token)) if node is not None else None
        self._grown = Grown()

    def observe_top(self, ids: Sequence[Sequence[int]], rejected: Sequence[RejectedRow] = ()) -> None:
        """Row i is the ranking at the place of the i-th of the tokens that were just observed."""
        # Rejected ones first: what was ranked on the answer's own path is the better of two rows.
        for last, row in rejected:
            self._evidence.hear_rejected(last, row)
        self._evidence.hear_top(ids)

    def draft(self, budget: int) -> Draft:
        most = min(budget, self._settings.most_tokens)
        self._grown = Grown()
        if most < 1:
            return EMPTY
        evidence = self._evidence
        self._grown = grow(
            evidence.position(),
            evidence.here(),
            evidence.after,
            evidence.guesses,
            most=most,
            least=self._settings.least_chance,
            alternatives=self._alternatives,
        )
        return self._grown.draft

    def feedback(self, draft: Draft, accepted: int) -> None:
        """Unused: every emitted token is learned from when it is observed, drafted or not."""

    def figures(self) -> TableFigures | None:
        """The n-gram table's counters, if there is one."""
        return self._memory.figures() if self._memory is not None else None

    def occupancy(self) -> Occupancy:
        """Of the n-gram table; without one, the tokens of prompt and answer that are indexed."""
        if self._memory is not None:
            return Occupancy(self._memory.used, self._memory.slots)
        return Occupancy(len(self._evidence.index), self._evidence.index.capacity_tokens)

    def _new_evidence(self) -> Evidence:
        learned = Learned(self._continuations) if self._continuations is not None else None
        weights = WEIGHTS_LEARNED if learned else WEIGHTS
        calibration = self._calibration if self._calibration is not None else Calibration()
        calibration.go_by(weights)
        remembered = Remembered(self._memory) if self._memory is not None else None
        return Evidence(self._capacity, calibration, learned, remembered)
