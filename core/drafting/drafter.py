"""Drafter: the protocol of whoever guesses ahead. Token ids in, a draft out. No mlx.

One request's life: `begin(prompt)`, then per step `draft(budget)`, `feedback(draft, accepted)`
and `observe(tokens)` with what was emitted. `observe` gets every token of the answer exactly
once, in order, and nothing that was rejected. Called on the worker's main thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from core.drafting.draft import Draft
from core.events import Occupancy, TableFigures

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
