"""IdleRehearsal: rehearsal while idle, in steps of one forward pass.

A request stops rehearsal and waits for at most one step of a few rows. Unfinished answers are then lost, so
batches are small; finished ones are kept, and the next idle time continues after them. Typing only pauses
rehearsal. The engine provides the model and whether rehearsal is wanted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator

from msgspec.structs import replace

from core.errors import DraftlightError
from core.events import RehearsalState, Rehearsing, WaitsFor
from core.models.loader import LoadedModel
from core.rehearsal.rehearsal import Progress, Rehearsal, RehearsalPlan
from core.rehearsal.streams import default_conversations, read_conversations, shipped_ids
from core.tables.prebuilt import rehearsal_paths

_BATCH = 4
_CHUNK_TOKENS = 64
# Number of answered tokens between two tables.
_TABLE_EVERY_TOKENS = 20_000
# Longer than most people stop to think in the middle of a question.
_QUIET_S = 10.0
_SAY_EVERY_S = 1.0


class IdleRehearsal:
    """Rehearses one model after another. `say` receives the state; `clock` gives seconds."""

    def __init__(
        self,
        say: Callable[[Rehearsing], None] = lambda rehearsing: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say = say
        self._clock = clock
        self._model = ""
        self._wanted = False
        self._finished = False
        self._trouble = ""
        self._answering = False
        self._quiet_at = -_QUIET_S
        self._progress = Progress(0, 0, 0)
        self._contexts = 0
        self._made_table = False
        self._rehearsal: Rehearsal | None = None
        self._work: Generator[Progress, None, None] | None = None
        self._reported: Rehearsing | None = None
        self._reported_at = 0.0

    # ---- control

    def want(self, model: str, wanted: bool) -> None:
        """Starts or stops the rehearsal of `model`; an earlier error is retried."""
        self._model, self._wanted = model, wanted
        self._trouble, self._finished = "", False
        if not wanted:
            self._let_go()
        self._report(at_once=True)

    def hold(self) -> None:
        """The user is typing: pauses for some seconds."""
        self._quiet_at = self._clock() + _QUIET_S
        self._report()

    def drop(self) -> None:
        """A request starts: releases the model, memory and files."""
        self._answering = True
        self._let_go()
        self._report()

    def resume(self) -> None:
        """The request is finished."""
        self._answering = False
        self._report()

    def forget_model(self) -> None:
        """The model is replaced or unloaded: rehearsal is no longer wanted."""
        if self._wanted:
            self.want(self._model, False)
        self._model, self._reported = "", None
        self._progress, self._contexts = Progress(0, 0, 0), 0

    # ---- its work

    def piece(self, loaded: LoadedModel) -> bool:
        """Does one piece of work, if rehearsal is on. Returns whether there is more."""
        self._made_table = False
        if not self._wanted or self._finished or self._trouble or self.due_s() > 0:
            return False
        try:
            if self._rehearsal is None or self._work is None:
                self._rehearsal = _begin(loaded)
                self._work = self._rehearsal.work()
            self._take(next(self._work))
        except StopIteration:
            self._take(self._rehearsal.progress() if self._rehearsal else self._progress)
            self._finished = True
            self._let_go()
        except (DraftlightError, MemoryError, RuntimeError) as error:  # MLX out of memory, among others
            self._trouble = str(error)
            self._let_go()
        self._report()
        return self._work is not None

    @property
    def made_table(self) -> bool:
        """Whether the last piece wrote a table."""
        return self._made_table

    def due_s(self) -> float:
        """Seconds until the pause for typing ends; 0 if work can be done now."""
        return max(0.0, self._quiet_at - self._clock()) if self._wanted else 0.0

    @property
    def state(self) -> Rehearsing:
        """The current state."""
        waits_for: WaitsFor = "answer" if self._answering else "quiet" if self.due_s() > 0 else ""
        state: RehearsalState
        if not self._wanted:
            state = "off"
        elif self._trouble:
            state = "failed"
        elif self._finished:
            state = "done"
        else:
            state = "waiting" if waits_for or self._work is None else "running"
        progress = self._progress
        return Rehearsing(
            self._model,
            state,
            waits_for if state == "waiting" else "",
            progress.answered,
            progress.prompts,
            progress.tokens,
            self._contexts,
            self._trouble,
        )

    # ---- inside

    def _take(self, progress: Progress) -> None:
        self._progress = progress
        if progress.contexts:
            self._contexts, self._made_table = progress.contexts, True

    def _let_go(self) -> None:
        """Progress of the current work."""
        if self._work is not None:
            self._work.close()
        self._work = self._rehearsal = None

    def _report(self, *, at_once: bool = False) -> None:
        """Reports a new state, or progress once per second, unless rehearsal was never wanted."""
        now, state = self._clock(), self.state
        if self._reported is None:
            news = self._wanted
        elif _without_counts(state) != _without_counts(self._reported):
            news = True
        else:
            news = state != self._reported and now - self._reported_at >= _SAY_EVERY_S
        if news or at_once:
            self._reported, self._reported_at = state, now
            self._say(state)


def _without_counts(state: Rehearsing) -> Rehearsing:
    return replace(state, answered=0, prompts=0, tokens=0)


def _begin(loaded: LoadedModel) -> Rehearsal:
    records, table = rehearsal_paths(loaded.info.name)
    plan = RehearsalPlan(
        records,
        table,
        batch=_BATCH,
        chunk_tokens=_CHUNK_TOKENS,
        table_every_tokens=_TABLE_EVERY_TOKENS,
    )
    conversations = read_conversations(default_conversations())
    return Rehearsal(loaded, conversations, plan, shipped_ids(loaded.info))
