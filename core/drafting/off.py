"""off: never guesses. The plain loop runs as fast as mlx-lm's own."""

from __future__ import annotations

from collections.abc import Sequence

from core.drafting.draft import EMPTY, Draft
from core.drafting.drafter import Drafter, RejectedRow
from core.events import Occupancy


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
