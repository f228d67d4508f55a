"""`auto`: Draftlight's own drafter. Combines all sources of evidence into guesses with probabilities.

Grows a tree best first, without nodes of a negligible path probability.
The planner decides how much of the tree is verified. If only chains can be verified, one alternative is
followed per position.

Invariants: parents precede children and siblings differ. A node's confidence is the estimated probability
that it is accepted given that its parent was. It is learned from every token of the answer, drafted or not. A
shared calibration outlives the request; the evidence does not.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from core.drafting.calibration import LEARNED_KIND, WEIGHTS, WEIGHTS_LEARNED, Calibration
from core.drafting.draft import EMPTY, Draft, Drafter, GrownDraft, Guess, RejectedRow, grow
from core.drafting.draft_model import PROPOSED_KIND, Proposals
from core.drafting.evidence import DraftPosition, Evidence
from core.drafting.gram_table import GramTable, Learned, Remembered
from core.drafting.ngram_mod import NgramTable
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

    `calibration` is shared by all requests of the tokenizer family; None learns for one answer only.
    `continuations` is the family's prebuilt table, if any. `memory` is the family's n-gram table, which is
    read and written. `proposals` asks a model, if one takes part.
    """

    def __init__(
        self,
        capacity_tokens: int,
        *,
        tree: bool = True,
        calibration: Calibration | None = None,
        continuations: GramTable | None = None,
        memory: NgramTable | None = None,
        proposals: Proposals | None = None,
    ) -> None:
        self._calibration = calibration
        self._continuations = continuations
        self._memory = memory
        self._proposals = proposals
        self._capacity = min(capacity_tokens, CAPACITY_TOKENS)
        self._alternatives = _ALTERNATIVES if tree else 1
        self._evidence = self._new_evidence()
        # The last draft with its guesses, so that `observe` need not compute them again.
        self._grown = GrownDraft()

    def begin(self, prompt: Sequence[int]) -> None:
        self._evidence = self._new_evidence()
        self._evidence.calibration.begin_answer()
        self._evidence.read(prompt)
        if self._proposals is not None:
            self._proposals.begin(prompt)
        self._grown = GrownDraft()

    def observe(self, tokens: Sequence[int]) -> None:
        node: int | None = -1
        for token in tokens:
            guesses = self._grown.guesses_after.get(node) if node is not None else None
            if guesses is not None and self._proposals is not None:
                guesses = [guess for guess in guesses if guess.kind != PROPOSED_KIND]
            self._evidence.observe(token, guesses)
            if self._evidence.learned_is_unreliable:
                self._evidence.drop_learned(WEIGHTS)
            node = self._grown.nodes.get((node, token)) if node is not None else None
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
            return self._draft_with(proposals, most)
        self._grown = grow(
            evidence.position(),
            evidence.current_guesses(),
            evidence.after,
            evidence.guesses,
            max_nodes=most,
            min_probability=_LEAST_PROBABILITY,
            alternatives=self._alternatives,
        )
        return replace(self._grown.draft, sources=tuple(map(_source, self._grown.drafted)))

    def _draft_with(self, proposals: Proposals, most: int) -> Draft:
        """A draft in which each position also has its depth in the proposal; −1 apart from it."""
        evidence = self._evidence
        proposals.ask(evidence.current_guesses(), most)

        def after(position: tuple[DraftPosition, int], token: int) -> tuple[DraftPosition, int]:
            at, depth = position
            on_chain = 0 <= depth < len(proposals.chain) and proposals.chain[depth] == token
            return evidence.after(at, token), depth + 1 if on_chain else -1

        self._grown = grow(
            (evidence.position(), 0),
            proposals.join(evidence.current_guesses(), 0),
            after,
            lambda position: proposals.join(evidence.guesses(position[0]), position[1]),
            max_nodes=most,
            min_probability=_LEAST_PROBABILITY,
            alternatives=self._alternatives,
        )
        sources = (proposals.source if each.proposed else _source(each) for each in self._grown.drafted)
        return replace(self._grown.draft, sources=tuple(sources))

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
        """Fill level of the n-gram table, or of the suffix index if there is no table."""
        if self._memory is not None:
            return Occupancy(self._memory.used, self._memory.slots)
        return Occupancy(len(self._evidence.index), self._evidence.index.capacity_tokens)

    def _new_evidence(self) -> Evidence:
        learned = Learned(self._continuations) if self._continuations is not None else None
        weights = WEIGHTS_LEARNED if learned else WEIGHTS
        calibration = self._calibration if self._calibration is not None else Calibration()
        calibration.use_weights(weights)
        remembered = Remembered(self._memory) if self._memory is not None else None
        return Evidence(self._capacity, calibration, learned, remembered)


def _source(guess: Guess) -> DraftSource:
    """The evidence that gave a guess of `Evidence` its probability."""
    if guess.kind >= LEARNED_KIND:
        return "table"
    return "n-gram" if guess.kind else "ranking"
