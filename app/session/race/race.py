"""A race: the same prompt answered twice, plain and drafted, one after the other. Pure.

Theory of operation. Both answers are recorded in turn, so neither slows the other:

    idle ─start→ plain ─finished→ drafted ─finished→ run
                   │ stop             │ stop
                   └──→ stopping ←────┘ ─ended→ idle      failed, cut off → idle with a reason

`advance(race, given)` takes what the person wants or what was heard of the race's own request and
returns the next race with the effects to carry out. What was recorded before stays to be seen
until a new race has begun to be recorded. It knows no clock, widget or worker; `race_replay` has
what is shown of two recordings at a moment.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from core.events import Finished, Message, PrefillProgress, Token
from core.settings import Settings, assign


class Stage(Enum):
    """Where a race is. `RUN`: both answers are recorded."""

    IDLE = "idle"
    PLAIN = "plain"
    DRAFTED = "drafted"
    STOPPING = "stopping"
    RUN = "run"


class Course(Struct, frozen=True):
    """What is run: the messages, and the settings of the drafted answer."""

    messages: tuple[Message, ...]
    settings: Settings

    @property
    def plain(self) -> Settings:
        """The same settings without a drafter."""
        return assign(self.settings, "drafting.drafter", "off")


class Recording(Struct, frozen=True):
    """An answer with its times; each token's `time_s` is the worker's, since it took up the request.

    `read_tokens` of `prompt_tokens` were read while there were no tokens yet.
    """

    tokens: tuple[Token, ...] = ()
    finished: Finished | None = None
    read_tokens: int = 0
    prompt_tokens: int = 0

    @property
    def ids(self) -> tuple[int, ...]:
        """The tokens by number."""
        return tuple(token.id for token in self.tokens)


class Race(Struct, frozen=True):
    """`request` is the answer being recorded. `number` counts requests, so that each id is new."""

    stage: Stage = Stage.IDLE
    course: Course | None = None
    plain: Recording = Recording()
    drafted: Recording = Recording()
    request: str = ""
    number: int = 0
    trouble: str = ""

    @property
    def recording(self) -> bool:
        """Whether an answer is under way."""
        return self.stage in (Stage.PLAIN, Stage.DRAFTED, Stage.STOPPING)


# ---- what comes in


class StartRace(Struct, frozen=True):
    """Run this course."""

    course: Course


class Halt(Struct, frozen=True):
    """Stop recording; nothing is kept of it."""


class Read(Struct, frozen=True):
    """The prompt of the running answer is being read."""

    progress: PrefillProgress


class Wrote(Struct, frozen=True):
    """One more token of the running answer."""

    token: Token


class Ended(Struct, frozen=True):
    """The running answer is over."""

    finished: Finished


class Broke(Struct, frozen=True):
    """The running answer cannot be finished, because of `reason`, a sentence."""

    reason: str


Given = StartRace | Halt | Read | Wrote | Ended | Broke


# ---- what is to be done


class Ask(Struct, frozen=True):
    """Have `messages` answered with `settings`, apart from everything else."""

    request: str
    messages: tuple[Message, ...]
    settings: Settings


class StopAnswer(Struct, frozen=True):
    """End the running answer."""


Effect = Ask | StopAnswer


class RaceStep(Struct, frozen=True):
    """What one input leads to."""

    race: Race
    effects: tuple[Effect, ...] = ()


def advance(race: Race, given: Given) -> RaceStep:
    """The race after `given`. What does not fit the stage changes nothing."""
    if isinstance(given, StartRace):
        return RaceStep(race) if race.recording else _start(race, given.course)
    if not race.recording:
        return RaceStep(race)
    match given:
        case Halt():
            if race.stage is Stage.STOPPING:
                return RaceStep(race)
            return RaceStep(replace(race, stage=Stage.STOPPING), (StopAnswer(),))
        case Read(progress):
            return RaceStep(_with_reading(race, progress))
        case Wrote(token):
            return RaceStep(_with_token(race, token))
        case Ended(finished):
            return _ended(race, finished)
        case Broke(reason):
            return RaceStep(Race(course=race.course, number=race.number, trouble=reason))


def _start(race: Race, course: Course) -> RaceStep:
    return _ask(Race(Stage.PLAIN, course, number=race.number), course.plain)


def _ask(race: Race, settings: Settings) -> RaceStep:
    assert race.course
    number = race.number + 1
    request = f"race-{number}"
    return RaceStep(
        replace(race, number=number, request=request), (Ask(request, race.course.messages, settings),)
    )


def _ended(race: Race, finished: Finished) -> RaceStep:
    if race.stage is Stage.STOPPING or finished.reason == "cancelled":
        return RaceStep(Race(course=race.course, number=race.number))
    if race.stage is Stage.PLAIN:
        assert race.course
        plain = replace(race.plain, finished=finished)
        return _ask(replace(race, stage=Stage.DRAFTED, plain=plain), race.course.settings)
    drafted = replace(race.drafted, finished=finished)
    return RaceStep(replace(race, stage=Stage.RUN, drafted=drafted, request=""))


def _with_token(race: Race, token: Token) -> Race:
    if race.stage is Stage.PLAIN:
        return replace(race, plain=replace(race.plain, tokens=(*race.plain.tokens, token)))
    if race.stage is Stage.DRAFTED:
        return replace(race, drafted=replace(race.drafted, tokens=(*race.drafted.tokens, token)))
    return race


def _with_reading(race: Race, progress: PrefillProgress) -> Race:
    read = {"read_tokens": progress.done_tokens, "prompt_tokens": progress.total_tokens}
    if race.stage is Stage.PLAIN:
        return replace(race, plain=replace(race.plain, **read))
    if race.stage is Stage.DRAFTED:
        return replace(race, drafted=replace(race.drafted, **read))
    return race
