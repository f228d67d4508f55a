"""Drafts, the base class of drafters, and best-first growth of a draft tree.

A draft is a tree of guessed tokens; a chain is a tree whose nodes have at most one child. Node i is guessed
to follow node `parents[i]`; −1 is the root, the last token of the context. Parents come before their
children, so a prefix of a draft is a draft.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from typing import NamedTuple, TypeVar

from msgspec import Struct

from core.events import DraftSource, Occupancy, TableFigures


class Draft(Struct, frozen=True):
    """`tokens` and `parents` have the same length. The empty draft guesses nothing.

    `confidence[i]` is the estimated probability that node i is accepted given that its parent was. It is
    empty if the drafter gives no estimates. `sources[i]` is the evidence of node i; empty if all came from
    the drafter's only source.
    """

    tokens: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    confidence: tuple[float, ...] = ()
    sources: tuple[DraftSource, ...] = ()

    @classmethod
    def chain(cls, tokens: Sequence[int], confidence: Sequence[float] = ()) -> Draft:
        """The chain that guesses `tokens` one after the other."""
        return cls(tuple(tokens), tuple(range(-1, len(tokens) - 1)), tuple(confidence))

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def is_chain(self) -> bool:
        """Whether every node has at most one child."""
        return self.parents == tuple(range(-1, len(self.tokens) - 1))

    def children(self, node: int) -> tuple[int, ...]:
        """Indices of the children of `node`, in draft order."""
        return tuple(i for i, parent in enumerate(self.parents) if parent == node)

    def reach_probabilities(self) -> list[float]:
        """For each node, the probability that its whole path is accepted. Requires confidences."""
        reached: list[float] = []
        for parent, confidence in zip(self.parents, self.confidence):
            likely = min(1.0, max(0.0, confidence))
            reached.append(likely * reached[parent] if parent >= 0 else likely)
        return reached

    def prefix(self, length: int) -> Draft:
        """The first `length` nodes."""
        return Draft(
            self.tokens[:length], self.parents[:length], self.confidence[:length], self.sources[:length]
        )

    def part(self, nodes: Sequence[int]) -> Draft:
        """The subtree of `nodes`, which are ascending and include the parent of each."""
        if len(nodes) == len(self):
            return self
        at = {-1: -1} | {node: index for index, node in enumerate(nodes)}
        return Draft(
            tuple(self.tokens[node] for node in nodes),
            tuple(at[self.parents[node]] for node in nodes),
            tuple(self.confidence[node] for node in nodes) if self.confidence else (),
            tuple(self.sources[node] for node in nodes) if self.sources else (),
        )


EMPTY = Draft()


def sanitise(draft: Draft, *, vocabulary: int, budget: int) -> Draft:
    """Truncates `draft` to at most `budget` nodes with ids inside the vocabulary.

    Drafts cannot affect correctness, so a malformed one is truncated instead of raising. It ends before the
    first id outside [0, vocabulary), the first parent that does not precede its child, and the first sibling
    that repeats a token (verification could follow only one of two equal siblings).
    """
    if len(draft.parents) != len(draft.tokens):
        return EMPTY
    seen: set[tuple[int, int]] = set()
    length = 0
    for index, (token, parent) in enumerate(zip(draft.tokens, draft.parents)):
        fits = index < budget and 0 <= token < vocabulary and -1 <= parent < index
        if not fits or (parent, token) in seen:
            break
        seen.add((parent, token))
        length = index + 1
    return draft if length == len(draft.tokens) else draft.prefix(length)


# A rejected guess, and the target's most likely ids after it, best first.
RejectedRow = tuple[int, Sequence[int]]


class Facts(Struct, frozen=True):
    """Facts beyond the ids of a request.

    `begun`: the prompt's last tokens that belong to the answer. `text_of`: the text of ids, as the tokenizer
    decodes them.
    """

    begun: Sequence[int] = ()
    text_of: Callable[[Sequence[int]], str] = lambda ids: ""


NO_FACTS = Facts()


class Drafter:
    """Guesses the tokens that follow a context. This base class guesses nothing and serves as `off`.

    Order of calls in a request: `begin(prompt, facts)`, then in each step `draft(budget)`, `feedback(draft,
    accepted)` and `observe(tokens)`; at last `end()`. `observe` receives every token of the answer exactly
    once, in order, and no rejected token. All ids are plain ints. No method raises, whatever the tokens.
    Worker's main thread only.
    """

    # The planner's function of (number of nodes before, is tree): the path probability that a node must
    # exceed for it, or nodes after it, to be verified. Set before `draft`; None: unknown.
    least_probability: Callable[[int, bool], float] | None = None

    def begin(self, prompt: Sequence[int], facts: Facts = NO_FACTS) -> None:
        """Starts a request with the context `prompt` and discards the previous request's own state."""

    def observe(self, tokens: Sequence[int]) -> None:
        """Appends emitted `tokens` to the context."""

    def observe_top(self, ids: Sequence[Sequence[int]], rejected: Sequence[RejectedRow] = ()) -> None:
        """Receives the target's most likely ids, best first, for drafters that recycle them.

        Row i is the ranking at the position of the i-th token of the last `observe`. `rejected` holds the
        rankings after rejected guesses.
        """

    def draft(self, budget: int) -> Draft:
        """Guesses at most `budget` tokens that follow the context; may be empty."""
        return EMPTY

    def sure(self) -> float:
        """Probability of the best guess of the next token, if it is known without much work; else 0."""
        return 0.0

    def feedback(self, draft: Draft, accepted: int) -> None:
        """Reports that a path of `accepted` nodes of the last `draft`, as verified, was accepted."""

    def end(self) -> None:
        """The answer has ended, however: what later answers learn from all of it is recorded."""

    def occupancy(self) -> Occupancy:
        """Fill level of the index or table."""
        return Occupancy()

    @property
    def proposal_cost(self) -> float:
        """Time that a model took for guesses of the last draft, in plain steps; 0 without one."""
        return 0.0

    def figures(self) -> TableFigures | None:
        """Counters of the shared table that this drafter reads; None if it reads none."""
        return None


# The kind of a guess that only a model made; the other evidence learns nothing from it.
PROPOSED_KIND = -1


class Guess(NamedTuple):
    """`token` follows with `probability`, given the guesses before it.

    `log_odds` are those of the evidence, before the correction for its `kind` (`core.drafting.calibration`)
    and before normalisation. `proposed`: the probability is a model's (`core.drafting.draft_model`).
    """

    token: int
    probability: float
    log_odds: float
    kind: int
    proposed: bool = False


S = TypeVar("S")


# A node that is in no draft.
_APART = -2


class GrownDraft:
    """A draft, and the guesses considered after each expanded node, for learning from the outcome.

    `drafted[i]` is the guess of node i; `nodes` maps (parent, token) to a node; −1 is the root.
    """

    def __init__(self) -> None:
        self.draft: Draft = EMPTY
        self.drafted: list[Guess] = []
        self.guesses_after: dict[int, list[Guess]] = {}
        self.nodes: dict[tuple[int, int], int] = {}

    def outcomes(self, tokens: Sequence[int]) -> Iterator[tuple[int, list[Guess] | None]]:
        """Each of the emitted `tokens`, and the guesses considered there; None if there are none."""
        node = -1
        for token in tokens:
            yield token, self.guesses_after.get(node)
            node = self.nodes.get((node, token), _APART)


def grow(
    position: S,
    after: Callable[[S, int], S],
    guesses_at: Callable[[S], list[Guess]],
    *,
    max_nodes: int,
    min_probability: float,
    alternatives: int | None,
    least_probability: Callable[[int, bool], float] | None = None,
) -> GrownDraft:
    """Grows a draft of at most `max_nodes` nodes from `position`, most probable node first.

    `after(position, token)` gives the next position and `guesses_at(position)` the guesses there, most
    probable first. No node has a path probability below `min_probability`; `alternatives` limits the guesses
    per position (None: no limit; 1 gives a chain). Growth ends at a node that does not exceed
    `least_probability` (`Drafter`), because the ones after it are no more probable. Every prefix of the
    result is the best tree of its size. A node's confidence is the probability of its guess given its parent.
    """
    grown = GrownDraft()
    drafted = grown.drafted
    parents: list[int] = []
    # (−path probability, sequence number, parent, guess, position of the parent)
    candidates: list[tuple[float, int, int, Guess, S]] = []
    node, reached, number, tree = -1, 1.0, 0, False
    while len(drafted) < max_nodes:
        guesses = grown.guesses_after[node] = guesses_at(position)
        for guess in guesses[:alternatives]:
            reach_probability = reached * guess.probability
            if reach_probability < min_probability:
                break
            number += 1
            heappush(candidates, (-reach_probability, number, node, guess, position))
        if not candidates:
            break
        negated, _, parent, guess, before = heappop(candidates)
        tree = tree or parent != node
        if least_probability is not None and -negated <= least_probability(len(drafted), tree):
            break
        node, reached = len(drafted), -negated
        drafted.append(guess)
        parents.append(parent)
        position = after(before, guess.token)
        grown.nodes[parent, guess.token] = node
    tokens, confidence = (guess.token for guess in drafted), (guess.probability for guess in drafted)
    grown.draft = Draft(tuple(tokens), tuple(parents), tuple(confidence))
    return grown
