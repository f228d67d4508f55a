"""Gates: whether to draft at the next step. Pure state machines, without a clock.

`Gate` serves drafters without probabilities, whose drafts are verified whole.

Before the first step it scores the prompt: the share of its trigrams that repeat an earlier one (mlx-serve's
score, also used by the ngram-mod article). Below the threshold an answer starts without drafts. After that
only the running yield counts: tokens emitted per unit of time, where a plain step takes one unit. While the
yield is below one, drafting costs time: the gate rests for some tokens, then drafts again for a few trial
steps. Each unsuccessful trial doubles the rest.

Calling a drafter that has no guess costs time, too, because the loop cannot run one step ahead. Such a step
counts as slightly longer than a plain one, so a drafter without guesses also leads to a rest.

`PricedGate` serves a planner's drafter whose costs are those of whole steps: drafting, building, the pass,
and that the loop does not run ahead, in plain steps that do run ahead. Then the planner's own estimate says
what asking the drafter brings, without waiting for outcomes. The gate averages it by the probability of the
drafter's best guess of the next token, which is known without asking, and decides at each step.

Both have the states `drafting` ⇄ `resting`. Invariant: with the mode `always` they are open.
`cost(width)` gives the machine's cost of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from core.settings.drafting import Gate as GateSettings

GateState = Literal["drafting", "resting"]

# Steps before the yield is used, and the weight of a step relative to the next one: the yield averages about
# ten steps. Chosen together with the settings' defaults by replaying recorded answers of a small model at the
# block costs of a CPU and of Apple silicon: two drafters gained 1% and 14% where wide blocks are expensive
# and lost 2% and 1% where they are cheap. 4 or 12 steps, longer rests (16, 32 tokens) and higher thresholds
# (5%) were worse.
_TRIAL_STEPS = 8
_DECAY = 0.9
_MAX_DOUBLINGS = 3
_LEAST_REPETITION = 0.02
_REST_TOKENS = 8
# Cost of not running ahead, as a share of a plain step.
_LOOKUP_COST = 0.03
# Constants of `PricedGate`, chosen by replaying a small model's recorded answers with block costs of a CPU
# and of Apple silicon (`python -m tests.tuning replay --overhead X`). The worth of asking is averaged
# over about ten steps of each class of probability, begins slightly above zero, and rises while a class is
# not asked, so it is tried again after some dozen tokens. Where a step takes 0, 0.04, 0.3, 1 plain steps
# longer than its block, speeds are 1.615 and 1.568, 1.573 and 1.513, 1.439 and 1.338, 1.261 and 1.163.
# Without classes the last two were 1.341 and 1.272, 1.126 and 1.082; with outcomes in place of estimates
# the first was 1.555 and 1.535.
_CLASSES = (0.2, 0.4, 0.6, 0.8)
_FIRST_WORTH = 0.1
_FIRST_WORTH_STEPS = 4.0
_WORTH_PER_SKIPPED = 0.02
# Asked steps after which plain ones are timed, if none was: without them the cost of asking is not known. At
# most this many, because a loop that cannot run ahead never times one.
_UNTIMED_STEPS = 12
_TIMING_STEPS = 8


def default_cost(width: int) -> float:
    """Time of a block of `width` tokens in plain steps, until this machine is measured.

    Between the published Apple figures (8 tokens: 2.1 to 2.7) and those of a CPU (1.5 to 1.6).
    """
    return 1.0 + 0.12 * (width - 1)


def repetition(prompt: Sequence[int]) -> float:
    """The share of the prompt's trigrams that occurred earlier in it, 0 to 1. O(length)."""
    runs = len(prompt) - 2
    if runs <= 0:
        return 0.0
    return 1.0 - len(set(zip(prompt, prompt[1:], prompt[2:]))) / runs


class Backoff:
    """A rest of `tokens` after a failure, twice as long after each further one, at most `doublings` times."""

    def __init__(self, tokens: int, doublings: int) -> None:
        self._tokens = tokens
        self._most = doublings
        self._doublings = 0
        self.left_tokens = 0  # of the current rest

    def failed(self) -> None:
        self.left_tokens = self._tokens << self._doublings
        self._doublings = min(self._doublings + 1, self._most)

    def worked(self) -> None:
        self._doublings = 0

    def passed(self, tokens: int) -> None:
        """The answer has `tokens` more."""
        self.left_tokens = max(0, self.left_tokens - tokens)


class Gate:
    """Serves one request after the other. `reason`: why it is in its state, a phrase to display."""

    def __init__(self, settings: GateSettings, cost: Callable[[int], float] = default_cost) -> None:
        self._always = settings.mode == "always"
        self._cost = cost
        # Discounted sums of tokens and of time in plain steps.
        self._emitted = self._spent = 0.0
        self.begin(())

    def begin(self, prompt: Sequence[int], *, predicted: bool = False) -> None:
        """Starts a request and discards the previous one's yield.

        `predicted`: the request includes a predicted answer, so drafting starts whatever the prompt's score.
        """
        self._backoff = Backoff(_REST_TOKENS, _MAX_DOUBLINGS)
        self._reopen()
        if self._always:
            self.reason = "drafting at every step was requested"
        elif predicted:
            self.reason = "a prediction was given"
        elif (score := repetition(prompt)) >= _LEAST_REPETITION:
            self.reason = f"{score:.0%} of the prompt repeats"
        else:
            self._rest(f"only {score:.0%} of the prompt repeats")

    @property
    def state(self) -> GateState:
        return "resting" if self._backoff.left_tokens else "drafting"

    def should_draft(self) -> bool:
        """Whether the next step should call the drafter."""
        return not self._backoff.left_tokens

    def record(self, width: int, accepted: int) -> None:
        """Records a step over a block of `width` tokens of which `accepted` drafted ones were accepted.

        A step without a draft has width 1. A truncated last step counts like any other.
        """
        if not self.should_draft():
            self._backoff.passed(accepted + 1)
            if self.should_draft():
                self._reopen()
                self.reason = "testing again whether drafting pays"
            return
        self._steps += 1
        self._emitted = self._emitted * _DECAY + accepted + 1
        self._spent = self._spent * _DECAY + (self._cost(width) if width > 1 else 1.0 + _LOOKUP_COST)
        if self._always or self._steps < _TRIAL_STEPS:
            return
        gain = self._emitted / self._spent
        if gain < 1.0:
            self._rest(f"drafting gave {gain:.2f} times the plain speed")
        else:
            self._backoff.worked()
            self.reason = f"drafting gives {gain:.2f} times the plain speed"

    def _rest(self, reason: str) -> None:
        self._backoff.failed()
        self.reason = f"{reason}; testing again after {self._backoff.left_tokens} tokens"

    def _reopen(self) -> None:
        self._steps = 0
        self._emitted = self._spent = 0.0


class PricedGate:
    """Serves one request after the other. `state` is that of most of the answer's steps, and `reason`
    why, a phrase to display.

    `is_priced()`: whether the cost of asking is known. While it is not, plain steps are made after some asked
    ones.
    """

    def __init__(self, settings: GateSettings, is_priced: Callable[[], bool] = lambda: True) -> None:
        self._always = settings.mode == "always"
        self._is_priced = is_priced
        self.begin(())

    def begin(self, prompt: Sequence[int], *, predicted: bool = False) -> None:
        """Starts a request and discards the estimates of the previous one."""
        count = len(_CLASSES) + 1
        # Discounted sums of worth, by class of the next token.
        self._worth = [_FIRST_WORTH * _FIRST_WORTH_STEPS] * count
        self._class: int | None = None
        self._open, self._asked, self._rested, self._timing_left = True, 0, 0, _TIMING_STEPS

    @property
    def state(self) -> GateState:
        return "resting" if self._rested > self._asked else "drafting"

    @property
    def reason(self) -> str:
        if self._always:
            return "drafting at every step was requested"
        rests = self.state == "resting"
        return "drafts cost more than they bring" if rests else "drafts are as long as pays"

    def should_draft(self) -> bool:
        """Whether the next step should call the drafter."""
        return self._open or self._always

    @property
    def decides(self) -> bool:
        """Whether it needs records: not if it is always open."""
        return not self._always

    def record(self, worth: float | None, sure: float) -> None:
        """Records a step that asked the drafter, with its expected `worth`, or did not (None).

        `worth`: tokens that it was expected to emit more than plain steps in the same time. `sure`: the
        probability of the drafter's best guess of the next token.
        """
        if worth is not None:
            self._asked += 1
            if self._class is not None:
                self._worth[self._class] = self._worth[self._class] * _DECAY + worth
        else:
            self._rested += 1
            if self._class is not None and not self._open:
                self._worth[self._class] += _WORTH_PER_SKIPPED
        self._class = sum(sure >= least for least in _CLASSES)
        if worth is None and self._open:
            return  # it opened, but a pass was running ahead: the next step is the first that can ask
        untimed = self._asked >= _UNTIMED_STEPS and self._timing_left > 0 and not self._is_priced()
        self._timing_left -= untimed
        self._open = self._worth[self._class] >= 0.0 and not untimed
