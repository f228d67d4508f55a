"""Best first: a draft grown by how likely each guess is to be reached, wherever it stands.

The likeliest guess comes next, and what may follow it is looked up then. Growth ends at so many
nodes, or where nothing is left that is likely enough. So any prefix of the draft is the best tree
of its size, and how much of it to verify is the planner's question alone.

Invariants: parents before children, no equal siblings (if no place guesses a token twice); a
node's confidence is the probability of its guess, given that its parent comes. Where one
alternative is followed at each place, the draft is a chain.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Generic, Protocol, TypeVar

from core.drafting.draft import EMPTY, Draft


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
