"""How a prompt is read: its progress, and which passages of it a sparse prefill keeps."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from core.events.wire import Wire

PrefillPhase = Literal["scoring", "reading"]
ReadingWay = Literal["dense", "sparse"]


class Passage(Struct, frozen=True):
    """A stretch of the prompt that is kept or skipped as a whole: tokens `start` to `end`, end-exclusive.

    `score` is 0 to 1 within this map; `kept` also where a rule and not the score kept it, and where it
    was read in an earlier turn, which `earlier` says.
    `source` counts the attachments of all messages from 0; there the passage is the characters
    `first_char` to `last_char` (end-exclusive) of its text. A passage of no attachment's text
    has source −1.
    """

    start: int
    end: int
    kept: bool
    score: float
    source: int = -1
    first_char: int = 0
    last_char: int = 0
    earlier: bool = False


class PrefillProgress(Wire, frozen=True):
    """Reading the prompt: `done_tokens` of `total_tokens` read, `reused_tokens` needed no reading.

    Before a sparse prefill comes the phase `scoring`: `scored_tokens` of `total_tokens` new ones
    were looked at, none is read (`done_tokens` is 0). In the phase `reading` after it
    `total_tokens` counts what will be in the cache, and `kept_tokens` (0 where all is read) how
    much of that was chosen to be read, with what is inserted of earlier turns' skipped text.
    `seconds_left` is until the end of the phase, `time_s` since the request was taken up.
    """

    request: str
    done_tokens: int
    total_tokens: int
    reused_tokens: int
    seconds_left: float | None = None
    phase: PrefillPhase = "reading"
    scored_tokens: int = 0
    kept_tokens: int = 0
    time_s: float = 0.0


class ReadingMap(Wire, frozen=True):
    """What a sparse prefill will read, sent once it is chosen and before it is read.

    `passages` cover, in order and without gaps, the tokens that are new in this prompt of
    `prompt_tokens`, and what earlier turns skipped if this one reads on in it; `read_tokens` of them will be
    read. `scorer` is a value of `prefill.scorer`.
    `dense_s`: how long reading all that is new would take; None if that is not known.
    `held_tokens`: what the prompt will take of the context, in which skipped tokens may have no place;
    `all_fits`: whether all of the prompt could be read.
    """

    request: str
    scorer: str
    prompt_tokens: int
    read_tokens: int
    passages: tuple[Passage, ...]
    dense_s: float | None = None
    held_tokens: int = 0
    all_fits: bool = True


ReadingEvent = PrefillProgress | ReadingMap
