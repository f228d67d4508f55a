"""Forecasts of a prefill: how many tokens will be read, how long that takes, how far it is.

The window, the command line and the server show these figures and none of their own. Times rest on timed
chunks (`ReadingPace`); without them they are None. Pure.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from core.events import ReadingPace
from core.settings.prefill import DOCUMENT_TAIL_TOKENS, Prefill

Seconds = Callable[[int, int], float | None]

# The share of the context that a text longer than it may fill; later turns need the remainder.
_FILLS = 0.75
# The part of the progress bar for scoring, which takes a tenth of a sparse prefill or less.
_SCORING = 0.1


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


class PrefillClock:
    """Progress and remaining time of one prefill, over scoring, reading, and reading by a draft model.

    `seconds(tokens, context_tokens)` predicts a dense prefill by the model; None if unknown.
    """

    def __init__(self, seconds: Seconds) -> None:
        self._seconds = self._draft_seconds = seconds
        self._draft_tokens = 0
        self._base = 0.0
        self._unread_tokens = 0
        self.fraction = 0.0  # 0 to 1; never falls

    def expect_draft(self, tokens: int, seconds: Seconds) -> None:
        """A draft model reads `tokens` after the model, at its own pace."""
        self._draft_tokens, self._draft_seconds = tokens, seconds

    def scored(self, done_tokens: int, total_tokens: int) -> None:
        """Scoring has no remaining time: what it finds decides how much is read."""
        self._base = _SCORING
        self._rise(_SCORING * done_tokens / max(1, total_tokens))

    def read(self, done_tokens: int, total_tokens: int, reused_tokens: int) -> float | None:
        """The cache holds `done_tokens` of `total_tokens`, of which `reused_tokens` were there before.

        Returns the remaining seconds.
        """
        self._unread_tokens = total_tokens - reused_tokens
        self._rise_by_tokens(done_tokens - reused_tokens)
        left_tokens = total_tokens - done_tokens
        left_s = self._seconds(left_tokens, done_tokens) if left_tokens else 0.0
        draft_s = self._draft_seconds(self._draft_tokens, 0) if self._draft_tokens else 0.0
        return None if left_s is None or draft_s is None else left_s + draft_s

    def read_by_draft(self, done_tokens: int) -> float | None:
        """The draft model's cache holds `done_tokens` of the prompt. Returns the remaining seconds."""
        self._rise_by_tokens(self._unread_tokens + done_tokens)
        left_tokens = self._draft_tokens - done_tokens
        return self._draft_seconds(left_tokens, done_tokens) if left_tokens else 0.0

    def _rise_by_tokens(self, done_tokens: int) -> None:
        all_tokens = self._unread_tokens + self._draft_tokens
        done = done_tokens / all_tokens if all_tokens else 1.0
        self._rise(self._base + (1 - self._base) * done)

    def _rise(self, fraction: float) -> None:
        self.fraction = max(self.fraction, min(1.0, fraction))
