"""MachineProfile: what is tried out and timed about the loaded model on this machine, each thing once.

How logits depend on a block's width, what T(w) is, how long reading takes, whether trees are exact, whether
drafts and reuse are, whether gaps are and insertions into them. Some of it is kept on disk
(`core.decoding.probes.width_cost`, `core.decoding.probes.verdict`, `core.prefill.pace`); the rest lasts as
long as the model. Nothing is tried
for trees, T(w) or the pace but by `some`, `try_out` and `costs_anew`, so no answer waits for it. Belongs to
the engine's thread.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import cast

from core.decoding.probes.exactness import Profile, machine_key, profile
from core.decoding.probes.split_probe import try_splits
from core.decoding.probes.tree_probe import try_trees
from core.decoding.probes.verdict import NOT_TRIED, Verdict, is_tried, load_verdict, save_verdict, verdict_key
from core.decoding.probes.width_cost import (
    CONTEXTS,
    CostProfile,
    LiveCost,
    load_profile,
    measure,
    save_profile,
)
from core.models.loader import LoadedModel
from core.prefill.gap_probe import why_no_gaps, why_no_insertion
from core.prefill.pace import Pace, load_pace, measure_pace, save_pace


class MachineProfile:
    """Of one loaded model."""

    def __init__(self, loaded: LoadedModel) -> None:
        self._loaded = loaded
        self._exactness: Profile | None = None
        self._costs: CostProfile | None = None
        self._measuring: Generator[None, None, CostProfile] | None = None
        self._verdict: Verdict | None = None
        self._asked_disk = False
        self._trying: Generator[None, None, Verdict] | None = None
        self._why_no_gaps: dict[int, str] = {}
        self._why_no_insertion: dict[int, str] = {}
        self._pace: Pace | None = None
        self._timed = False  # whether the pace holds more than the disk
        self._pacing: Generator[None, None, Pace] | None = None
        self._paced = False  # once is enough, even if a tiny context has no room for it

    def exactness(self) -> Profile:
        """How the logits depend on the block's width."""
        if self._exactness is None:
            loaded = self._loaded
            self._exactness = profile(loaded.model, loaded.new_cache, loaded.info)
        return self._exactness

    def costs_anew(self, contexts: Sequence[int] = CONTEXTS) -> CostProfile:
        """Measure T(w) now, again if it was measured before (some seconds)."""
        self._costs, self._measuring = None, self._measure(contexts)
        while self._measure_some():
            pass
        return cast(CostProfile, self._costs)

    def try_out(self) -> Verdict:
        """Whether trees and drafts are exact, tried now if that was never done (some seconds)."""
        while self._try_some():
            pass
        return cast(Verdict, self._verdict)

    def some(self) -> bool:
        """Some forwards more of what was not tried out or measured yet; whether there was any."""
        return self._try_some() or self._measure_some() or self._pace_some()

    def _try_some(self) -> bool:
        if self._trying is None:
            if self._held_verdict() is not None:
                return False
            self._trying = self._try()
        try:
            next(self._trying)
        except StopIteration as done:
            self._verdict, self._trying = done.value, None
            self._loaded.settle()
            save_verdict(done.value)
            return False
        return True

    def _measure_some(self) -> bool:
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

    def _pace_some(self) -> bool:
        if self._pacing is None:
            if self._paced or self._held_pace().seconds(1) is not None:
                return False
            loaded = self._loaded
            self._pacing = measure_pace(self._held_pace(), loaded.model, loaded.new_cache, loaded.info)
        try:
            next(self._pacing)
        except StopIteration as done:
            self._pace, self._pacing, self._paced = done.value, None, True
            save_pace(done.value)
        return True

    def dense_s(self, tokens: int, context_tokens: int = 0) -> float | None:
        """How long reading all of `tokens` behind so many others takes; None before it was measured."""
        return self._held_pace().seconds(tokens, context_tokens)

    def timed(self, tokens: int, context_tokens: int, seconds: float) -> None:
        """A chunk of a prompt was read, behind so many others, in so long."""
        before = self._held_pace()
        self._pace = before.read(tokens, context_tokens, seconds)
        self._timed |= self._pace is not before

    def keep_pace(self) -> None:
        """Save what was timed since, if anything was."""
        if self._timed:
            self._timed = False
            save_pace(self._held_pace())

    def cost(self, context_tokens: int) -> LiveCost:
        """T(w) at that length: what was measured, or a guess until that is done."""
        held = self._held_costs()
        return LiveCost(held.at(context_tokens)) if held and held.contexts else LiveCost()

    def why_no_trees(self) -> str:
        """Why trees are not verified, in words; empty if they are."""
        verdict = self._held_verdict()
        return NOT_TRIED if verdict is None else verdict.why_no_trees

    def why_not_split(self, tokens: int) -> str:
        """Why nothing is drafted nor reused in a context that may grow to `tokens`; empty if it is."""
        verdict = self._held_verdict()
        if verdict is None:
            return "" if is_tried(self._loaded.info) else NOT_TRIED
        return verdict.why_not_split(tokens)

    def why_no_gaps(self, tokens: int) -> str:
        """Why a prompt of that length cannot be read with gaps; tried once for each doubling of it."""
        size = tokens.bit_length()
        if size not in self._why_no_gaps:
            loaded = self._loaded
            self._why_no_gaps[size] = why_no_gaps(loaded.model, loaded.new_cache, tokens)
        return self._why_no_gaps[size]

    def why_no_insertion(self, tokens: int) -> str:
        """Why what was skipped of a prompt cannot be inserted later; tried once for each doubling of it."""
        size = tokens.bit_length()
        if size not in self._why_no_insertion:
            loaded = self._loaded
            self._why_no_insertion[size] = why_no_insertion(loaded.model, loaded.new_cache, tokens)
        return self._why_no_insertion[size]

    def _measure(self, contexts: Sequence[int] = CONTEXTS) -> Generator[None, None, CostProfile]:
        return measure(self._loaded.model, self._loaded.new_cache, self._loaded.info, contexts)

    def _try(self) -> Generator[None, None, Verdict]:
        loaded = self._loaded
        splits = yield from try_splits(loaded.model, loaded.new_cache, loaded.info.context_tokens)
        yield
        refused = yield from try_trees(loaded.model, loaded.new_cache())
        return Verdict(verdict_key(loaded.info), refused, splits)

    def _held_verdict(self) -> Verdict | None:
        """What was found for this model, now or in an earlier run, or what ships."""
        if self._verdict is None and not self._asked_disk:
            self._asked_disk, self._verdict = True, load_verdict(self._loaded.info)
        return self._verdict

    def _held_costs(self) -> CostProfile | None:
        """What was measured on this machine, now or in an earlier run."""
        if self._costs is None and self._measuring is None:
            self._costs = load_profile(self._loaded.info)
        return self._costs

    def _held_pace(self) -> Pace:
        if self._pace is None:
            self._pace = load_pace(machine_key(self._loaded.info))
        return self._pace
