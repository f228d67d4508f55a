"""Draft: a tree of guessed tokens. A chain is the tree whose nodes have one child.

Node i is guessed to follow node `parents[i]`; −1 is the root, the last token of the context.
Parents come before their children, so a prefix of a draft is a draft.

Drafter: the protocol of whoever guesses ahead. Token ids in, a draft out. No mlx.

One request's life: `begin(prompt)`, then per step `draft(budget)`, `feedback(draft, accepted)`
and `observe(tokens)` with what was emitted. `observe` gets every token of the answer exactly
once, in order, and nothing that was rejected. Called on the worker's main thread only.

off: never guesses. The plain loop runs as fast as mlx-lm's own.

Best first: a draft grown by how likely each guess is to be reached, wherever it stands.

The likeliest guess comes next, and what may follow it is looked up then. Growth ends at so many
nodes, or where nothing is left that is likely enough. So any prefix of the draft is the best tree
of its size, and how much of it to verify is the planner's question alone.

Invariants: parents before children, no equal siblings (if no place guesses a token twice); a
node's confidence is the probability of its guess, given that its parent comes. Where one
alternative is followed at each place, the draft is a chain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from core.events import Occupancy, TableFigures


class Draft(Struct, frozen=True):
    """`tokens`, `parents` and `confidence` have the same length; the empty draft guesses nothing.

    `confidence[i]` is the estimated probability that node i is accepted given that its parent
    was, or is empty if the drafter has no opinion.
    """

    tokens: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    confidence: tuple[float, ...] = ()

    @classmethod
    def chain(cls, tokens: tuple[int, ...] | list[int]) -> Draft:
        """The chain that guesses `tokens` one after the other."""
        return cls(tuple(tokens), tuple(range(-1, len(tokens) - 1)))

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def is_chain(self) -> bool:
        """Whether every node has at most one child."""
        return self.parents == tuple(range(-1, len(self.tokens) - 1))

    def children(self, node: int) -> tuple[int, ...]:
        """Indices of the nodes guessed to follow `node`, in draft order."""
        return tuple(i for i, parent in enumerate(self.parents) if parent == node)

    def depth(self, node: int) -> int:
        """1 for a child of the root."""
        depth = 0
        while node >= 0:
            node, depth = self.parents[node], depth + 1
        return depth

    def prefix(self, length: int) -> Draft:
        """The first `length` nodes."""
        return Draft(self.tokens[:length], self.parents[:length], self.confidence[:length])


EMPTY = Draft()


def sanitise(draft: Draft, *, vocabulary: int, budget: int) -> Draft:
    """`draft` made safe to verify: at most `budget` nodes, all ids inside the vocabulary.

    A draft never costs correctness, so a malformed one is cut, not an error: it ends before the
    first id outside [0, vocabulary), the first parent that does not come before its child, and
    the first sibling that repeats a token (only one of two equal siblings could be walked to).
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


# A guess that was verified and did not come, and the verifier's likeliest ids after it, best first.
RejectedRow = tuple[int, Sequence[int]]


class Drafter(Protocol):
    """All ids are plain ints. Nothing may raise on any token sequence."""

    def begin(self, prompt: Sequence[int]) -> None:
        """Start a request whose context is `prompt`. Forgets the previous request's own state."""

    def observe(self, tokens: Sequence[int]) -> None:
        """These tokens were emitted; the context now ends with them."""

    def observe_top(self, ids: Sequence[Sequence[int]], rejected: Sequence[RejectedRow] = ()) -> None:
        """The verifier's likeliest ids, best first, for recyclers.

        Row i was ranked at the place of the i-th of the tokens that were just observed. `rejected`:
        what was ranked behind guesses that were verified and did not come.
        """

    def draft(self, budget: int) -> Draft:
        """Guess what follows the context, with at most `budget` tokens; may be empty."""

    def feedback(self, draft: Draft, accepted: int) -> None:
        """Of the last `draft`, as it was verified, a path of `accepted` nodes was accepted."""

    def occupancy(self) -> Occupancy:
        """How full the index or table is."""

    def figures(self) -> TableFigures | None:
        """The counters of the shared table that it asks; None if it asks none."""
        return None


class OffDrafter(Drafter):
    """The drafter that drafts nothing."""

    def begin(self, prompt: Sequence[int]) -> None:
        """Nothing to start."""

    def observe(self, tokens: Sequence[int]) -> None:
        """Nothing to learn."""

    def observe_top(self, ids: Sequence[Sequence[int]], rejected: Sequence[RejectedRow] = ()) -> None:
        """Nothing to learn."""

    def draft(self, budget: int) -> Draft:
        return EMPTY

    def feedback(self, draft: Draft, accepted: int) -> None:
        """Nothing to learn."""

    def occupancy(self) -> Occupancy:
        return Occupancy()


class Likely(Protocol):
    """A guess: `token` comes with `probability`, given that the guesses before it come."""

    @property
    def token(self) -> int: ...
    @property
    def probability(self) -> float: ...


S = TypeVar("S")
G = TypeVar("G", bound=Likely)


class Grown(Generic[G]):
    """A draft, and the guesses behind each of its nodes that was looked at: so what comes is learned from.

    −1 is the root; the guesses there are whoever drafts' to keep.
    """

    def __init__(self) -> None:
        self.draft: Draft = EMPTY
        self.looked: dict[int, list[G]] = {}
        self.nodes: dict[tuple[int, int], int] = {}


def grow(
    position: S,
    guesses: list[G],
    after: Callable[[S, int], S],
    look: Callable[[S], list[G]],
    *,
    most: int,
    least: float,
    alternatives: int | None,
) -> Grown[G]:
    """A draft of at most `most` nodes from `position`, where `guesses` are the likeliest first.

    `after` gives the position behind a token, `look` the guesses there, likeliest first. No node is less
    likely than `least` to be reached; `alternatives` bounds the guesses at one place (None: all).
    """
    grown: Grown[G] = Grown()
    if most < 1:
        return grown
    tokens: list[int] = []
    parents: list[int] = []
    confidence: list[float] = []
    # (−probability of being reached, running number, parent, the guess, the parent's position)
    waiting: list[tuple[float, int, int, G, S]] = []
    node, reached, number = -1, 1.0, 0
    while True:
        for guess in guesses[:alternatives]:
            likely = reached * guess.probability
            if likely < least:
                break
            number += 1
            heappush(waiting, (-likely, number, node, guess, position))
        if not waiting:
            break
        negative, _, parent, guess, before = heappop(waiting)
        node, reached = len(tokens), -negative
        tokens.append(guess.token)
        parents.append(parent)
        confidence.append(guess.probability)
        position = after(before, guess.token)
        grown.nodes[parent, guess.token] = node
        if len(tokens) == most:
            break
        guesses = grown.looked[node] = look(position)
    grown.draft = Draft(tuple(tokens), tuple(parents), tuple(confidence))
    return grown
