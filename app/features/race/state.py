"""A race: one question answered without and with drafting, one after the other, and how they compare."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct, field

from core.events import Finished, Message, PrefillProgress, Token
from core.settings import Settings


class Stage(Enum):
    """The stage of a race. `RUN`: both answers are recorded."""

    IDLE = "idle"
    PLAIN = "plain"
    DRAFTED = "drafted"
    STOPPING = "stopping"
    RUN = "run"


class Recording(Struct):
    """An answer with its times: `time_s` of a token is that of the worker since it received the request.

    `progress`: the last report of its prefill.
    """

    tokens: list[Token] = field(default_factory=list)
    finished: Finished | None = None
    progress: PrefillProgress | None = None

    @property
    def ids(self) -> list[int]:
        return [token.id for token in self.tokens]

    @property
    def duration_s(self) -> float:
        return self.tokens[-1].time_s if self.tokens else 0.0

    @property
    def first_s(self) -> float:
        return self.tokens[0].time_s if self.tokens else 0.0


class Race(Struct):
    """The race of `messages`; `settings` are those of the drafted answer. `request` is being recorded."""

    stage: Stage = Stage.IDLE
    messages: tuple[Message, ...] = ()
    settings: Settings | None = None
    plain: Recording = field(default_factory=Recording)
    drafted: Recording = field(default_factory=Recording)
    request: str = ""
    trouble: str = ""

    @property
    def recording(self) -> bool:
        """Whether an answer is being recorded."""
        return self.stage in (Stage.PLAIN, Stage.DRAFTED, Stage.STOPPING)

    @property
    def side(self) -> Recording | None:
        """The answer that is being recorded; None if there is none, or it will be discarded."""
        return {Stage.PLAIN: self.plain, Stage.DRAFTED: self.drafted}.get(self.stage)


class RaceVerdict(Struct, frozen=True):
    """The drafted answer compared with the plain one.

    `ratio` is that of the decode speeds, 0 if one is unknown. `sooner_s` is how much earlier the drafted
    answer ended (negative: later), `read_sooner_s` how much earlier its first token arrived. `difference` is
    the index of the first differing token, a longer answer included; None if they are equal.
    """

    ratio: float
    sooner_s: float
    read_sooner_s: float
    tokens: int
    difference: int | None


def verdict(plain: Recording, drafted: Recording) -> RaceVerdict:
    """Returns the comparison of the drafted answer with the plain one."""
    slow = plain.finished.stats.tokens_per_s if plain.finished else 0.0
    fast = drafted.finished.stats.tokens_per_s if drafted.finished else 0.0
    return RaceVerdict(
        fast / slow if slow and fast else 0.0,
        plain.duration_s - drafted.duration_s,
        plain.first_s - drafted.first_s,
        len(drafted.tokens),
        _first_difference(plain.ids, drafted.ids),
    )


def _first_difference(one: list[int], other: list[int]) -> int | None:
    for number, (a, b) in enumerate(zip(one, other)):
        if a != b:
            return number
    return None if len(one) == len(other) else min(len(one), len(other))
