"""A sweep of the Lab: the events of its process, and its result file.

One line each, as on the worker's wire:

    sweep_started → (sweep_progress | sweep_cell | sweep_turn | sweep_reading | sweep_likeness)*
                  → sweep_ended | failed

Speeds are tokens a second; “plain” is mlx-lm's own loop on the same model, run just before.
"""

from __future__ import annotations

from typing import Union

import msgspec
from msgspec import Struct

from core.errors import ProtocolError
from core.events.answer import Change, PositionStat
from core.events.codec import Failed
from core.events.wire import Wire


class SweepPair(Struct, frozen=True):
    """A plain and a drafted answer. `ratio`: drafted speed ÷ plain speed, 0 if unknown.

    If they differ, `difference` is the index of the first different token, and the texts are set. `margin`:
    the plain token's logit minus the other's at width 1, None if one answer was only longer. `close_call`:
    the margin is within the differences between widths.
    """

    ratio: float
    tokens_per_s: float
    plain_tokens_per_s: float
    ttft_s: float = 0.0
    plain_ttft_s: float = 0.0
    difference: int | None = None
    margin: float | None = None
    close_call: bool = False
    plain_text: str = ""
    drafted_text: str = ""

    @property
    def equal(self) -> bool:
        """Whether both answers are the same."""
        return self.difference is None


class SweepCell(Wire, frozen=True):
    """One prompt with one drafter. `prompt`: its index in the file. Figures outside `pairs` are those of
    the last pair's drafted answer."""

    kind: str
    prompt: int
    drafter: str
    prompt_tokens: int
    tokens: int
    acceptance: float
    mean_per_step: float
    positions: tuple[PositionStat, ...]
    pairs: tuple[SweepPair, ...]
    changes: tuple[Change, ...] = ()


class SweepTurn(Wire, frozen=True):
    """One turn (from 1) of a conversation with one drafter, which learns from the turns before."""

    kind: str
    drafter: str
    turn: int
    prompt_tokens: int
    tokens_per_s: float
    plain_tokens_per_s: float
    equal: bool


class SweepReading(Wire, frozen=True):
    """Time to first token of a long prompt with `keep_pct`, and that of a dense prefill.

    `ran`: the prefill that was used (`dense` or `sparse`), and its `reason`.
    """

    scorer: str
    keep_pct: float
    prompt_tokens: int
    read_tokens: int
    ttft_s: float
    plain_ttft_s: float
    ran: str = "sparse"
    reason: str = ""


class SweepLikeness(Wire, frozen=True):
    """Share of next tokens after a sparse prefill of `keep_pct` that equal those after a dense prefill.

    At `tokens` positions in `documents` documents.
    """

    scorer: str
    keep_pct: float
    documents: int
    tokens: int
    agreement: float


class SweepStarted(Wire, frozen=True):
    """The model is loaded. `answers` and `readings`: numbers of planned measurements.

    `noise`: the largest logit difference between block widths.
    """

    model: str
    machine: str
    answers: int
    readings: int
    noise: float


class SweepProgress(Wire, frozen=True):
    """`done` of `total` answers and readings; `seconds_left`: None while unknown."""

    done: int
    total: int
    doing: str
    seconds_left: float | None = None


class SweepEnded(Wire, frozen=True):
    """The sweep is complete; its results are in `folder`."""

    folder: str
    took_s: float


class SweepResults(Struct, frozen=True):
    """The file `results.json` of a sweep, rewritten after each result; `ended` once complete.

    `model`: display name; `reference`: as in `load_model`. `asked`: all other options that two runs of one
    sweep must share. `began_s`: Unix time. `seconds_an_answer`, `seconds_a_reading`: means, 0 without any.
    """

    bench: str
    model: str
    machine: str
    drafters: tuple[str, ...]
    exactness: str
    repeats: int
    max_tokens: int
    began_s: float
    took_s: float = 0.0
    answers: int = 0
    seconds_an_answer: float = 0.0
    seconds_a_reading: float = 0.0
    noise: float = 0.0
    ended: bool = False
    cells: tuple[SweepCell, ...] = ()
    turns: tuple[SweepTurn, ...] = ()
    readings: tuple[SweepReading, ...] = ()
    likenesses: tuple[SweepLikeness, ...] = ()
    reference: str = ""
    asked: str = ""


SweepEvent = Union[
    SweepStarted,
    SweepProgress,
    SweepCell,
    SweepTurn,
    SweepReading,
    SweepLikeness,
    SweepEnded,
    Failed,
]

_decoder: msgspec.json.Decoder[SweepEvent] = msgspec.json.Decoder(SweepEvent)


def decode_sweep_event(line: bytes) -> SweepEvent:
    """Decodes one line of the sweep's process. Raises `ProtocolError`."""
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(f"The Lab's process wrote a line that is not a result: {error}.") from None
