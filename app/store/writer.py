"""Writer: saves chats, projects and documents in batches on its own thread, so that no caller waits.

Each chat has one waiting state; a newer one replaces it. Every batch is one transaction. A batch that
fails keeps waiting, is reported once, and is retried; `close()` tries a last time, for a limited time.
`pending()` returns unwritten states, so that readers see everything that was saved. A chat with a value
that SQLite refuses waits until it changes and does not block others.

Durability: after `when_kept()` has reported True, everything saved before it survives the end of this
process and, if the disk reports its writes truthfully, a loss of power. Other writes, such as an answer
in progress, do not wait for the disk: the end of the process loses at most a second of them, a loss of
power may lose more.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable

from app.session.chats.conversation import Conversation
from app.session.chats.projects import Project
from app.store.chat_store import ChatStore
from app.store.documents import DocumentJob, carry_out, key_of
from app.store.rows import ProjectGone, ProjectJob
from app.store.rows import key_of as key_of_project

INTERVAL_S = 0.25
RETRY_S = 3.0
# A slow disk is used a twentieth of the time, but is never more than a second behind the screen.
_REST_FACTOR = 20.0
_LONGEST_REST_S = 0.6
CLOSE_S = 5.0
# Errors about a value; SQLite's other errors concern the file.
_ABOUT_A_VALUE = (sqlite3.DataError, sqlite3.InterfaceError, sqlite3.ProgrammingError)
# Number of chats whose written state is remembered, so that only changes to them are written.
_KNOWN_CHATS = 6

# What waits under a key: a chat's newest state, None to delete it, or a change of a project or document.
Job = Conversation | ProjectJob | DocumentJob | None


class Writer:
    """Starts its thread, which calls `open_store` at once, so that the first message does not wait for it.

    If opening fails, the next batch tries again and reports it. `tell` gets an error, or None when writing
    works again; it is called on the thread.
    """

    def __init__(
        self,
        open_store: Callable[[], ChatStore],
        tell: Callable[[Exception | None], None],
        *,
        interval_s: float = INTERVAL_S,
        retry_s: float = RETRY_S,
    ) -> None:
        self._open_store = open_store
        self._tell = tell
        self._interval_s = interval_s
        self._retry_s = retry_s
        self._jobs: dict[str, Job] = {}
        self._in_flight: dict[str, Job] = {}
        self._refused: dict[str, Job] = {}
        self._refusal: Exception | None = None
        self._known: dict[str, Conversation] = {}
        self._waiters: list[Callable[[bool], None]] = []
        self._failing = self._said = False
        self._wake = threading.Condition()
        self._hurry = threading.Event()
        self._closing = self._abandoned = False
        self._thread = threading.Thread(target=self._run, name="draftlight-chats", daemon=True)
        self._thread.start()

    def save(self, chat: Conversation) -> None:
        self._add(chat.id, chat)

    def purge(self, chat_id: str) -> None:
        self._add(chat_id, None)

    def do_document(self, job: DocumentJob) -> None:
        self._add(key_of(job), job)

    def do_project(self, job: ProjectJob) -> None:
        self._add(key_of_project(job), job)

    def pending_document(self, key: str) -> DocumentJob | None:
        """Returns the job that waits under `key`, if any."""
        with self._wake:
            job = next((waiting[key] for waiting in self._waiting() if key in waiting), None)
        return None if isinstance(job, Conversation | Project | ProjectGone) else job

    def when_kept(self, done: Callable[[bool], None]) -> None:
        """Writes the waiting jobs at once, durably.

        Calls `done` with True then, or with False if that fails; on the thread, or before it returns.
        """
        with self._wake:
            at_once = self._closing or not (self._jobs or self._in_flight)
            kept = not (self._jobs or self._in_flight or self._refused)
            if not at_once:
                self._waiters.append(done)
                self._wake.notify_all()
        if at_once:
            done(kept)
        else:
            self._hurry.set()

    def note(self, chat: Conversation) -> None:
        """Remembers that `chat` was just read from the database."""
        with self._wake:
            if not any(chat.id in waiting for waiting in self._waiting()):
                self._remember(chat)

    def pending(self, chat_id: str) -> tuple[bool, Conversation | None]:
        """Returns whether the chat has an unwritten state, and that state (None: deleted)."""
        with self._wake:
            for waiting in self._waiting():
                if chat_id in waiting:
                    job = waiting[chat_id]
                    return True, job if isinstance(job, Conversation) else None
        return False, None

    def flush(self, timeout_s: float = 10.0) -> bool:
        """Waits until everything is written; False if that fails."""
        end_s = time.monotonic() + timeout_s
        self._hurry.set()
        with self._wake:
            while (self._jobs or self._in_flight) and not self._failing:
                if not self._wake.wait(max(0.0, end_s - time.monotonic())):
                    return False
            return not (self._jobs or self._in_flight or self._refused)

    def close(self, *, write: bool = True, timeout_s: float = CLOSE_S) -> bool:
        """Writes the waiting jobs if `write`, and ends the thread. False if a job is left.

        Waits at most `timeout_s`; `unsaved()` then returns the other jobs.
        """
        with self._wake:
            self._closing, self._abandoned = True, not write
            self._wake.notify_all()
        self._hurry.set()
        self._thread.join(timeout_s)
        return not self.unsaved()

    def unsaved(self) -> dict[str, Job]:
        """Returns the jobs that may not be written, after `close()`."""
        with self._wake:
            return {**self._refused, **self._in_flight, **self._jobs}

    # ---- on the thread

    def _run(self) -> None:
        store = self._opened()
        rest_s = self._interval_s
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._jobs or self._closing)
                last = self._closing
                if self._abandoned:
                    break
            if not last:
                self._hurry.wait(rest_s)
                self._hurry.clear()
            begun_s = time.monotonic()
            batch, waiters = self._take()
            refused: dict[str, Exception] = {}
            try:
                if batch:
                    store = store or self._open_store()
                    refused = self._write(store, batch, durable=bool(waiters))
                self._done(batch, refused)
                took_s = time.monotonic() - begun_s
                rest_s = max(self._interval_s, min(_REST_FACTOR * took_s, _LONGEST_REST_S))
                kept = not self._refused
            except Exception as error:  # any error: the chats in memory are the only copy
                self._give_back(batch, error)
                rest_s, kept = self._retry_s, False
            for done in waiters:
                done(kept)
            if last:
                break
        if store:
            store.close()
        with self._wake:
            waiters, self._waiters = self._waiters, []
        for done in waiters:
            done(False)

    def _opened(self) -> ChatStore | None:
        try:
            return self._open_store()
        except Exception:  # reported by the first batch that fails
            return None

    def _waiting(self) -> tuple[dict[str, Job], ...]:
        """The unwritten jobs, the newest first."""
        return self._jobs, self._in_flight, self._refused

    def _take(self) -> tuple[dict[str, Job], list[Callable[[bool], None]]]:
        with self._wake:
            self._in_flight, self._jobs = self._jobs, {}
            waiters, self._waiters = self._waiters, []
            return self._in_flight, waiters

    def _write(self, store: ChatStore, batch: dict[str, Job], *, durable: bool) -> dict[str, Exception]:
        """Writes `batch`; returns the chats with a value that SQLite refuses, and the errors."""
        refused: dict[str, Exception] = {}
        with store.transaction(durable=durable):
            for chat_id, chat in batch.items():
                try:
                    with store.part():
                        if chat is None:
                            store.purge(chat_id)
                        elif isinstance(chat, Conversation):
                            store.write(chat, self._known.get(chat_id))
                        elif isinstance(chat, Project | ProjectGone):
                            store.project_rows.do(chat)
                        else:
                            carry_out(chat, store.document_rows)
                except Exception as error:
                    if isinstance(error, sqlite3.Error) and not isinstance(error, _ABOUT_A_VALUE):
                        raise
                    refused[chat_id] = error
        return refused

    def _done(self, batch: dict[str, Job], refused: dict[str, Exception]) -> None:
        with self._wake:
            for chat_id, chat in batch.items():
                if chat_id in refused:
                    self._known.pop(chat_id, None)
                    if chat_id not in self._jobs:
                        self._refused[chat_id] = chat
                elif isinstance(chat, Conversation):
                    self._remember(chat)
                else:
                    self._known.pop(chat_id, None)
            self._in_flight = {}
            for error in refused.values():
                self._refusal = error
            if not (self._refused or refused):
                self._refusal = None
            tell = bool(batch) and (self._failing or self._said != (self._refusal is not None))
            if batch:
                self._failing, self._said = False, self._refusal is not None
            self._wake.notify_all()
        if tell:
            self._tell(self._refusal)

    def _give_back(self, batch: dict[str, Job], error: Exception) -> None:
        with self._wake:
            self._jobs = {**batch, **self._jobs}
            self._in_flight = {}
            for chat_id in batch:  # parts of it may be written, so all of it is written again
                self._known.pop(chat_id, None)
            first, self._failing, self._said = not self._failing, True, True
            self._wake.notify_all()
        if first:
            self._tell(error)

    def _add(self, chat_id: str, chat: Job) -> None:
        with self._wake:
            self._jobs[chat_id] = chat
            self._refused.pop(chat_id, None)
            self._wake.notify_all()

    def _remember(self, chat: Conversation) -> None:
        self._known.pop(chat.id, None)
        self._known[chat.id] = chat
        while len(self._known) > _KNOWN_CHATS:
            self._known.pop(next(iter(self._known)))
