"""The Lab's state: the plan of a sweep, its results, and the figures of its charts. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from itertools import takewhile
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from core.events import Failed
from core.events.sweep import (
    SweepCell,
    SweepEnded,
    SweepEvent,
    SweepLikeness,
    SweepPair,
    SweepProgress,
    SweepReading,
    SweepResults,
    SweepStarted,
    SweepTurn,
)

_LEAST_TESTED = 3


class Speed(Struct, frozen=True):
    """The speed of a drafter on a class relative to plain decoding: median ratio, minimum and maximum."""

    drafter: str
    kind: str
    ratio: float
    least: float
    most: float
    pairs: int


class ChartMark(Struct, frozen=True):
    """A drafted answer, and whether it equals the plain one."""

    prompt: int
    number: int
    pair: SweepPair


class Parity(Struct, frozen=True):
    """All answers of a drafter on a class, by prompt and pair."""

    drafter: str
    kind: str
    marks: tuple[ChartMark, ...]


class Curve(Struct, frozen=True):
    """Values by number (draft position or turn) from 1. `plain` is plain decoding."""

    name: str
    points: tuple[tuple[int, float], ...]
    plain: bool = False


class Keep(Struct, frozen=True):
    """A keep share: seconds to the first token, and agreement with a dense reading (None: not measured).

    `as_asked` is False if another reading ran than was requested.
    """

    keep_pct: float
    ttft_s: float
    agreement: float | None
    as_asked: bool = True


def drafters(results: SweepResults) -> list[str]:
    return _unique([*(cell.drafter for cell in results.cells), *(turn.drafter for turn in results.turns)])


def kinds(results: SweepResults) -> list[str]:
    """Returns the classes of single prompts in the order of the results."""
    return _unique(cell.kind for cell in results.cells)


def speeds(results: SweepResults) -> list[Speed]:
    found = []
    for drafter in drafters(results):
        for kind in kinds(results):
            ratios = [pair.ratio for pair in _pairs(results, drafter, kind) if pair.ratio]
            if ratios:
                found.append(Speed(drafter, kind, median(ratios), min(ratios), max(ratios), len(ratios)))
    return found


def plain_speed(results: SweepResults) -> float:
    """Returns the median of plain decoding in tokens a second; 0 if not measured."""
    held = [
        pair.plain_tokens_per_s for cell in results.cells for pair in cell.pairs if pair.plain_tokens_per_s
    ]
    return median(held) if held else 0.0


def parity(results: SweepResults) -> list[Parity]:
    found = []
    for kind in kinds(results):
        for drafter in drafters(results):
            marks = tuple(
                ChartMark(cell.prompt, number, pair)
                for cell in results.cells
                if (cell.drafter, cell.kind) == (drafter, kind)
                for number, pair in enumerate(cell.pairs, 1)
            )
            if marks:
                found.append(Parity(drafter, kind, marks))
    return found


def places(results: SweepResults) -> list[Curve]:
    """Returns for each drafter the accepted share at each draft position, over all classes.

    The curve ends before positions with too few tests.
    """
    found = []
    for drafter in drafters(results):
        tested: dict[int, int] = {}
        accepted: dict[int, int] = {}
        for cell in results.cells:
            if cell.drafter == drafter:
                for place, stat in enumerate(cell.positions, 1):
                    tested[place] = tested.get(place, 0) + stat.tested
                    accepted[place] = accepted.get(place, 0) + stat.accepted
        told = takewhile(lambda item: item[1] >= _LEAST_TESTED, sorted(tested.items()))
        points = tuple((place, accepted[place] / count) for place, count in told)
        if points:
            found.append(Curve(drafter, points))
    return found


def turns(results: SweepResults) -> list[Curve]:
    """Returns each drafter's speed over the turns of the conversations, and plain decoding's."""
    found = [
        Curve(
            drafter,
            _by_turn((turn.turn, turn.tokens_per_s) for turn in results.turns if turn.drafter == drafter),
        )
        for drafter in _unique(turn.drafter for turn in results.turns)
    ]
    if found:
        plain = _by_turn((turn.turn, turn.plain_tokens_per_s) for turn in results.turns)
        found.append(Curve("", plain, plain=True))
    return found


def keeps(results: SweepResults) -> list[Keep]:
    """Returns the keep shares from the smallest; a dense reading agrees with itself."""
    agreements = {likeness.keep_pct: likeness.agreement for likeness in results.likenesses}
    times: dict[float, list[float]] = {}
    as_asked: dict[float, bool] = {}
    for reading in results.readings:
        times.setdefault(reading.keep_pct, []).append(reading.ttft_s)
        asked = reading.keep_pct >= 100.0 or reading.ran == "sparse"
        as_asked[reading.keep_pct] = as_asked.get(reading.keep_pct, True) and asked
    for keep_pct in agreements:
        times.setdefault(keep_pct, [])
    return [
        Keep(
            keep_pct,
            median(held) if held else 0.0,
            1.0 if keep_pct >= 100.0 else agreements.get(keep_pct),
            as_asked.get(keep_pct, True),
        )
        for keep_pct, held in sorted(times.items())
    ]


def equal_of(results: SweepResults) -> tuple[int, int]:
    """Returns the number of drafted answers equal to plain ones, and of all."""
    pairs = [pair for cell in results.cells for pair in cell.pairs]
    return sum(pair.equal for pair in pairs), len(pairs)


def common_start(one: str, other: str) -> int:
    """Returns the length of the common prefix of two texts."""
    ends = (at for at, (a, b) in enumerate(zip(one, other)) if a != b)
    return next(ends, min(len(one), len(other)))


def _pairs(results: SweepResults, drafter: str, kind: str) -> list[SweepPair]:
    return [
        pair for cell in results.cells if (cell.drafter, cell.kind) == (drafter, kind) for pair in cell.pairs
    ]


def _by_turn(values: Iterable[tuple[int, float]]) -> tuple[tuple[int, float], ...]:
    held: dict[int, list[float]] = {}
    for turn, value in values:
        held.setdefault(turn, []).append(value)
    return tuple((turn, median(each)) for turn, each in sorted(held.items()))


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


class LabStage(Enum):
    """The state of the sweep's process."""

    IDLE = "idle"
    RUNNING = "running"
    STOPPING = "stopping"


class SweepPlan(Struct, frozen=True):
    """The plan of a sweep. `files` are prompts files with the selected `classes`; `keeps` are percentages."""

    model: str
    drafters: tuple[str, ...]
    files: tuple[str, ...]
    classes: tuple[str, ...]
    repeats: int
    max_tokens: int
    exactness: str = "fast"
    draft_model: str = ""
    keeps: tuple[float, ...] = ()
    keep_tokens: int = 4000


class Lab(Struct, frozen=True):
    """`results` are those of the current or last sweep, or of an opened file.

    `seconds_left` is None if unknown. `trouble` is the reason why a sweep failed, as a sentence.
    """

    stage: LabStage = LabStage.IDLE
    plan: SweepPlan | None = None
    results: SweepResults | None = None
    done: int = 0
    total: int = 0
    doing: str = ""
    seconds_left: float | None = None
    chat_busy: bool = False
    trouble: str = ""
    answers: int = 0  # of the total; the other prompts are long

    @property
    def paused(self) -> bool:
        """Whether the sweep is paused for the chat."""
        return self.stage is LabStage.RUNNING and self.chat_busy


# ---- inputs


class LabRun(Struct, frozen=True):
    """Starts a sweep. `began_s` is the Unix time."""

    plan: SweepPlan
    began_s: float


class StopSweep(Struct, frozen=True):
    """Ends the sweep and keeps its results."""


class Said(Struct, frozen=True):
    """A message of the process."""

    event: SweepEvent


class ResultLost(Struct, frozen=True):
    """A message that could not be read; `reason` says why."""

    reason: str


class Gone(Struct, frozen=True):
    """The process has ended. `reason` is set unless the person ended it."""

    reason: str = ""


class ChatBusy(Struct, frozen=True):
    """Whether the chat's worker may only answer chats."""

    busy: bool


class Opened(Struct, frozen=True):
    """Results were opened."""

    results: SweepResults


Given = LabRun | StopSweep | Said | ResultLost | Gone | ChatBusy | Opened


# ---- effects


class Launch(Struct, frozen=True):
    """Starts a process."""

    plan: SweepPlan


class Pause(Struct, frozen=True):
    """Pauses the process."""


class GoOn(Struct, frozen=True):
    """Resumes the process."""


class HoldChat(Struct, frozen=True):
    """Whether the chat's worker may only answer chats."""

    wanted: bool


class RunEnd(Struct, frozen=True):
    """Ends the process."""


Effect = Launch | Pause | GoOn | HoldChat | RunEnd


class LabStep(Struct, frozen=True):
    """The result of an input."""

    lab: Lab
    effects: tuple[Effect, ...] = ()


def advance(lab: Lab, given: Given) -> LabStep:
    """Returns the next state; an input that does not fit the stage is ignored."""
    idle = lab.stage is LabStage.IDLE
    match given:
        case LabRun(plan, began_s):
            return _run(lab, plan, began_s) if idle else LabStep(lab)
        case StopSweep():
            running = lab.stage is LabStage.RUNNING
            return LabStep(replace(lab, stage=LabStage.STOPPING), (RunEnd(),)) if running else LabStep(lab)
        case Said(event):
            return LabStep(lab) if idle else LabStep(_heard(lab, event))
        case ResultLost(reason):
            return LabStep(lab) if idle else LabStep(replace(lab, trouble=reason))
        case Gone(reason):
            return LabStep(lab) if idle else LabStep(_gone(lab, reason), (HoldChat(False),))
        case ChatBusy(busy):
            return _chat(lab, busy)
        case Opened(results):
            return LabStep(Lab(results=results, chat_busy=lab.chat_busy)) if idle else LabStep(lab)


def _run(lab: Lab, plan: SweepPlan, began_s: float) -> LabStep:
    results = SweepResults(
        "sweep",
        plan.model,
        "",
        plan.drafters,
        plan.exactness,
        plan.repeats,
        plan.max_tokens,
        began_s,
        reference=plan.model,
    )
    running = Lab(LabStage.RUNNING, plan, results, chat_busy=lab.chat_busy)
    return LabStep(running, (Launch(plan), Pause()) if lab.chat_busy else (HoldChat(True), Launch(plan)))


def _chat(lab: Lab, busy: bool) -> LabStep:
    if busy == lab.chat_busy:
        return LabStep(lab)
    lab = replace(lab, chat_busy=busy)
    if lab.stage is not LabStage.RUNNING:
        return LabStep(lab)
    # Sent each time: the worker may have changed.
    return LabStep(lab, (Pause(),) if busy else (HoldChat(True), GoOn()))


def _gone(lab: Lab, reason: str) -> Lab:
    trouble = lab.trouble
    whole = lab.results is not None and lab.results.ended
    if lab.stage is LabStage.RUNNING and not whole and not trouble:
        trouble = reason
    return replace(lab, stage=LabStage.IDLE, trouble=trouble, seconds_left=None)


def _heard(lab: Lab, event: SweepEvent) -> Lab:
    results = lab.results
    assert results is not None
    match event:
        case SweepStarted():
            results = replace(results, model=event.model, machine=event.machine, noise=event.noise)
            total = event.answers + event.readings
            return replace(lab, results=results, total=total, answers=event.answers)
        case SweepProgress(done, total, doing, seconds_left):
            return replace(lab, done=done, total=total, doing=doing, seconds_left=seconds_left)
        case SweepEnded():
            results = replace(results, ended=True, took_s=event.took_s, answers=lab.answers)
            return replace(lab, results=results)
        case SweepCell():
            return replace(lab, results=replace(results, cells=(*results.cells, event)))
        case SweepTurn():
            return replace(lab, results=replace(results, turns=(*results.turns, event)))
        case SweepReading():
            return replace(lab, results=replace(results, readings=(*results.readings, event)))
        case SweepLikeness():
            return replace(lab, results=replace(results, likenesses=(*results.likenesses, event)))
        case Failed():
            return replace(lab, trouble=f"{event.message} {event.hint}".strip())
