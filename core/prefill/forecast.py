"""Forecasts of a prefill: how many tokens will be read, how long that takes, and how displays show it.

The window, the command line and the server show these words and figures and none of their own. Times rest on
timed chunks (`ReadingPace`); without them they are None. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from core.events import Passage, PrefillProgress, ReadingPace
from core.settings.prefill import DOCUMENT_TAIL_TOKENS, Prefill

# The share of the context that a text longer than it may fill; later turns need the remainder.
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
    """What becomes of `new_tokens` after `cached_tokens` others; `context_tokens` 0: no limit is known.

    Passages that are kept for their position are not counted, nor that a question may need the whole text.
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


# ---- displays
#
# An event carries a prediction, and each display counts it on by its own clock until the next event, so that
# a long step stops neither the seconds nor the bar. Words are exact to the second, so they never stand still.

# Below this many rounded seconds no number is shown, and from this many past the predicted end the excess is.
_FEW_S, _LATE_S = 3, 2
# What is left after the predicted end, as a share of what was predicted: the bar slows down, but never stops.
_LEAST_LEFT = 0.1


def of_documents(passages: Sequence[Passage]) -> Sequence[Passage]:
    """The passages of documents if there are any, else all."""
    return [passage for passage in passages if passage.source >= 0] or passages


def chosen_passages(passages: Sequence[Passage]) -> int:
    """How many passages of documents are read in this turn."""
    return sum(passage.kept and not passage.earlier for passage in of_documents(passages))


class PrefillDisplay(Struct, frozen=True):
    """What every display shows of a prefill. `left` is empty while no speed is known, `speed` until a part is
    read.
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
    """What to show at `now_s` of `time.monotonic` if `progress` is the latest event."""
    passed_s = max(0.0, now_s - progress.at_s) if progress.at_s else 0.0
    if progress.fraction >= 1.0:
        passed_s = 0.0
    left = "" if progress.seconds_left is None else time_left(progress.seconds_left - passed_s)
    fraction = fraction_after(progress.fraction, progress.time_s, progress.seconds_left, passed_s)
    speed = progress.tokens_per_s
    # As the gauges write speeds.
    figure = f"{speed:.1f}" if speed < 99.95 else f"{speed:,.0f}"
    return PrefillDisplay(_title(progress), left, fraction, figure if speed else "")


def fraction_after(fraction: float, time_s: float, left_s: float | None, passed_s: float) -> float:
    """The share of the predicted time that is over, `passed_s` after `fraction` was told at `time_s`."""
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
