"""Trouble: a message in the banner, made from a failure. No Qt.

The texts are in `strings`; this module decides which facts lead to which text.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from app.session import strings
from app.session.status import recognised
from app.session.turn.effects import WorkerDied, WorkerStuck
from core.errors import ModelNotHereError, NotEnoughMemoryError, OutOfMemoryError
from core.events import Failed, TableStatus
from core.settings.prefill import smaller_context
from core.system.metal import fault_of

# Actions of the banner's buttons: a new worker, loading once more, a new chat database (the second also
# without unreadable chats), chats from a backup, showing the tables, a smaller context, a download, none.
Remedy = Literal[
    "", "restart", "load", "repair", "repair-incomplete", "restore", "tables", "smaller", "download"
]


class Until(IntEnum):
    """The event that ends a trouble, earliest first; each also ends those before it."""

    MOVES = 0  # the stuck worker responds again
    READY = 1  # a model is ready: so are worker and answers
    ASKED = 2  # the next question
    OVER = 3  # only its source can end it


class Trouble(Struct, frozen=True):
    """`log` is shown under Details, which are hidden without lines. `smaller_tokens` is a smaller context
    offered as a second remedy, 0 for none. `model` is the model that can be downloaded.

    `chat` is the id of the chat that it concerns, over which alone it is shown; empty: over all. The smaller
    context is only offered in the chat `smaller_in`; empty: in all.
    """

    title: str
    text: str
    remedy: Remedy = ""
    log: tuple[str, ...] = ()
    until: Until = Until.READY
    smaller_tokens: int = 0
    model: str = ""
    chat: str = ""
    smaller_in: str = ""


def of_death(
    died: WorkerDied, written_tokens: int | None = None, context_tokens: int = 0, chat: str = ""
) -> Trouble:
    """The worker exited or could not be started.

    `written_tokens` are the tokens of the interrupted answer, None if there was none; `context_tokens` is the
    context size of an answer in its chat `chat`.
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
    # The worker's last failure explains more than its exit status.
    fault = next((found for line in reversed(died.exited.log) if (found := fault_of(line))), "")
    how = strings.GPU_ENDED.get(fault, how)
    # When memory runs out the system kills by SIGKILL, and MLX aborts with the reason on stderr.
    full = fault == "memory" or (died.exited.signal_name == "SIGKILL" and not fault)
    smaller_tokens = smaller_context(context_tokens) if full and written_tokens is not None else 0
    text = f"{died.message or how} {strings.chat_kept(written_tokens)}"
    return Trouble(title, text, "restart", log, smaller_tokens=smaller_tokens, smaller_in=chat)


def of_silence(stuck: WorkerStuck) -> Trouble:
    return Trouble(strings.STUCK_TITLE, strings.silent_for(stuck.seconds), "restart", until=Until.MOVES)


def of_failed_load(failed: Failed, kept: str = "", model: str = "") -> Trouble:
    """No model is loaded, and why; or `kept` stays loaded."""
    stays = strings.model_stays(kept) if kept else ""
    if failed.code == ModelNotHereError.code:
        return Trouble(failed.message, stays, "download", model=model)
    text = " ".join(part for part in (failed.message, failed.hint, stays) if part)
    return Trouble(strings.MODEL_FAILED_TITLE, text, "" if kept else "load")


def of_failure(
    failed: Failed, *, text_is_back: bool = False, context_tokens: int = 0, chat: str = ""
) -> Trouble:
    """A failed request, of the chat `chat` if it is one of a chat. Faults of the worker offer a restart; if
    memory was short, a context smaller than `context_tokens`.
    """
    back = strings.TEXT_IS_BACK if text_is_back else ""
    text = " ".join(part for part in (failed.hint, back) if part)
    short = failed.code in (OutOfMemoryError.code, NotEnoughMemoryError.code)
    smaller_tokens = smaller_context(context_tokens) if short else 0
    remedy: Remedy = "" if failed.kind == "request" else "restart"
    return Trouble(failed.message, text, remedy, smaller_tokens=smaller_tokens, chat=chat)


def of_tables(status: TableStatus) -> Trouble:
    """Saved tables that cannot be used, with the names of the files; or why nothing is saved."""
    said = " ".join(status.notes)
    if not status.refused:
        return Trouble(said, "", "tables", until=Until.ASKED)
    return Trouble(strings.tables_refused(recognised(status.family_name)), said, "tables", until=Until.ASKED)


def of_unreadable(message: str) -> Trouble:
    """The worker broke the protocol before it could be used."""
    return Trouble(strings.UNREADABLE_TITLE, message, "restart")


class Troubles(Struct, frozen=True):
    """The open messages; `at` is the index of the displayed one among those of the chat in view, `chat`."""

    held: tuple[Trouble, ...] = ()
    at: int = 0
    chat: str = ""

    @property
    def visible(self) -> tuple[Trouble, ...]:
        """Problems that concern the open chat, or all chats."""
        return tuple(each for each in self.held if each.chat in ("", self.chat))

    @property
    def shown(self) -> Trouble | None:
        """The displayed message; None if there is none."""
        visible = self.visible
        return visible[self.at] if visible else None

    def with_new(self, trouble: Trouble) -> Troubles:
        """Returns them with `trouble` displayed, if it concerns the chat in view. One that is open already
        keeps its position and is not added twice.
        """
        if trouble in self.held:
            return self
        added = replace(self, held=(trouble, *self.held))
        return replace(added, at=0) if trouble in added.visible else added

    def without(self, trouble: Trouble | None) -> Troubles:
        """Returns them without `trouble`; the next one is displayed in its place."""
        if trouble is None or trouble not in self.held:
            return self
        before, shown = self.visible, self.shown
        left = replace(self, held=tuple(each for each in self.held if each != trouble))
        at = left.visible.index(shown) if shown in left.visible else min(self.at, len(before) - 2)
        return replace(left, at=max(0, at))

    def after(self, happened: Until, chat: str = "") -> Troubles:
        """Returns those that outlast this event, which concerns only `chat` if that is not empty."""
        left = self
        for trouble in self.held:
            if trouble.until <= happened and (not chat or trouble.chat in ("", chat)):
                left = left.without(trouble)
        return left

    def in_view(self, chat: str) -> Troubles:
        """Returns them with `chat` in view. The displayed one stays if it is visible there."""
        moved = replace(self, chat=chat, at=0)
        return replace(moved, at=moved.visible.index(self.shown)) if self.shown in moved.visible else moved

    def next(self) -> Troubles:
        """Returns them with the next one displayed, the first after the last."""
        count = len(self.visible)
        return replace(self, at=(self.at + 1) % count) if count else self
