"""Measured: what is tried out and timed about the loaded model on this machine, each thing once.

How logits depend on a block's width, what T(w) is, whether trees are exact, whether gaps are. Some
of it is kept on disk (`core.decoding.width_cost`); the rest lasts as long as the model. Belongs to
the engine's thread.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, cast

from core.decoding.exactness import Profile, profile
from core.decoding.tree_probe import why_no_trees
from core.decoding.width_cost import CostProfile, LiveCost, load_profile, measure, save_profile
from core.models.loader import LoadedModel
from core.prefill.trial import why_no_gaps


class Measured:
    """Of one loaded model."""

    def __init__(self, loaded: LoadedModel) -> None:
        self._loaded = loaded
        self._exactness: Profile | None = None
        self._costs: CostProfile | None = None
        self._measuring: Generator[None, None, CostProfile] | None = None
        self._why_no_trees: str | None = None
        self._why_no_gaps: dict[int, str] = {}

    def exactness(self) -> Profile:
        """How the logits depend on the block's width."""
        if self._exactness is None:
            loaded = self._loaded
            self._exactness = profile(loaded.model, loaded.new_cache, loaded.info)
        return self._exactness

    def costs_anew(self) -> CostProfile:
        """Measure T(w) now, again if it was measured before (some seconds)."""
        self._costs, self._measuring = None, self._measure()
        while self.some():
            pass
        return cast(CostProfile, self._costs)

    def some(self) -> bool:
        """One forward more of measuring T(w), unless that was done; whether there was one."""
        if self._measuring is None:
            if self._held_costs() is not None:
                return False
            self._measuring = self._measure()
        try:
            next(self._measuring)
        except StopIteration as done:
            self._costs, self._measuring = done.value, None
            save_profile(done.value)
            return False
        return True

    def cost(self, context_tokens: int) -> LiveCost:
        """T(w) at that length: what was measured, or a guess until that is done."""
        held = self._held_costs()
        return LiveCost(held.at(context_tokens)) if held and held.contexts else LiveCost()

    def why_no_trees(self, cache: Sequence[Any]) -> str:
        """Why trees are not verified on such a cache, in words; empty if they are."""
        if self._why_no_trees is None:
            held = self._held_costs()
            self._why_no_trees = held.why_no_trees if held else why_no_trees(self._loaded.model, cache)
        return self._why_no_trees

    def why_no_gaps(self, tokens: int) -> str:
        """Why a prompt of that length cannot be read with gaps; tried once for each doubling of it."""
        size = tokens.bit_length()
        if size not in self._why_no_gaps:
            loaded = self._loaded
            self._why_no_gaps[size] = why_no_gaps(loaded.model, loaded.new_cache, tokens)
        return self._why_no_gaps[size]

    def _measure(self) -> Generator[None, None, CostProfile]:
        return measure(self._loaded.model, self._loaded.new_cache, self._loaded.info)

    def _held_costs(self) -> CostProfile | None:
        """What was measured on this machine, now or in an earlier run."""
        if self._costs is None and self._measuring is None:
            self._costs = load_profile(self._loaded.info)
        return self._costs
