"""ReadingFacts: the texts and figures of the reading card, from prefill progress and reading map. No Qt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from app.chat import strings
from app.chat.reading_map import chosen_passages
from core.events import Passage, PrefillProgress, ReadingMap, Stats
from core.settings.declaration import find

# A shorter prefill shows no card.
_SHOWN_FROM_TOKENS = 256
_SHOWN_FROM_S = 2.0
# The time of a dense prefill is not estimated from fewer tokens, or from a smaller fraction of the prompt.
_COMPARABLE_TOKENS = 256
_COMPARABLE_FRACTION = 0.05
# A longer estimate is wrong and not shown.
_MAX_S = 1e9

PhaseState = Literal["done", "active", "ahead"]


class ReadingPhase(Struct, frozen=True):
    """One of the phases Scored, Chosen and Reading."""

    title: str
    note: str
    state: PhaseState


class ReadingFacts(Struct, frozen=True):
    """The card's texts. `fraction` is the progress bar's; `phases` is empty for a dense prefill."""

    title: str
    left: str
    done: str
    fraction: float
    phases: tuple[ReadingPhase, ...] = ()


def is_worth_showing(progress: PrefillProgress) -> bool:
    """Whether the prefill is long enough for the card."""
    is_short = progress.total_tokens - progress.reused_tokens < _SHOWN_FROM_TOKENS
    return not is_short or (progress.seconds_left or 0.0) >= _SHOWN_FROM_S


def to_read(progress: PrefillProgress) -> int:
    """Tokens to read. Kept tokens include the prompt's last token, which is read at the end."""
    return progress.kept_tokens or progress.total_tokens - progress.reused_tokens


def read_so_far(progress: PrefillProgress) -> int:
    """Tokens read so far, without the reused ones, which `done_tokens` includes."""
    unread = progress.total_tokens - progress.reused_tokens
    return max(0, min(unread, progress.done_tokens - progress.reused_tokens))


def time_left(seconds: float | None) -> str:
    """The remaining time as a text; empty if unknown."""
    return "" if seconds is None else strings.LEFT.format(time=duration(seconds))


def duration(seconds: float) -> str:
    """A rounded duration: `8 s`, `1 min 52 s`, `2 h 5 min`."""
    whole = max(1, round(seconds))
    if whole < 60:
        return strings.DURATION_S.format(seconds=whole)
    if whole < 3600:
        return strings.DURATION_MIN.format(minutes=whole // 60, seconds=whole % 60)
    return strings.DURATION_H.format(hours=whole // 3600, minutes=whole % 3600 // 60)


def skipped_positions(stats: Stats) -> int:
    """Skipped tokens that have positions in an answer's context; 0 if the kept ones are contiguous."""
    return stats.skipped_tokens if stats.context_used_tokens >= stats.prompt_tokens else 0


def prompt_fits(stats: Stats) -> bool:
    """Whether an answer's whole prompt fits into the context."""
    return not stats.context_tokens or stats.prompt_tokens < stats.context_tokens


def reading_rate(progress: PrefillProgress) -> float | None:
    """Tokens per second, from the remaining tokens and time; None while unknown."""
    unread = progress.total_tokens - progress.reused_tokens - read_so_far(progress)
    if progress.phase != "reading" or not progress.seconds_left or not unread:
        return None
    return unread / progress.seconds_left


def dense_estimate(tokens: int, dense_s: float | None) -> str:
    """The tokens of a dense prefill, and its time if that is known."""
    # Figures of a stored answer may be corrupt.
    if not dense_s or not 0 <= dense_s < _MAX_S:
        return strings.EVERYTHING.format(tokens=tokens)
    return strings.EVERYTHING_IN.format(tokens=tokens, time=duration(dense_s))


def dense_time_s(reading: ReadingMap | None, stats: Stats | None = None) -> float | None:
    """The time of a dense prefill in seconds: the worker's prediction, or an estimate from `stats`.

    None if neither is available. Stats of a few tokens are ignored, because a forward has a minimum time.
    """
    if reading is not None and reading.dense_s is not None:
        return reading.dense_s
    if stats is None or stats.read_tokens < max(
        _COMPARABLE_TOKENS, _COMPARABLE_FRACTION * stats.prompt_tokens
    ):
        return None
    seconds = stats.prefill_s - stats.score_s
    return stats.prompt_tokens * seconds / stats.read_tokens if seconds > 0 else None


def facts_of(
    progress: PrefillProgress, reading: ReadingMap | None, scored_s: float | None, rate: float | None
) -> ReadingFacts:
    """The card's content. `scored_s` is the time of scoring, `rate` the current tokens per second."""
    left = time_left(progress.seconds_left)
    if progress.phase == "scoring":
        total, scored = max(1, progress.total_tokens), progress.scored_tokens
        note = strings.SCORING_NOTE.format(done=scored, total=progress.total_tokens)
        phases = (
            ReadingPhase(strings.SCORING, note, "active"),
            ReadingPhase(strings.CHOSEN, "", "ahead"),
            ReadingPhase(strings.READING_PHASE, "", "ahead"),
        )
        title = strings.SCORING_TITLE.format(total=progress.total_tokens)
        return ReadingFacts(title, left, strings.SCORING_DONE, min(1.0, scored / total), phases)
    unread = max(1, to_read(progress))
    done = read_so_far(progress)
    if reading is None or not progress.kept_tokens:
        # Without kept tokens the prefill is dense, even if there is a map.
        words = strings.READING_DONE.format(done=done, unread=unread)
        return ReadingFacts(_title(progress), left, words, done / unread)
    words = strings.READING_KEPT.format(done=done, kept=unread)
    some = strings.READING_ON if reads_on(reading) else strings.READING_SOME_OF
    title = some.format(read=reading.read_tokens, total=reading.prompt_tokens)
    return ReadingFacts(title, left, words, done / unread, _phases(reading, scored_s, rate))


def reads_on(reading: ReadingMap) -> bool:
    """Whether passages that an earlier turn skipped are read."""
    return any(passage.earlier for passage in reading.passages)


def _title(progress: PrefillProgress) -> str:
    unread = progress.total_tokens - progress.reused_tokens
    if progress.reused_tokens:
        return strings.READING_REST.format(unread=unread, total=progress.total_tokens)
    return strings.READING.format(total=progress.total_tokens)


def _phases(reading: ReadingMap, scored_s: float | None, rate: float | None) -> tuple[ReadingPhase, ...]:
    scorer = find("prefill.scorer").labels.get(reading.scorer, reading.scorer).lower()
    passages = _of_documents(reading)
    scored = strings.SCORED_BY.format(passages=len(passages), scorer=scorer)
    if scored_s is not None:
        scored += strings.SCORED_IN.format(seconds=scored_s)
    percent = round(100 * reading.read_tokens / max(1, _map_tokens(reading)))
    chosen = strings.CHOSEN_NOTE.format(passages=chosen_passages(passages), percent=percent)
    speed = strings.READING_SPEED.format(rate=rate) if rate else ""
    return (
        ReadingPhase(strings.SCORED, scored, "done"),
        ReadingPhase(strings.CHOSEN, chosen, "done"),
        ReadingPhase(strings.READING_PHASE, speed, "active"),
    )


def _of_documents(reading: ReadingMap) -> Sequence[Passage]:
    """The passages of documents if there are any, else all; as the Document tab counts them."""
    return [passage for passage in reading.passages if passage.source >= 0] or reading.passages


def _map_tokens(reading: ReadingMap) -> int:
    return sum(passage.end - passage.start for passage in reading.passages)
