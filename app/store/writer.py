"""Writer: saves chats, projects and documents in batches on its own thread, so that no caller waits.

Each chat has one waiting state; a newer one replaces it. Every batch is one transaction. A batch that
fails keeps waiting, is reported once, and is retried with a new connection; `close()` tries a last time, for
a limited time. `waiting()` returns unwritten states, so that readers see everything that was saved. A chat
with a value that SQLite refuses waits until it changes and does not block others.

Permanent deletions are carried out last: first in all copies of the database, so that no copy brings a
deleted chat back, then in the database, and its log is truncated.

Durability: after `when_kept()` has reported True, everything saved before it survives the end of this
process and, if the disk reports its writes truthfully, a loss of power. Other writes, such as an answer
in progress, do not wait for the disk: the end of the process loses at most a second of them, a loss of
power may lose more.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Mapping

from app.session.chats.conversation import Conversation
from app.store.chat_store import ChatStore, Job, Mark, deleted_row
from app.store.clock import SteadyClock

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


class Writer:
    """Starts its thread, which calls `open_store` at once, so that the first message does not wait for it.

    If opening fails, the next batch tries again and reports it. `tell` gets an error, or None when writing
    works again. `erase_copies` deletes rows from all copies of the database. All are called on the thread.
    `jobs` wait from the beginning.
    """

    def __init__(
        self,
        open_store: Callable[[], ChatStore],
        tell: Callable[[Exception | None], None],
        *,
        erase_copies: Callable[[Mapping[str, Job]], None] = lambda jobs: None,
        clock: SteadyClock | None = None,
        jobs: Mapping[str, Job] | None = None,
        interval_s: float = INTERVAL_S,
        retry_s: float = RETRY_S,
    ) -> None:
        self._open_store = open_store
        self._tell = tell
        self._erase_copies = erase_copies
        self._clock = clock or SteadyClock()
        self._interval_s = interval_s
        self._retry_s = retry_s
        self._jobs: dict[str, Job] = dict(jobs or {})
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

    def add(self, key: str, job: Job) -> None:
        """Lets `job` wait, in place of an earlier one under `key`."""
        with self._wake:
            self._jobs[key] = job
            self._refused.pop(key, None)
            self._wake.notify_all()

    def save(self, chat: Conversation) -> None:
        self.add(chat.id, chat)

    def purge(self, chat_id: str) -> None:
        self.add(chat_id, None)

    def waiting(self) -> dict[str, Job]:
        """Returns the jobs that are not written, or may not be after `close()`."""
        with self._wake:
            return {**self._refused, **self._in_flight, **self._jobs}

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
            if not any(chat.id in jobs for jobs in (self._jobs, self._in_flight, self._refused)):
                self._remember(chat)

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

        Waits at most `timeout_s`; `waiting()` then returns the other jobs.
        """
        with self._wake:
            self._closing, self._abandoned = True, not write
            self._wake.notify_all()
        self._hurry.set()
        self._thread.join(timeout_s)
        return not self.waiting()

    # ---- on the thread

    def _run(self) -> None:
        store: ChatStore | None = None
        rest_s = 0.0
        while True:
            with self._wake:
                # Without a connection one is opened even if nothing waits, so that a failure is known.
                self._wake.wait_for(lambda: self._jobs or self._closing, None if store else 0.0)
                last = self._closing
                if self._abandoned:
                    break
            if not last:
                self._hurry.wait(rest_s)
                self._hurry.clear()
            begun_s = time.monotonic()
            batch, waiters = self._take()
            try:
                if batch or not last:
                    store = store or self._open_store()
                    self._carry_out(store, batch, durable=bool(waiters))
                took_s = time.monotonic() - begun_s
                rest_s = max(self._interval_s, min(_REST_FACTOR * took_s, _LONGEST_REST_S))
                kept = not self._refused
            except Exception as error:  # any error: the chats in memory are the only copy
                self._give_back(error)
                rest_s, kept = self._retry_s, False
                if store:
                    store.close()
                store = None
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

    def _take(self) -> tuple[dict[str, Job], list[Callable[[bool], None]]]:
        with self._wake:
            self._in_flight, self._jobs = self._jobs, {}
            waiters, self._waiters = self._waiters, []
            return self._in_flight, waiters

    def _carry_out(self, store: ChatStore, batch: dict[str, Job], *, durable: bool) -> None:
        """Writes `batch`. Raises with the jobs that were not written in flight."""
        deleted = {key: job for key, job in batch.items() if deleted_row(key, job)}
        others = {key: job for key, job in batch.items() if key not in deleted}
        self._done(others, self._write(store, others, durable=durable) if others else {})
        if deleted:
            self._erase_copies(deleted)
            refused = self._write(store, deleted, durable=True)
            store.truncate_log()
            self._done(deleted, refused)

    def _write(self, store: ChatStore, batch: dict[str, Job], *, durable: bool) -> dict[str, Exception]:
        """Writes `batch`; returns the chats with a value that SQLite refuses, and the errors."""
        refused: dict[str, Exception] = {}
        with store.transaction(durable=durable):
            for key, job in batch.items():
                try:
                    with store.part():
                        store.do(key, job, self._known.get(key))
                except Exception as error:
                    if isinstance(error, sqlite3.Error) and not isinstance(error, _ABOUT_A_VALUE):
                        raise
                    refused[key] = error
            if any(deleted_row(key, job) for key, job in batch.items()):
                store.forget_words()
            store.set_mark(Mark(store.mark().changes + 1, *self._clock.read()))
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
            self._in_flight = {key: job for key, job in self._in_flight.items() if key not in batch}
            for error in refused.values():
                self._refusal = error
            if not (self._refused or refused):
                self._refusal = None
            tell = self._failing or self._said != (self._refusal is not None)
            self._failing, self._said = False, self._refusal is not None
            self._wake.notify_all()
        if tell:
            self._tell(self._refusal)

    def _give_back(self, error: Exception) -> None:
        with self._wake:
            for key in self._in_flight:  # parts of it may be written, so all of it is written again
                self._known.pop(key, None)
            self._jobs, self._in_flight = {**self._in_flight, **self._jobs}, {}
            first, self._failing, self._said = not self._failing, True, True
            self._wake.notify_all()
        if first:
            self._tell(error)

    def _remember(self, chat: Conversation) -> None:
        self._known.pop(chat.id, None)
        self._known[chat.id] = chat
        while len(self._known) > _KNOWN_CHATS:
            self._known.pop(next(iter(self._known)))
