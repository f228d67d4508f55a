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
    """A drafter on a class against plain decoding: the median ratio, and the least and the most."""

    drafter: str
    kind: str
    ratio: float
    least: float
    most: float
    pairs: int


class ChartMark(Struct, frozen=True):
    """One drafted answer: whether it is the plain one."""

    prompt: int
    number: int
    pair: SweepPair


class Parity(Struct, frozen=True):
    """All answers of a drafter on a class, by prompt and pair."""

    drafter: str
    kind: str
    marks: tuple[ChartMark, ...]


class Curve(Struct, frozen=True):
    """Values by number (a place in the draft, a turn), from 1 on. `plain`: no drafter's."""

    name: str
    points: tuple[tuple[int, float], ...]
    plain: bool = False


class Keep(Struct, frozen=True):
    """A share of the prompt: seconds to the first token, and agreement with reading everything (None:
    not measured). `as_asked` is False where another reading ran than was asked for."""

    keep_pct: float
    ttft_s: float
    agreement: float | None
    as_asked: bool = True


def drafters(results: SweepResults) -> list[str]:
    """In the order of the results."""
    return _unique([*(cell.drafter for cell in results.cells), *(turn.drafter for turn in results.turns)])


def kinds(results: SweepResults) -> list[str]:
    """The classes of single prompts, in the order of the results."""
    return _unique(cell.kind for cell in results.cells)


def speeds(results: SweepResults) -> list[Speed]:
    """Every drafter on every class of which there are speeds."""
    found = []
    for drafter in drafters(results):
        for kind in kinds(results):
            ratios = [pair.ratio for pair in _pairs(results, drafter, kind) if pair.ratio]
            if ratios:
                found.append(Speed(drafter, kind, median(ratios), min(ratios), max(ratios), len(ratios)))
    return found


def plain_speed(results: SweepResults) -> float:
    """The median of plain decoding, tokens a second; 0 if nobody measured it."""
    held = [
        pair.plain_tokens_per_s for cell in results.cells for pair in cell.pairs if pair.plain_tokens_per_s
    ]
    return median(held) if held else 0.0


def parity(results: SweepResults) -> list[Parity]:
    """Every drafter on every class."""
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
    """For each drafter the share accepted at each place of the draft, over all classes.

    A place that was hardly ever tested says nothing: the curve ends before it.
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
    """For each drafter its speed over the turns of the conversations, and plain decoding's."""
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
    """From the smallest share on; reading everything agrees with itself."""
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
    """How many drafted answers are the plain ones, and of how many."""
    pairs = [pair for cell in results.cells for pair in cell.pairs]
    return sum(pair.equal for pair in pairs), len(pairs)


def common_start(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
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
    """Whether there is a process, and whether it was told to end."""

    IDLE = "idle"
    RUNNING = "running"
    STOPPING = "stopping"


class SweepPlan(Struct, frozen=True):
    """What to sweep. `files` are prompts files; `classes` of them are used. `keeps` are percentages."""

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
    """`results` are those of the sweep that runs or ran last, or that were opened. `seconds_left`
    None: nobody knows. `trouble` is why a sweep could not be done, a sentence."""

    stage: LabStage = LabStage.IDLE
    plan: SweepPlan | None = None
    results: SweepResults | None = None
    done: int = 0
    total: int = 0
    doing: str = ""
    seconds_left: float | None = None
    chat_busy: bool = False
    trouble: str = ""
    answers: int = 0  # of the total; the others are long prompts

    @property
    def paused(self) -> bool:
        """Whether the sweep stands still for the chat."""
        return self.stage is LabStage.RUNNING and self.chat_busy


# ---- what comes in


class LabRun(Struct, frozen=True):
    """Sweep this. `began_s` is the time now, Unix time."""

    plan: SweepPlan
    began_s: float


class StopSweep(Struct, frozen=True):
    """End the sweep; what is measured stays."""


class Said(Struct, frozen=True):
    """The sweep's process said this."""

    event: SweepEvent


class ResultLost(Struct, frozen=True):
    """The process said something that could not be read; `reason` says why."""

    reason: str


class Gone(Struct, frozen=True):
    """The sweep's process has ended. `reason` says why if that was nobody's wish."""

    reason: str = ""


class ChatBusy(Struct, frozen=True):
    """Whether the chat's worker is at work."""

    busy: bool


class Opened(Struct, frozen=True):
    """Other results are to be seen."""

    results: SweepResults


Given = LabRun | StopSweep | Said | ResultLost | Gone | ChatBusy | Opened


# ---- what is to be done


class Launch(Struct, frozen=True):
    """Start a process for this."""

    plan: SweepPlan


class Pause(Struct, frozen=True):
    """Let the process stand still."""


class GoOn(Struct, frozen=True):
    """Let it go on."""


class HoldChat(Struct, frozen=True):
    """Whether the chat's worker is to do only what it is asked."""

    wanted: bool


class RunEnd(Struct, frozen=True):
    """Tell the process to end."""


Effect = Launch | Pause | GoOn | HoldChat | RunEnd


class LabStep(Struct, frozen=True):
    """What one input leads to."""

    lab: Lab
    effects: tuple[Effect, ...] = ()


def advance(lab: Lab, given: Given) -> LabStep:
    """The Lab after `given`. What does not fit the stage changes nothing."""
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
    # Told each time: it may be another worker than before.
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
