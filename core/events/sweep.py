"""A sweep of the Lab: what its process says while it measures, and the file that it leaves.

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
from core.events.process import Failed
from core.events.wire import Wire


class SweepPair(Struct, frozen=True):
    """A plain answer and a drafted one, in turn. `ratio` is of their speeds, 0 if one is not known.

    Where they differ, `difference` is the number of the first token (from 0) that does, and the
    texts are there; `margin` is then by how much the plain token's logit was above the other's at
    width 1, None if one answer was only longer. `close_call`: that is within what widths differ by.
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
        """Whether both wrote the same."""
        return self.difference is None


class SweepCell(Wire, frozen=True):
    """One prompt by one drafter. `prompt` is its number in the file, from 0. Figures but `pairs`' are
    of the last pair's drafted answer."""

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
    """One turn (from 1) of a conversation by one drafter, with what it learned in the turns before."""

    kind: str
    drafter: str
    turn: int
    prompt_tokens: int
    tokens_per_s: float
    plain_tokens_per_s: float
    equal: bool


class SweepReading(Wire, frozen=True):
    """A long prompt, `keep_pct` of it read: seconds to the first token, and those of a dense reading.

    `ran` is how it was really read (`dense` or `sparse`), `reason` why.
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
    """How often the next token is the one that reading everything gives, after reading `keep_pct`.

    Over `tokens` places in all of `documents` documents.
    """

    scorer: str
    keep_pct: float
    documents: int
    tokens: int
    agreement: float


class SweepStarted(Wire, frozen=True):
    """The model is loaded. `answers` are to be given, `readings` long prompts to be read.

    `noise` is the largest logit difference between widths that the exactness probe saw.
    """

    model: str
    machine: str
    answers: int
    readings: int
    noise: float


class SweepProgress(Wire, frozen=True):
    """`done` of `total` answers and readings; `seconds_left` None while nobody can know."""

    done: int
    total: int
    doing: str
    seconds_left: float | None = None


class SweepEnded(Wire, frozen=True):
    """All of it is measured; the results are in `folder`."""

    folder: str
    took_s: float


class SweepResults(Struct, frozen=True):
    """The file `results.json` of a sweep, written anew after each result; `ended` once it is whole.

    `model` is its name, `reference` what it was asked for as, `asked` all else that decides whether two
    runs are of one sweep. `began_s` is Unix time.
    `seconds_an_answer` and `seconds_a_reading` are means, 0 if there were none.
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
    """What the sweep's process said in one line. Raises `ProtocolError`."""
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(f"The Lab's process wrote a line that is not a result: {error}.") from None
