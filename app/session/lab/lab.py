"""The Lab's sweep as a pure state machine.

A sweep runs in a process of its own, on the same machine as the chat. So that the chat stays
usable and the figures are right, it stands still while the chat's worker is at work, and that
worker does nothing of its own accord while there is a sweep:

    idle ─run→ running ─ended, gone→ idle        stop: running → stopping ─gone→ idle
                 │ ↑ chat busy: Pause, chat idle again: GoOn

`advance(lab, given)` takes what the person wants, what the sweep said, and how the chat is; it
returns the next state and what to do. Results gather in `results`, whatever ends the sweep.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from core.events import Failed
from core.events.sweep import (
    SweepCell,
    SweepEnded,
    SweepEvent,
    SweepLikeness,
    SweepProgress,
    SweepReading,
    SweepResults,
    SweepStarted,
    SweepTurn,
)


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
