"""What the reading card says: three phases, figures and times, from progress and map. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from app.chat import strings
from app.chat.reading_map import chosen_passages
from core.events import Passage, PrefillProgress, ReadingMap, Stats
from core.settings.declaration import find

_WORTH_TOKENS = 256
_WORTH_S = 2.0
# A reading that is shorter, or a smaller share of the prompt, says nothing about how long all of it takes.
_COMPARABLE_TOKENS = 256
_COMPARABLE = 0.05
# No reading takes that long: a speed that says so is none.
_LONGEST_S = 1e9

PhaseState = Literal["done", "active", "ahead"]


class ReadingPhase(Struct, frozen=True):
    """One of Scored, Chosen, Reading."""

    title: str
    note: str
    state: PhaseState


class ReadingFacts(Struct, frozen=True):
    """All of the card's words. `fraction` is the bar's; `phases` are empty where all is read."""

    title: str
    left: str
    done: str
    fraction: float
    phases: tuple[ReadingPhase, ...] = ()


def is_worth_showing(progress: PrefillProgress) -> bool:
    """Whether there is enough to read that somebody will wonder."""
    few = progress.total_tokens - progress.reused_tokens < _WORTH_TOKENS
    return not few or (progress.seconds_left or 0.0) >= _WORTH_S


def to_read(progress: PrefillProgress) -> int:
    """How much has to be read. Kept tokens are counted with the prompt's last, which is read at the end."""
    return progress.kept_tokens or progress.total_tokens - progress.reused_tokens


def read_now(progress: PrefillProgress) -> int:
    """Of what has to be read, how much has been. `done_tokens` counts what was reused, too."""
    unread = progress.total_tokens - progress.reused_tokens
    return max(0, min(unread, progress.done_tokens - progress.reused_tokens))


def time_left(seconds: float | None) -> str:
    """How long it will take, or nothing if that is not known."""
    return "" if seconds is None else strings.LEFT.format(time=duration(seconds))


def duration(seconds: float) -> str:
    """About how long: `8 s`, `1 min 52 s`, `2 h 5 min`."""
    whole = max(1, round(seconds))
    if whole < 60:
        return strings.DURATION_S.format(seconds=whole)
    if whole < 3600:
        return strings.DURATION_MIN.format(minutes=whole // 60, seconds=whole % 60)
    return strings.DURATION_H.format(hours=whole // 3600, minutes=whole % 3600 // 60)


def skipped_places(stats: Stats) -> int:
    """How much of an answer's context was never read and has its place in it all the same."""
    return stats.skipped_tokens if stats.context_used_tokens >= stats.prompt_tokens else 0


def fits(stats: Stats) -> bool:
    """Whether all of an answer's prompt could be read."""
    return not stats.context_tokens or stats.prompt_tokens < stats.context_tokens


def reading_rate(progress: PrefillProgress) -> float | None:
    """Tokens a second, from what is left and how long that will take. None before that is known."""
    unread = progress.total_tokens - progress.reused_tokens - read_now(progress)
    if progress.phase != "reading" or not progress.seconds_left or not unread:
        return None
    return unread / progress.seconds_left


def everything_words(tokens: int, takes_s: float | None) -> str:
    """What reading all of the prompt means, with its time if that is known."""
    # A stored answer's figures may be anything.
    if not takes_s or not 0 <= takes_s < _LONGEST_S:
        return strings.EVERYTHING.format(tokens=tokens)
    return strings.EVERYTHING_IN.format(tokens=tokens, time=duration(takes_s))


def everything_s(reading: ReadingMap | None, stats: Stats | None = None) -> float | None:
    """How long reading all would take: what the worker expects by this machine's pace, wherever it is said.

    Where it expected nothing yet, what it read for the answer (`stats`) tells, once that is known: not a few
    tokens, which take the time of a forward however few they are.
    """
    if reading is not None and reading.dense_s is not None:
        return reading.dense_s
    if stats is None or stats.read_tokens < max(_COMPARABLE_TOKENS, _COMPARABLE * stats.prompt_tokens):
        return None
    seconds = stats.prefill_s - stats.score_s
    return stats.prompt_tokens * seconds / stats.read_tokens if seconds > 0 else None


def facts_of(
    progress: PrefillProgress, reading: ReadingMap | None, scored_s: float | None, rate: float | None
) -> ReadingFacts:
    """The card as it stands. `scored_s` is how long scoring took, `rate` the newest reading speed."""
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
    done = read_now(progress)
    if reading is None or not progress.kept_tokens:
        # Without kept tokens all is read, also if that was decided after the map was made.
        words = strings.READING_DONE.format(done=done, unread=unread)
        return ReadingFacts(_title(progress), left, words, done / unread)
    words = strings.READING_KEPT.format(done=done, kept=unread)
    some = strings.READING_ON if reads_on(reading) else strings.READING_SOME_OF
    title = some.format(read=reading.read_tokens, total=reading.prompt_tokens)
    return ReadingFacts(title, left, words, done / unread, _phases(reading, scored_s, rate))


def reads_on(reading: ReadingMap) -> bool:
    """Whether it reads what an earlier turn skipped."""
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
    """Counted as the Document tab counts them: of documents, where there are any, and not of the question."""
    return [passage for passage in reading.passages if passage.source >= 0] or reading.passages


def _map_tokens(reading: ReadingMap) -> int:
    return sum(passage.end - passage.start for passage in reading.passages)
