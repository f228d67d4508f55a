"""The remaining time of one prefill: of scoring, of reading, and of reading by a draft model. Pure.

Each part has a predicted time, from a speed measured before (`ReadingPace`), times a correction: the measured
over the predicted seconds of its latest steps. So another program that takes half of the machine is noticed
after a second, and one slow step is soon forgotten. The correction of a part whose speed was measured holds
for the parts after it. A part without a measured speed begins with a guess, which counts for nothing once
there is a step, or takes the speed of its first step.
"""

from __future__ import annotations

from math import exp

from msgspec import Struct

from core.events import ReadingPace
from core.prefill.forecast import fraction_after

# Older steps count less: the memory is a third of the time so far, within these limits.
_LEAST_MEMORY_S, _MOST_MEMORY_S = 3.0, 15.0
# What a speed that was measured before, and a guess, weigh against steps.
_MEASURED_S, _GUESSED_S = 0.3, 0.02
# Without more chunks to tell: attention costs as much as everything else before a context of this length.
_ATTENTION_TOKENS = 4096


def slowing(token_s: float) -> ReadingPace:
    """The pace of a model that reads a token in `token_s` without a context."""
    return ReadingPace(token_s, token_s / _ATTENTION_TOKENS)


class PrefillForecast(Struct, frozen=True):
    """`seconds_left` is None while no speed is known. `fraction` never falls, and is 1 at the end."""

    seconds_left: float | None
    fraction: float
    tokens_per_s: float


class _Part:
    """`left_tokens` after `before_tokens` others. `attends`: later tokens take longer."""

    def __init__(self, pace: ReadingPace | None, *, is_measured: bool = True, attends: bool = True) -> None:
        self.pace = pace
        self.is_measured = pace is not None and is_measured
        self.left_tokens = self.before_tokens = 0.0
        self._attends = attends
        self.begin(1.0)

    def begin(self, correction: float) -> None:
        weight_s = _MEASURED_S if self.is_measured else _GUESSED_S
        self._measured_s, self._predicted_s = weight_s * correction, weight_s
        self._tokens = self._tokens_s = self._waited_s = self._spent_s = 0.0

    @property
    def correction(self) -> float:
        return self._measured_s / self._predicted_s

    @property
    def tokens_per_s(self) -> float:
        """The speed of the latest steps; 0 before the first one."""
        return self._tokens / self._tokens_s if self._tokens_s else 0.0

    def move(self, left_tokens: float, before_tokens: float, seconds: float) -> None:
        """After `seconds`, `left_tokens` after `before_tokens` are left."""
        done = self.left_tokens - left_tokens
        if done > 0:
            seconds += self._waited_s
            if self.pace is None:
                middle = (self.before_tokens + done / 2) / _ATTENTION_TOKENS
                token_s = seconds / done / (1 + middle if self._attends else 1)
                self.pace = slowing(token_s) if self._attends else ReadingPace(token_s, 0.0)
                self._measured_s = self._predicted_s = 0.0
            self._spent_s += seconds
            kept = exp(-seconds / min(_MOST_MEMORY_S, max(_LEAST_MEMORY_S, self._spent_s / 3)))
            predicted_s = self.pace.seconds(done, self.before_tokens)
            self._measured_s = max(1e-9, kept * self._measured_s + seconds)
            self._predicted_s = max(1e-9, kept * self._predicted_s + predicted_s)
            self._tokens, self._tokens_s = kept * self._tokens + done, kept * self._tokens_s + seconds
            self._waited_s = 0.0
        elif self._tokens_s:  # before the first step something else was done, as opening the encoder
            self._waited_s += seconds
        self.left_tokens, self.before_tokens = left_tokens, before_tokens

    def seconds(self, correction: float) -> float | None:
        """Predicted for the remaining part; None if the speed is unknown."""
        if not self.left_tokens:
            return 0.0
        if self.pace is None:
            return None
        return self.pace.seconds(self.left_tokens, self.before_tokens) * correction


class PrefillClock:
    """`pace`: that of the model, None if it was not measured. Times are seconds since the request.

    Announce what is to come (`expect_…`), report each step (`scored`, `read`, `read_by_draft`), and show what
    `forecast` returns.
    """

    def __init__(self, pace: ReadingPace | None = None) -> None:
        self._scoring = _Part(None)
        self._reading = _Part(pace)
        self._draft = _Part(None)
        self._active: _Part | None = None
        self._correction = 1.0  # of the parts to come
        self._moved_s = 0.0
        self._shown_s, self._shown = 0.0, PrefillForecast(None, 0.0, 0.0)

    @property
    def pace(self) -> ReadingPace | None:
        """The uncorrected pace of the model."""
        return self._reading.pace

    def guess(self, pace: ReadingPace | None) -> None:
        """The pace of the model by a short timing, if it was not measured before."""
        if self._reading.pace is None:
            self._reading = self._like(self._reading, pace, is_measured=False)

    def expect_scoring(self, pace: ReadingPace | None, *, guess: ReadingPace | None, attends: bool) -> None:
        """Passages will be scored at `pace`, None if it was not measured; then `guess` if there is one."""
        self._scoring = _Part(pace or guess, is_measured=pace is not None, attends=attends)
        self._active = None

    def expect_reading(self, tokens: float, before_tokens: float) -> None:
        """The model will read `tokens` after `before_tokens`."""
        self._reading.left_tokens, self._reading.before_tokens = tokens, before_tokens

    def expect_draft(self, tokens: float, pace: ReadingPace | None, size: float) -> None:
        """A draft model, whose parameters are the share `size` of the model's, will read `tokens`."""
        model = self._reading.pace
        if is_guessed := pace is None and model is not None:
            pace = ReadingPace(model.token_s * size, model.attention_s * size)
        self._draft = _Part(pace, is_measured=not is_guessed)
        self._draft.left_tokens = tokens

    def scored(self, left_tokens: float, before_tokens: float, now_s: float) -> None:
        """So many tokens are still to be scored, after others that the scorer has read."""
        self._report(self._scoring, left_tokens, before_tokens, now_s)

    def read(self, left_tokens: float, before_tokens: float, now_s: float) -> None:
        """The model has `left_tokens` still to read, after `before_tokens` in its cache."""
        self._scoring.left_tokens = 0.0
        self._report(self._reading, left_tokens, before_tokens, now_s)

    def read_by_draft(self, left_tokens: float, before_tokens: float, now_s: float) -> None:
        """The draft model has `left_tokens` still to read."""
        self._scoring.left_tokens = self._reading.left_tokens = 0.0
        self._report(self._draft, left_tokens, before_tokens, now_s)

    def forecast(self, now_s: float) -> PrefillForecast:
        """What to show now; the fraction takes in what displays counted on since the last call."""
        left_s = self._left_s()
        shown, passed_s = self._shown, now_s - self._shown_s
        fraction = fraction_after(shown.fraction, self._shown_s, shown.seconds_left, passed_s)
        if left_s:
            fraction = max(fraction, now_s / (now_s + left_s))
        is_reading = self._active in (self._reading, self._draft)
        if left_s == 0.0 and is_reading:
            fraction = 1.0
        speed = (self._active.tokens_per_s or shown.tokens_per_s) if self._active and is_reading else 0.0
        self._shown_s, self._shown = now_s, PrefillForecast(left_s, fraction, speed)
        return self._shown

    def _report(self, part: _Part, left_tokens: float, before_tokens: float, now_s: float) -> None:
        if part is self._active and left_tokens <= part.left_tokens:
            part.move(left_tokens, before_tokens, now_s - self._moved_s)
        else:  # its first report
            part.begin(self._correction if part.is_measured else 1.0)
            part.left_tokens, part.before_tokens = left_tokens, before_tokens
        if part.is_measured:
            self._correction = part.correction
        self._active, self._moved_s = part, now_s

    def _left_s(self) -> float | None:
        total_s = 0.0
        for part in (self._scoring, self._reading, self._draft):
            seconds = part.seconds(part.correction if part is self._active else self._correction)
            if seconds is None:
                return None
            total_s += seconds
        return total_s

    @staticmethod
    def _like(part: _Part, pace: ReadingPace | None, *, is_measured: bool) -> _Part:
        found = _Part(pace, is_measured=is_measured)
        found.left_tokens, found.before_tokens = part.left_tokens, part.before_tokens
        return found
