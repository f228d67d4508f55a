"""An answer as it is written: its tokens, its live figures, and what it came to."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from core.answer_format import AnswerFormat
from core.events.reading import Passage, ReadingWay
from core.events.tables import TableUse
from core.events.wire import Wire
from core.settings import Settings

Origin = Literal["accepted", "bonus", "normal"]
FinishReason = Literal["stop", "length", "cancelled"]


class PositionStat(Struct, frozen=True):
    """Of the drafts that reached this place in the block: how many were tested, how many accepted."""

    tested: int
    accepted: int


class Occupancy(Struct, frozen=True):
    """How full the drafter's index or table is. `capacity` 0 means it keeps none."""

    used: int = 0
    capacity: int = 0


class Stats(Struct, frozen=True):
    """Everything measured about one answer.

    Always: tokens = accepted + bonus + normal, steps = bonus + normal. The stop token counts
    as a token (with empty text), and so do tokens that a stop text cut off again. `tested` counts
    drafted tokens that the walk reached: the accepted ones and the first rejected one of each step;
    `drafted` counts all proposed; `rechecked` counts close calls that a pass of width 1 decided.
    `mean_per_step` is MAT: tokens ÷ steps. `tokens_per_s` is decode speed: the tokens after
    the first, over the time from the first to the last. `prefill_s`, `ttft_s` and `total_s` count
    from asking, the chat template and the tokenizer included. `read_tokens` is what prefill ran
    through the model now, `reused_tokens` what the cache already held, `skipped_tokens` what
    the model has not read, now or in an earlier turn: prompt = reused + read + skipped.
    `table` is set where a shared table was asked.
    `read_on_tokens` of what earlier turns skipped were read now: inserted, or quoted before the question.
    `forced` of the accepted tokens were drafted because a grammar allowed nothing else. Of a predicted
    answer's tokens `prediction_accepted` came, where they were expected or in a match of several tokens,
    and `prediction_rejected` never did; each counts once, whoever drafted it.
    Of this answer's sparse prefill: `scored_tokens` were scored in `score_s` (part of
    `prefill_s`), `kept_tokens` of them were chosen to be read; all 0 where all was read.
    """

    prompt_tokens: int = 0
    reused_tokens: int = 0
    read_tokens: int = 0
    skipped_tokens: int = 0
    read_on_tokens: int = 0
    scored_tokens: int = 0
    kept_tokens: int = 0
    tokens: int = 0
    accepted: int = 0
    bonus: int = 0
    normal: int = 0
    steps: int = 0
    drafted: int = 0
    tested: int = 0
    rechecked: int = 0
    forced: int = 0
    prediction_accepted: int = 0
    prediction_rejected: int = 0
    acceptance: float = 0.0
    mean_per_step: float = 0.0
    ttft_s: float = 0.0
    prefill_s: float = 0.0
    score_s: float = 0.0
    decode_s: float = 0.0
    total_s: float = 0.0
    tokens_per_s: float = 0.0
    positions: tuple[PositionStat, ...] = ()
    occupancy: Occupancy = Occupancy()
    draft_us_median: float = 0.0
    draft_us_p99: float = 0.0
    context_used_tokens: int = 0
    context_tokens: int = 0
    memory_bytes: int = 0
    memory_peak_bytes: int = 0
    table: TableUse | None = None


class Change(Struct, frozen=True):
    """Something that was asked for and did not happen: the setting's key, both values, and why."""

    setting: str
    asked: str
    used: str
    reason: str


class Effective(Struct, frozen=True):
    """What really ran. `changes` is empty when everything was done as asked.

    `gate` says whether drafting went on to the end, and why; empty if nothing drafts.
    `reading` says how the prompt was read, `reading_reason` why, and `scorer` who chose the
    passages (empty where all was read). `threads` says how many threads of OpenBLAS computed at
    the end, of how many, and why; empty where MLX does not use it. `format` is how the answer is written.
    `unmatched`: a part of the text was skipped, and no passage matches the question.
    `exactness` says what `guarded` or `exact` promised, and on how many compared rows that rests; empty in
    `fast` and without drafts.
    """

    model: str
    dtype: str
    drafter: str
    settings: Settings
    gate: str = ""
    changes: tuple[Change, ...] = ()
    reading: ReadingWay = "dense"
    reading_reason: str = ""
    scorer: str = ""
    threads: str = ""
    format: AnswerFormat = AnswerFormat()
    exactness: str = ""
    unmatched: bool = False


class Likely(Struct, frozen=True):
    """One of the likeliest tokens at a place: its id, its text by itself, and its natural log-probability."""

    id: int
    text: str
    logprob: float


# Of plain values only, and by the ten thousand: the garbage collector need not look at them.
class Token(Wire, frozen=True, gc=False):
    """One token of the answer, in order, once its text is certain.

    The concatenated texts are the answer. A token whose bytes are finished by a later one has
    empty text. `position` counts the answer's tokens from 0, `step` its model steps from 1.
    `draft_index` (from 1) and `draft_length` say where in its step's draft the token stood;
    both are 0 for tokens that were not drafted. `time_s` is when its step was done.

    `logprob` is the token's own in the model's distribution, before temperature, filters and grammar, and
    `likely` the likeliest there, best first; None and empty if they were not asked for.
    `format` is set on the first token of an answer to a conversation.
    """

    request: str
    id: int
    text: str
    origin: Origin
    step: int
    position: int
    draft_index: int = 0
    draft_length: int = 0
    time_s: float = 0.0
    logprob: float | None = None
    likely: tuple[Likely, ...] = ()
    format: AnswerFormat | None = None


class Gauges(Wire, frozen=True):
    """Live figures while an answer is written, about four times a second.

    `tokens_per_s` is over the last two seconds. `table` is set where a shared table is asked.
    """

    request: str
    tokens_per_s: float
    ttft_s: float
    tokens: int
    accepted: int
    tested: int
    acceptance: float
    mean_per_step: float
    positions: tuple[PositionStat, ...]
    occupancy: Occupancy
    memory_bytes: int
    context_used_tokens: int
    context_tokens: int
    table: TableUse | None = None


class Finished(Wire, frozen=True):
    """The end of an answer, whatever ended it.

    `sources`: the passages of attachments that it stands on, the best first. `stopped_by`: which of the
    request's `stops` would have come next; empty if it was none of them.
    """

    request: str
    reason: FinishReason
    stats: Stats
    effective: Effective
    sources: tuple[Passage, ...] = ()
    stopped_by: str = ""


AnswerEvent = Token | Gauges | Finished
