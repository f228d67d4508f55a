"""Forecasts of a prefill: the number of tokens to read, the time it takes, and how displays show both.

The window, the command line and the server all show these words and figures. Times are predicted from
timed chunks (`ReadingPace`); without them they are None. `PrefillClock` corrects them while a prefill runs.
Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

from msgspec import Struct

from core.events import Passage, PrefillProgress, ReadingPace
from core.settings.prefill import DOCUMENT_TAIL_TOKENS, Prefill

# The share of the context that a longer text may fill; later turns need the remainder.
_FILLS = 0.75


def most_held_tokens(context_tokens: int, max_tokens: int) -> int:
    """How many tokens of a prompt longer than the context the cache may hold, so that an answer fits."""
    return context_tokens - min(max_tokens, context_tokens // 4)


def most_read_tokens(held_tokens: int) -> int:
    """How many of `most_held_tokens` are read of a prompt longer than the context."""
    return int(_FILLS * held_tokens)


class ReadingForecast(Struct, frozen=True):
    """`read_tokens` of `new_tokens` will be read in `read_s`; reading all of them takes `dense_s`.

    Times are None if unknown; `dense_s` also where the context cannot hold all of it (not `all_fits`).
    """

    new_tokens: int
    read_tokens: int
    read_s: float | None = None
    dense_s: float | None = None
    all_fits: bool = True

    @property
    def reads_some(self) -> bool:
        """False for a message that will be refused, as the context cannot hold it and all must be read."""
        return self.read_tokens > 0


def forecast(
    new_tokens: int,
    cached_tokens: int,
    context_tokens: int,
    prefill: Prefill,
    *,
    max_tokens: int,
    pace: ReadingPace | None = None,
) -> ReadingForecast:
    """Forecast the prefill of `new_tokens` after `cached_tokens` others; `context_tokens` 0: no known limit.

    Ignores passages that are kept for their position, and that a question may need the whole text.
    """

    def seconds(tokens: int) -> float | None:
        return pace.seconds(tokens, cached_tokens) if pace and tokens else None

    kept_tokens = min(new_tokens, round(new_tokens * prefill.keep_pct / 100) + DOCUMENT_TAIL_TOKENS)
    if context_tokens and cached_tokens + new_tokens >= context_tokens:
        most_tokens = most_held_tokens(context_tokens, max_tokens)
        if not prefill.reads_beyond:
            return ReadingForecast(new_tokens, 0, all_fits=False)
        if cached_tokens + kept_tokens > most_tokens:
            kept_tokens = min(kept_tokens, most_read_tokens(most_tokens))
        return ReadingForecast(new_tokens, kept_tokens, seconds(kept_tokens), all_fits=False)
    dense_s = seconds(new_tokens)
    is_auto = prefill.mode == "auto" and not prefill.is_quick(new_tokens, dense_s)
    if prefill.mode == "on" or is_auto:
        return ReadingForecast(new_tokens, kept_tokens, seconds(kept_tokens), dense_s)
    return ReadingForecast(new_tokens, new_tokens, dense_s, dense_s)


# ---- the remaining time of a running prefill
#
# Scoring, reading and reading by a draft model are parts with a predicted time each, from a speed measured
# before (`ReadingPace`), times a correction: the measured over the predicted seconds of its latest steps. So
# another program that takes half of the machine is noticed after a second, and one slow step is soon
# forgotten. The correction of a part whose speed was measured holds for the parts after it. A part without a
# measured speed begins with a guess, which counts for nothing once there is a step, or takes the speed of its
# first step.

# Older steps count less: the memory is a third of the time that has passed, within these limits.
_LEAST_MEMORY_S, _MOST_MEMORY_S = 3.0, 15.0
# Weights of a previously measured speed and of a guess, in seconds of steps.
_MEASURED_S, _GUESSED_S = 0.3, 0.02
# Assumed if too few chunks were timed: with this many tokens before, attention costs as much as all else.
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
        elif self._tokens_s:  # time before the first step is other work, such as opening the encoder
            self._waited_s += seconds
        self.left_tokens, self.before_tokens = left_tokens, before_tokens

    def seconds(self, correction: float) -> float | None:
        """Predicted seconds of the remaining part; None if the speed is unknown."""
        if not self.left_tokens:
            return 0.0
        if self.pace is None:
            return None
        return self.pace.seconds(self.left_tokens, self.before_tokens) * correction


class PrefillClock:
    """`pace`: that of the model, None if it was not measured. Times are seconds since the request.

    Announce the parts (`expect_…`), report each step (`scored`, `read`, `read_by_draft`), and show what
    `forecast` returns.
    """

    def __init__(self, pace: ReadingPace | None = None) -> None:
        self._scoring = _Part(None)
        self._reading = _Part(pace)
        self._draft = _Part(None)
        self._active: _Part | None = None
        self._correction = 1.0  # for the following parts
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
        """`left_tokens` are still to be scored, after `before_tokens` that the scorer has read."""
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
        """The forecast to show now. Its fraction is at least the one that displays extrapolated since."""
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


# ---- displays
#
# An event carries a prediction, and each display extrapolates it by its own clock until the next event, so
# that a long step stops neither the seconds nor the bar. Words are exact to the second.

# No number is shown below this many rounded seconds, and the excess from this many past the predicted end.
_FEW_S, _LATE_S = 3, 2
# Remaining time after the predicted end, as a share of the prediction: the bar slows down, but never stops.
_LEAST_LEFT = 0.1


def of_documents(passages: Sequence[Passage]) -> Sequence[Passage]:
    """The passages of documents if there are any, else all."""
    return [passage for passage in passages if passage.source >= 0] or passages


def chosen_passages(passages: Sequence[Passage]) -> int:
    """How many passages of documents are read in this turn."""
    return sum(passage.kept and not passage.earlier for passage in of_documents(passages))


class PrefillDisplay(Struct, frozen=True):
    """Text and bar of a prefill in every display. `left` is empty while no speed is known, `speed` until a
    part is read.
    """

    title: str
    left: str
    fraction: float
    speed: str

    @property
    def percent(self) -> str:
        """Never 100% before the end."""
        return f"{int(100 * self.fraction)}%"

    @property
    def words(self) -> str:
        """Title and remaining time in one line."""
        if not self.left:
            return self.title
        return f"{self.title}{'' if self.title.endswith('…') else ','} {self.left}"


def display(progress: PrefillProgress, now_s: float) -> PrefillDisplay:
    """The display at `now_s` of `time.monotonic` if `progress` is the latest event."""
    passed_s = max(0.0, now_s - progress.at_s) if progress.at_s else 0.0
    if progress.fraction >= 1.0:
        passed_s = 0.0
    left = "" if progress.seconds_left is None else time_left(progress.seconds_left - passed_s)
    fraction = fraction_after(progress.fraction, progress.time_s, progress.seconds_left, passed_s)
    speed = progress.tokens_per_s
    # Same format as the speeds of the gauges.
    figure = f"{speed:.1f}" if speed < 99.95 else f"{speed:,.0f}"
    return PrefillDisplay(_title(progress), left, fraction, figure if speed else "")


def fraction_after(fraction: float, time_s: float, left_s: float | None, passed_s: float) -> float:
    """Share of the predicted time that has passed, `passed_s` after an event at `time_s` with `fraction`."""
    if not left_s:
        return fraction
    over_s = time_s + passed_s
    return max(fraction, over_s / (over_s + max(left_s - passed_s, _LEAST_LEFT * left_s)))


def _title(progress: PrefillProgress) -> str:
    if progress.phase == "scoring":
        return "Choosing passages…"
    if progress.passages and progress.kept_tokens:
        return f"Reading {progress.passages:,} {'passage' if progress.passages == 1 else 'passages'}"
    return f"Reading {progress.total_tokens - progress.reused_tokens:,} tokens"


def time_left(seconds: float) -> str:
    """The remaining time in words; negative seconds are past the predicted end."""
    whole = round(seconds)
    if whole <= -_LATE_S:
        return f"{_exact(-whole)} longer than expected"
    return f"{_exact(whole)} left" if whole >= _FEW_S else "a few seconds left"


def duration(seconds: float) -> str:
    """A rounded duration: `8 s`, `1 min 52 s`, `2 h 5 min`."""
    whole = max(1, round(seconds))
    return f"{whole // 3600} h {whole % 3600 // 60} min" if whole >= 3600 else _exact(whole)


def _exact(whole_s: int) -> str:
    """To the second, because an unchanged text looks stuck."""
    hours, minutes, seconds = whole_s // 3600, whole_s % 3600 // 60, whole_s % 60
    parts = [f"{hours} h"] * (hours > 0) + [f"{minutes} min"] * (whole_s >= 60)
    return " ".join([*parts, f"{seconds} s"])
