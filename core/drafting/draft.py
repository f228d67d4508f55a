"""Draft: a tree of guessed tokens. A chain is the tree whose nodes have one child.

Node i is guessed to follow node `parents[i]`; −1 is the root, the last token of the context.
Parents come before their children, so a prefix of a draft is a draft.
"""

from __future__ import annotations

from msgspec import Struct


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
