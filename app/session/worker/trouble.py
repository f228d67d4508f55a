"""Trouble: what a banner shows, in plain words, made from what went wrong.

Words come from `app.strings`; which facts lead to which words is decided here. No Qt.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from app.session.turn.effects import Missing, WorkerDied, WorkerStuck
from app.session.worker import strings
from app.session.worker.status import recognised
from core.errors import ModelNotHereError, OutOfMemoryError
from core.events import Failed, ModelInfo, TableStatus
from core.settings.prefill import smaller_context

# What the banner's buttons do: a new worker, one that loads over the machines that are there, loading once
# more, a new chat database, chats from a backup, showing the tables, a smaller context, getting a model, or
# nothing.
Remedy = Literal["", "restart", "anew", "load", "repair", "restore", "tables", "smaller", "download"]


class Until(IntEnum):
    """What ends a trouble, from what comes soonest; each ends those before it, too."""

    MOVES = 0  # the stuck worker moves again
    READY = 1  # a model is ready: so are worker and answers
    ASKED = 2  # the next question
    OVER = 3  # only who said it can say that it is over


class Trouble(Struct, frozen=True):
    """`log` is shown under Details; without lines there are no details. `smaller_tokens` is a smaller
    context that may help, as a second way out; 0 offers none. `model` is what can be downloaded."""

    title: str
    text: str
    remedy: Remedy = ""
    log: tuple[str, ...] = ()
    until: Until = Until.READY
    smaller_tokens: int = 0
    model: str = ""


def of_death(died: WorkerDied, written_tokens: int | None = None, context_tokens: int = 0) -> Trouble:
    """The worker is gone, or could not be started.

    `written_tokens` are those of the answer that was cut off, None if there was none; `context_tokens`
    is what an answer may fill.
    """
    if died.exited is None:
        return Trouble(strings.NOT_STARTED_TITLE, died.message, "restart")
    how = (
        strings.ended_by_signal(died.exited.signal_name)
        if died.exited.signal_name
        else strings.ended_with_status(died.exited.returncode)
    )
    title = strings.DIED_LOADING_TITLE if died.phase in ("starting", "loading") else strings.DIED_TITLE
    log = died.exited.log or (strings.NO_LOG,)
    if died.ended is not None:
        ended = died.ended
        title = strings.machine_ended(ended.machine, ended.end)
        said = " ".join(filter(None, (ended.message, ended.hint, strings.chat_kept(written_tokens))))
        return Trouble(title, said, "anew", log)
    # What the worker said before it went is a better reason than how it went.
    # Both may be how a system answers to full memory, and an answer in the works is what fills it.
    full = died.exited.signal_name in ("SIGKILL", "SIGABRT") and written_tokens is not None
    smaller_tokens = smaller_context(context_tokens) if full else 0
    text = f"{died.message or how} {strings.chat_kept(written_tokens)}"
    return Trouble(title, text, "restart", log, smaller_tokens=smaller_tokens)


def of_silence(stuck: WorkerStuck) -> Trouble:
    """The worker lives and does not move."""
    return Trouble(strings.STUCK_TITLE, strings.silent_for(stuck.seconds), "restart", until=Until.MOVES)


def of_missing(info: ModelInfo, missing: Sequence[Missing]) -> Trouble:
    """The model is ready, but not over all the machines that it was to run over."""
    title = strings.started_anew(info.name, len(info.machines), [each.name for each in missing])
    return Trouble(title, _why(missing), until=Until.ASKED)


def of_failed_load(
    failed: Failed, kept: str = "", model: str = "", missing: Sequence[Missing] = ()
) -> Trouble:
    """No model, and why; or `kept` goes on answering. `missing` were left out before."""
    stays = strings.model_stays(kept) if kept else ""
    if failed.code == ModelNotHereError.code:
        return Trouble(failed.message, stays, "download", model=model)
    left_out = strings.left_out([each.name for each in missing]) if missing else ""
    parts = (left_out, _why(missing), failed.message, failed.hint, stays)
    text = " ".join(part for part in parts if part)
    return Trouble(strings.MODEL_FAILED_TITLE, text, "" if kept else "load")


def of_failure(failed: Failed, *, text_is_back: bool = False, context_tokens: int = 0) -> Trouble:
    """A request that failed. Faults of the worker itself offer a restart; where memory was short,
    less than the `context_tokens` that an answer may fill."""
    back = strings.TEXT_IS_BACK if text_is_back else ""
    text = " ".join(part for part in (failed.hint, back) if part)
    smaller_tokens = smaller_context(context_tokens) if failed.code == OutOfMemoryError.code else 0
    remedy: Remedy = "" if failed.kind == "request" else "restart"
    return Trouble(failed.message, text, remedy, smaller_tokens=smaller_tokens)


def of_tables(status: TableStatus) -> Trouble:
    """Saved tables that cannot be used, with the names of the files; or why nothing is saved."""
    said = " ".join(status.notes)
    if not status.refused:
        return Trouble(said, "", "tables", until=Until.ASKED)
    return Trouble(strings.tables_refused(recognised(status.family_name)), said, "tables", until=Until.ASKED)


def _why(missing: Sequence[Missing]) -> str:
    """What is wrong with them; said once where it is the same."""
    return " ".join(dict.fromkeys(each.problem for each in missing if each.problem))


def of_unreadable(message: str) -> Trouble:
    """The worker broke the protocol before it could be used."""
    return Trouble(strings.UNREADABLE_TITLE, message, "restart")


class Troubles(Struct, frozen=True):
    """`at` is the number of the one that is shown, from 0."""

    held: tuple[Trouble, ...] = ()
    at: int = 0

    @property
    def shown(self) -> Trouble | None:
        """The one in front; None if all is well."""
        return self.held[self.at] if self.held else None

    def with_new(self, trouble: Trouble) -> Troubles:
        """`trouble` in front. What is held already is not held twice, and stays where it is."""
        return self if trouble in self.held else Troubles((trouble, *self.held))

    def without(self, trouble: Trouble | None) -> Troubles:
        """It is over, or known. The one that comes next is shown in its place."""
        if trouble is None or trouble not in self.held:
            return self
        number = self.held.index(trouble)
        held = tuple(each for each in self.held if each != trouble)
        at = self.at - 1 if number < self.at else self.at
        return Troubles(held, min(at, max(0, len(held) - 1)))

    def after(self, happened: Until) -> Troubles:
        """What lasts longer than until this happened."""
        left = self
        for trouble in self.held:
            if trouble.until <= happened:
                left = left.without(trouble)
        return left

    def next(self) -> Troubles:
        """The one behind the one that is shown; behind the last, the first."""
        return replace(self, at=(self.at + 1) % len(self.held)) if self.held else self
