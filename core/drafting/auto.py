"""`auto`: Draftlight's own drafter. Combines all sources of evidence into guesses with probabilities.

Grows a tree best first, without nodes of a negligible path probability.
The planner decides how much of the tree is verified. If only chains can be verified, one alternative is
followed per position.

Invariants: parents precede children and siblings differ. A node's confidence is the estimated probability
that it is accepted given that its parent was. It is learned from every token of the answer, drafted or not.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from core.drafting.calibration import LEARNED_KIND, WEIGHTS, WEIGHTS_LEARNED, Calibration
from core.drafting.draft import EMPTY, NO_FACTS, Draft, Drafter, Facts, GrownDraft, Guess, RejectedRow, grow
from core.drafting.draft_model import Proposals
from core.drafting.evidence import TAIL_TOKENS, DraftPosition, Evidence
from core.drafting.gram_counts import GramCounts
from core.drafting.gram_table import GramTable
from core.drafting.ngram_mod import NgramTable
from core.drafting.table_evidence import Learned, Remembered
from core.events import DraftSource, Occupancy, TableFigures

# Nodes of a draft: recorded answers gained nothing from more, on a CPU's cost table and on Apple's.
_MOST_TOKENS = 16
_ALTERNATIVES = 3
# The cheapest row of the shipped cost tables costs 0.015 plain steps, at 1.5 tokens each.
_LEAST_PROBABILITY = 0.02
# Tokens of text after which `SuffixIndex` drops the older half.
CAPACITY_TOKENS = 1 << 17


class AutoDrafter(Drafter):
    """Serves one request after the other. `capacity_tokens` is the context length to index.

    `continuations` is the family's prebuilt table, if any. `memory` is the family's n-gram table and `own`
    its short n-grams, which are read and written. `proposals` asks a model, if one takes part.
    """

    def __init__(
        self,
        capacity_tokens: int,
        *,
        tree: bool = True,
        continuations: GramTable | None = None,
        memory: NgramTable | None = None,
        own: GramCounts | None = None,
        proposals: Proposals | None = None,
    ) -> None:
        self._continuations = continuations
        self._memory = memory
        self._own = own
        self._proposals = proposals
        self._capacity = min(capacity_tokens, CAPACITY_TOKENS)
        self._alternatives = _ALTERNATIVES if tree else 1
        self._begin(())

    def begin(self, prompt: Sequence[int], facts: Facts = NO_FACTS) -> None:
        self._begin(prompt)
        self._evidence.read(prompt)
        if self._proposals is not None:
            self._proposals.begin(prompt)

    def _begin(self, prompt: Sequence[int]) -> None:
        self._evidence = self._new_evidence()
        # The last draft with its guesses, so that `observe` need not compute them again.
        self._grown = GrownDraft()
        # Counted in `end`: the answer, and the end of the prompt before it.
        self._before = tuple(prompt[-TAIL_TOKENS:])
        self._answer: list[int] = []

    def end(self) -> None:
        if self._own is not None and self._answer:
            self._own.learn(self._before, self._answer)
        self._answer = []

    def observe(self, tokens: Sequence[int]) -> None:
        evidence = self._evidence
        self._answer += tokens
        for token, guesses in self._grown.outcomes(tokens):
            evidence.observe(token, guesses)
            if evidence.learned is not None and evidence.learned.is_unreliable:
                evidence.learned = None
                evidence.calibration.use_weights(WEIGHTS)
        self._grown = GrownDraft()
        if self._proposals is not None:
            self._proposals.observe(tokens)

    def observe_top(self, ids: Sequence[Sequence[int]], rejected: Sequence[RejectedRow] = ()) -> None:
        """Row i is the ranking at the position of the i-th token of the last `observe`."""
        # Rejected rows first: of two rows for a token, the one on the accepted path must win.
        for last, row in rejected:
            self._evidence.observe_rejected(last, row)
        self._evidence.observe_ranking(ids)

    def draft(self, budget: int) -> Draft:
        most = min(budget, _MOST_TOKENS)
        self._grown = GrownDraft()
        if most < 1:
            return EMPTY
        evidence, proposals = self._evidence, self._proposals
        if proposals is not None:
            proposals.ask(evidence.current_guesses(), most)
        self._grown = grow(
            evidence.position(),
            evidence.after,
            self._guesses,
            max_nodes=most,
            min_probability=_LEAST_PROBABILITY,
            alternatives=self._alternatives,
            least_probability=self.least_probability,
        )
        return replace(self._grown.draft, sources=tuple(map(self._source, self._grown.drafted)))

    def sure(self) -> float:
        return max((guess.probability for guess in self._evidence.current_guesses()), default=0.0)

    def _guesses(self, position: DraftPosition) -> list[Guess]:
        """The guesses of all evidence, and of the model, if it was used."""
        evidence = self._evidence
        found = evidence.guesses(position) if position.assumed else evidence.current_guesses()
        return found if self._proposals is None else self._proposals.join(found, position.assumed_tokens)

    def _source(self, guess: Guess) -> DraftSource:
        if guess.proposed and self._proposals is not None:
            return self._proposals.source
        if guess.kind >= LEARNED_KIND:
            return "table"
        return "n-gram" if guess.kind else "ranking"

    def feedback(self, draft: Draft, accepted: int) -> None:
        """For proposals only: `observe` learns from every emitted token, drafted or not."""
        if self._proposals is not None:
            self._proposals.verified(draft, accepted)

    @property
    def proposal_cost(self) -> float:
        return self._proposals.asked_cost if self._proposals is not None else 0.0

    def figures(self) -> TableFigures | None:
        """Counters of the n-gram table, if there is one."""
        return self._memory.figures() if self._memory is not None else None

    def occupancy(self) -> Occupancy:
        """Fill level of the n-gram table, or of the suffix index without a table."""
        if self._memory is not None:
            return Occupancy(self._memory.used, self._memory.slots)
        return Occupancy(len(self._evidence.index), self._evidence.index.capacity_tokens)

    def _new_evidence(self) -> Evidence:
        known = self._continuations is not None or self._own is not None
        learned = Learned(self._continuations, self._own) if known else None
        calibration = Calibration(WEIGHTS, WEIGHTS_LEARNED if known else None)
        remembered = Remembered(self._memory) if self._memory is not None else None
        return Evidence(self._capacity, calibration, learned, remembered)
