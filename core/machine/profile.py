"""MachineProfile: trials and measurements of the loaded model on this machine.

Exact block widths (`widths`), T(w), the pace of prefill, and whether trees and splits are exact. Most results
are saved (`core.machine`); the others last as long as the model. Trees, T(w) and the pace are measured only
by `some`, `try_out` and `costs_anew`, so no answer waits for them. A measurement that failed or was
unreliable is discarded and repeated later (`Retry`). Engine's thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from typing import cast

from core.machine.compare import ExactWidths
from core.machine.exactness import machine_key
from core.machine.pace import PROBED_TOKENS, Pace, load_pace, measure_pace, save_pace
from core.machine.trials import (
    NOT_TRIED,
    Verdict,
    is_tried,
    load_verdict,
    save_verdict,
    try_splits,
    try_trees,
    verdict_key,
)
from core.machine.width_cost import (
    CONTEXTS,
    CostProfile,
    LiveCost,
    load_costs,
    measure,
    save_costs,
)
from core.models.loader import LoadedModel

MOST_TRIES = 3
_FIRST_WAIT_S = 60.0


class Retry:
    """When a measurement that failed may be made again: after 1 minute, then after 4; then not in this run.

    `clock` gives seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._tries = 0
        self._next_s: float | None = None

    @property
    def may_try(self) -> bool:
        """Whether a try is allowed now."""
        return self._tries == 0 or self.due_s == 0.0

    @property
    def due_s(self) -> float | None:
        """Seconds until the next try; None after no failure or too many."""
        return None if self._next_s is None else max(0.0, self._next_s - self._clock())

    def failed(self) -> None:
        """Records a failure."""
        self._tries += 1
        wait_s = _FIRST_WAIT_S * 4 ** (self._tries - 1)
        self._next_s = self._clock() + wait_s if self._tries < MOST_TRIES else None

    def succeeded(self) -> None:
        """Records success."""
        self._tries, self._next_s = 0, None


class MachineProfile:
    """Measurements of one loaded model. `clock` gives the seconds for `Retry`."""

    def __init__(self, loaded: LoadedModel, clock: Callable[[], float] = time.monotonic) -> None:
        self._loaded = loaded
        self.widths = ExactWidths(loaded)
        self._costs: CostProfile | None = None
        self._measuring: Generator[None, None, CostProfile] | None = None
        self._verdict: Verdict | None = None
        self._asked_disk = False
        self._trying: Generator[None, None, Verdict] | None = None
        self._pace: Pace | None = None
        self._timed = False  # whether the pace holds more than the disk
        self._pacing: Generator[None, None, Pace] | None = None
        self._costs_retry, self._pace_retry, self._trial_retry = Retry(clock), Retry(clock), Retry(clock)

    def costs_anew(self, contexts: Sequence[int] = CONTEXTS) -> CostProfile:
        """Measures T(w) now, also if there is a profile (some seconds).

        If the rounds never agree, the profile says so in `doubt` and is not kept.
        """
        for _ in range(MOST_TRIES):
            found = _finished(self._measure(contexts))
            if not found.doubt:
                self._keep_costs(found)
                break
        return found

    def try_out(self) -> Verdict:
        """The verdict on trees and drafts, tried now if there is none (some seconds)."""
        self._trial_retry.succeeded()
        while self._try_some():
            pass
        return cast(Verdict, self._verdict)

    def some(self) -> bool:
        """Runs the next piece of a measurement that is missing; returns whether there was one.

        The pace comes before the costs: without it a document that could be read whole in time is read
        sparsely, while T(w) has a usable guess.
        """
        return self._try_some() or self._pace_some() or self._measure_some() or self.widths.some()

    def due_s(self) -> float | None:
        """Seconds until a measurement that failed is made again; None if none is waiting."""
        due = (retry.due_s for retry in (self._costs_retry, self._pace_retry, self._trial_retry))
        return min((each for each in due if each is not None), default=None)

    def _try_some(self) -> bool:
        if self._trying is None:
            if self._held_verdict() is not None or not self._trial_retry.may_try:
                return False
            self._trying = self._try()
        try:
            next(self._trying)
        except StopIteration as done:
            self._verdict, self._trying = done.value, None
            self._loaded.settle()
            self._trial_retry.succeeded()
            save_verdict(done.value)
            return False
        except Exception:
            self._trying = None
            self._trial_retry.failed()
            raise
        return True

    def _measure_some(self) -> bool:
        if self._measuring is None:
            if self._held_costs() is not None or not self._costs_retry.may_try:
                return False
            self._measuring = self._measure()
        try:
            next(self._measuring)
        except StopIteration as done:
            self._measuring = None
            if done.value.doubt:
                self._costs_retry.failed()
            else:
                self._keep_costs(done.value)
            return False
        except Exception:
            self._measuring = None
            self._costs_retry.failed()
            raise
        return True

    def _keep_costs(self, found: CostProfile) -> None:
        self._costs = found
        self._costs_retry.succeeded()
        save_costs(found)

    def _pace_some(self) -> bool:
        if self._pacing is None:
            loaded, context_tokens = self._loaded, self._loaded.info.context_tokens
            if self._held_pace().chunks or context_tokens < PROBED_TOKENS or not self._pace_retry.may_try:
                return False
            self._pacing = measure_pace(self._held_pace(), loaded.model, loaded.new_cache, loaded.info)
        try:
            next(self._pacing)
        except StopIteration as done:
            self._pacing = None
            if not done.value.chunks:
                self._pace_retry.failed()
            elif not self._held_pace().chunks:  # an answer may have timed its reading meanwhile
                self._pace = done.value
                self._pace_retry.succeeded()
                save_pace(done.value)
        except Exception:
            self._pacing = None
            self._pace_retry.failed()
            raise
        return True

    def dense_s(self, tokens: int, context_tokens: int = 0) -> float | None:
        """Predicted seconds for reading `tokens` after `context_tokens`; None before it was measured."""
        return self._held_pace().seconds(tokens, context_tokens)

    def timed(self, tokens: int, context_tokens: int, seconds: float) -> None:
        """Records the time of a prompt chunk of `tokens` after `context_tokens`."""
        before = self._held_pace()
        self._pace = before.read(tokens, context_tokens, seconds)
        self._timed |= self._pace is not before

    def keep_pace(self) -> None:
        """Saves the pace if chunks were timed since it was last saved."""
        if self._timed:
            self._timed = False
            save_pace(self._held_pace())

    def cost(self, context_tokens: int) -> LiveCost:
        """T(w) at that context length; a guess until it was measured."""
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

    def _measure(self, contexts: Sequence[int] = CONTEXTS) -> Generator[None, None, CostProfile]:
        return measure(self._loaded.model, self._loaded.new_cache, self._loaded.info, contexts)

    def _try(self) -> Generator[None, None, Verdict]:
        loaded = self._loaded
        splits = yield from try_splits(loaded.model, loaded.new_cache, loaded.info.context_tokens)
        yield
        refused = yield from try_trees(loaded.model, loaded.new_cache())
        return Verdict(verdict_key(loaded.info), refused, splits)

    def _held_verdict(self) -> Verdict | None:
        """The verdict of this or an earlier run, or the one that ships; None if there is none."""
        if self._verdict is None and not self._asked_disk:
            self._asked_disk, self._verdict = True, load_verdict(self._loaded.info)
        return self._verdict

    def _held_costs(self) -> CostProfile | None:
        """The cost profile of this or an earlier run; None if there is none."""
        if self._costs is None and self._measuring is None:
            self._costs = load_costs(self._loaded.info)
        return self._costs

    def _held_pace(self) -> Pace:
        if self._pace is None:
            self._pace = load_pace(machine_key(self._loaded.info))
        return self._pace


def _finished(steps: Generator[None, None, CostProfile]) -> CostProfile:
    """The result of `steps`, run to their end."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: CostProfile = done.value
            return found
