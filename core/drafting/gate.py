"""Gate: whether to draft at all, now. A pure state machine: steps in, a decision out.

Before the first step it scores the prompt: the share of its three-token runs that repeat an
earlier one (mlx-serve's score, which the ngram-mod article takes over). Below the threshold an answer
starts without drafts. From then on only the running yield counts: tokens written per unit of
time, the time of a plain step being one. While it is below one, drafting loses, and the gate
rests for some tokens, then looks again for a few steps; rests double while looking is in vain.

Asking a drafter that has no guess is not free: the loop cannot run one step ahead. Such a step
counts as slightly longer than a plain one, so a drafter with nothing to say ends in a rest, too.

In mode `prompt` the score decides alone, as in the seed: below the threshold an answer is never
drafted, else at every step. That holds for planned drafters, too, which else need no gate.

States: `drafting` ⇄ `resting`. Invariants: a forced gate is always open and never changes state; one
of mode `prompt` never changes state within an answer.
Knows no clock, drafter or model; `cost` says what a width costs on this machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

from core.settings.gate import Gate as GateSettings

GateState = Literal["drafting", "resting"]

# Steps before the yield is believed, and what a step counts for after the next one: the yield
# is an average over about ten steps. Chosen with the settings' defaults by replaying recorded
# answers of a small model under the cost of a CPU's and of Apple's wide blocks: two drafters won
# 1% and 14% where wide blocks are dear and lost 2% and 1% where they are cheap.
# 4 or 12 steps, longer rests (16, 32 tokens) and higher thresholds (5%) were worse.
_LOOK_STEPS = 8
_DECAY = 0.9
_MOST_DOUBLINGS = 3
# What not running ahead costs a plain step, as a share of it.
_ASKING_COST = 0.03


def default_cost(width: int) -> float:
    """Time of a block of `width` tokens over that of one, until this machine is measured.

    Between the published Apple figures (8 tokens: 2.1 … 2.7) and those of a CPU (1.5 … 1.6).
    """
    return 1.0 + 0.12 * (width - 1)


def repetition(prompt: Sequence[int]) -> float:
    """The share of the prompt's three-token runs that occurred before in it, 0 … 1. O(length)."""
    runs = len(prompt) - 2
    if runs <= 0:
        return 0.0
    return 1.0 - len(set(zip(prompt, prompt[1:], prompt[2:]))) / runs


class GateDecision(Struct, frozen=True):
    """`running_yield` is None until a step was taken since drafting was last (re)started.

    `rests` counts how often drafting was given up; `reason` is a phrase to show.
    """

    state: GateState
    forced: bool
    repetition: float
    running_yield: float | None
    rests: int
    reason: str


class Gate:
    """One request after the other. `forced`: somebody chose the drafter and wants it, come what may."""

    def __init__(
        self, settings: GateSettings, *, forced: bool = False, cost: Callable[[int], float] = default_cost
    ) -> None:
        self._settings = settings
        self._forced = forced or settings.mode == "always"
        self._once = not self._forced and settings.mode == "prompt"
        self._cost = cost
        self._state: GateState = "drafting"
        self._reason: str = ""
        self._repetition: float = 0.0
        self._rests: int = 0
        self._doublings: int = 0
        self._tokens_left: int = 0
        self._steps: int = 0
        # Discounted sums of tokens and of time in plain steps.
        self._emitted: float = 0.0
        self._spent: float = 0.0
        self.begin(())

    def begin(self, prompt: Sequence[int], *, predicted: bool = False) -> None:
        """Start a request. Forgets the previous one's yield.

        `predicted`: the answer was predicted, so it is drafted at first, whatever the prompt looks like.
        """
        self._repetition = repetition(prompt)
        self._rests = 0
        self._doublings = 0
        self._tokens_left = 0
        self._open_again()
        share = f"{self._repetition:.0%} of the prompt repeats"
        repeats = self._repetition >= self._settings.repetition
        if self._forced:
            self._reason = "drafting was asked for at every step"
        elif predicted:
            self._reason = "a prediction was given"
        elif self._once and not repeats:
            self._state = "resting"
            self._rests = 1
            self._reason = f"only {share}; this answer is not drafted"
        elif repeats:
            self._reason = share
        else:
            self._rest(f"only {share}")

    def should_draft(self) -> bool:
        """Whether the next step should ask the drafter. Changes nothing."""
        return self._state == "drafting"

    def record(self, width: int, accepted: int) -> None:
        """A step was done: a block of `width` tokens, of which `accepted` drafted ones were kept.

        Width 1 is a step without a draft. A cut last step counts like any other.
        """
        if self._state == "resting":
            if self._once:
                return
            self._tokens_left -= accepted + 1
            if self._tokens_left <= 0:
                self._open_again()
                self._reason = "looking again whether drafting pays"
            return
        self._steps += 1
        self._emitted = self._emitted * _DECAY + accepted + 1
        self._spent = self._spent * _DECAY + (self._cost(width) if width > 1 else 1.0 + _ASKING_COST)
        if self._forced or self._once or self._steps < _LOOK_STEPS:
            return
        gain = self._emitted / self._spent
        if gain < 1.0:
            self._rest(f"drafting gave {gain:.2f} times the plain speed")
        else:
            self._doublings = 0
            self._reason = f"drafting gives {gain:.2f} times the plain speed"

    @property
    def decision(self) -> GateDecision:
        """Where the gate stands and why."""
        gain = self._emitted / self._spent if self._spent else None
        return GateDecision(self._state, self._forced, self._repetition, gain, self._rests, self._reason)

    def _rest(self, reason: str) -> None:
        self._state = "resting"
        self._tokens_left = self._settings.rest_tokens << self._doublings
        self._doublings = min(self._doublings + 1, _MOST_DOUBLINGS)
        self._rests += 1
        self._reason = f"{reason}; looking again after {self._tokens_left} tokens"

    def _open_again(self) -> None:
        self._state = "drafting"
        self._steps = 0
        self._emitted = 0.0
        self._spent = 0.0
