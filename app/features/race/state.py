"""A race: its state machine, and its replay. Pure."""

from __future__ import annotations

from bisect import bisect_right
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from core.events import Finished, Message, PrefillProgress, Token
from core.settings import Settings, assign


class Sight(Struct, frozen=True):
    """A side at a moment. `clock_s` stops at its end. `tokens_per_s` is 0 if unknown."""

    tokens: int
    total: int
    clock_s: float
    tokens_per_s: float
    done: bool

    @property
    def share(self) -> float:
        """The share of the answer that is written."""
        return self.tokens / self.total if self.total else 1.0


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


def duration_s(recording: Recording) -> float:
    """Returns the time of the last token."""
    return recording.tokens[-1].time_s if recording.tokens else 0.0


def written(recording: Recording, at_s: float) -> int:
    """Returns the number of tokens at that time."""
    return bisect_right(recording.tokens, at_s, key=lambda token: token.time_s)


def sight(recording: Recording, at_s: float) -> Sight:
    """Returns a side at a moment."""
    tokens, end_s = written(recording, at_s), duration_s(recording)
    total = len(recording.tokens)
    done = tokens == total
    speed = 0.0
    if done and recording.finished:
        speed = recording.finished.stats.tokens_per_s
    elif tokens > 1:
        elapsed_s = recording.tokens[tokens - 1].time_s - recording.tokens[0].time_s
        # Of the first step's tokens only the last counts.
        first = written(recording, recording.tokens[0].time_s)
        speed = (tokens - first) / elapsed_s if elapsed_s > 0 else 0.0
    return Sight(tokens, total, min(at_s, end_s) if done else at_s, speed, done)


def verdict(plain: Recording, drafted: Recording) -> RaceVerdict:
    """Returns the comparison of the drafted answer with the plain one."""
    slow = plain.finished.stats.tokens_per_s if plain.finished else 0.0
    fast = drafted.finished.stats.tokens_per_s if drafted.finished else 0.0
    return RaceVerdict(
        fast / slow if slow and fast else 0.0,
        duration_s(plain) - duration_s(drafted),
        _first_s(plain) - _first_s(drafted),
        len(drafted.tokens),
        first_difference(plain, drafted),
    )


def _first_s(recording: Recording) -> float:
    return recording.tokens[0].time_s if recording.tokens else 0.0


def first_difference(plain: Recording, drafted: Recording) -> int | None:
    """Returns the index of the first differing token; None if they are equal."""
    one, other = plain.ids, drafted.ids
    for number, (a, b) in enumerate(zip(one, other)):
        if a != b:
            return number
    return None if len(one) == len(other) else min(len(one), len(other))


class Replay(Struct, frozen=True):
    """`end_s` is the end of the slower side, `rate` the speed of the replay."""

    end_s: float
    at_s: float = 0.0
    rate: float = 1.0
    playing: bool = False

    @property
    def over(self) -> bool:
        """Whether both sides have ended."""
        return self.at_s >= self.end_s

    def play(self) -> Replay:
        """Plays; from the start if it was at the end."""
        return replace(self, playing=self.end_s > 0, at_s=0.0 if self.over else self.at_s)

    def pause(self) -> Replay:
        return replace(self, playing=False)

    def passed(self, elapsed_s: float) -> Replay:
        """Returns the replay after `elapsed_s` seconds of watching."""
        if not self.playing:
            return self
        at_s = min(self.end_s, self.at_s + elapsed_s * self.rate)
        return replace(self, at_s=at_s, playing=at_s < self.end_s)

    def sought(self, at_s: float) -> Replay:
        """Returns the replay paused at another moment."""
        return replace(self, at_s=min(max(0.0, at_s), self.end_s), playing=False)

    def at_rate(self, rate: float) -> Replay:
        """Returns the replay at another rate."""
        return replace(self, rate=rate)


def replay_of(plain: Recording, drafted: Recording, rate: float = 1.0) -> Replay:
    """Returns the replay of both, at its start."""
    return Replay(max(duration_s(plain), duration_s(drafted)), rate=rate)


class Stage(Enum):
    """The stage of a race. `RUN`: both answers are recorded."""

    IDLE = "idle"
    PLAIN = "plain"
    DRAFTED = "drafted"
    STOPPING = "stopping"
    RUN = "run"


class Course(Struct, frozen=True):
    """The messages of a race, and the settings of the drafted answer."""

    messages: tuple[Message, ...]
    settings: Settings

    @property
    def plain(self) -> Settings:
        """Returns the settings without a drafter."""
        return assign(self.settings, "drafting.drafter", "off")


class Recording(Struct, frozen=True):
    """An answer with its times: `time_s` of a token is that of the worker since it received the request.

    `read_tokens` of `prompt_tokens` were read before the first token.
    """

    tokens: tuple[Token, ...] = ()
    finished: Finished | None = None
    read_tokens: int = 0
    prompt_tokens: int = 0

    @property
    def ids(self) -> tuple[int, ...]:
        """Returns the tokens by index."""
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
        """Whether an answer is being recorded."""
        return self.stage in (Stage.PLAIN, Stage.DRAFTED, Stage.STOPPING)


# ---- inputs


class StartRace(Struct, frozen=True):
    """Starts a race."""

    course: Course


class Halt(Struct, frozen=True):
    """Stops recording and discards it."""


class Read(Struct, frozen=True):
    """Progress of reading the prompt."""

    progress: PrefillProgress


class Wrote(Struct, frozen=True):
    """A token of the running answer."""

    token: Token


class Ended(Struct, frozen=True):
    """The running answer has ended."""

    finished: Finished


class Broke(Struct, frozen=True):
    """The running answer failed; `reason` is a sentence."""

    reason: str


Given = StartRace | Halt | Read | Wrote | Ended | Broke


# ---- effects


class Ask(Struct, frozen=True):
    """Requests an answer to `messages` with `settings`."""

    request: str
    messages: tuple[Message, ...]
    settings: Settings


class StopAnswer(Struct, frozen=True):
    """Cancels the running answer."""


Effect = Ask | StopAnswer


class RaceStep(Struct, frozen=True):
    """The result of an input."""

    race: Race
    effects: tuple[Effect, ...] = ()


def advance(race: Race, given: Given) -> RaceStep:
    """Returns the race after `given`. An input that does not fit the stage changes nothing."""
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
