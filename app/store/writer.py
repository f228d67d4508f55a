"""Writer: saves chats, projects and documents in batches on its own thread, so that no caller waits.

Each key has one waiting job; a newer one replaces it. The thread takes all that wait and makes one attempt,
whose result is settled in this order: the jobs that failed wait again, a change of the failure is reported,
and then callers that wait for the result get it. So a caller that learns that saving failed, or works again,
finds the reason reported. A failed attempt is repeated later with a new connection. `waiting()` returns
unwritten states, so that readers see everything that was saved. A chat with a value that SQLite refuses waits
until it changes and does not block others.

The others of a batch are one transaction. If the earlier states of a chat are to be erased, the copies are
rewritten without the chat, until the next backup has it again, and the log is truncated. Permanent deletions
are carried out last: first in all copies of the database, so that no copy brings a deleted chat back, then in
the database, and its log is truncated.
After a minute without a job the thread makes a backup if one is due, and abandons it for the next job.

`close()` ends the thread after one more attempt, and returns after a limited time even if the disk hangs. The
thread then changes nothing any more and ends when the disk answers.

Durability: after `when_kept()` has reported True, everything saved before it survives the end of this
process and, if the disk reports its writes truthfully, a loss of power. Other writes, such as an answer
in progress, do not wait for the disk: the end of the process loses at most a second of them, a loss of
power may lose more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from queue import Empty, SimpleQueue

from app.session.chats.conversation import Conversation
from app.session.images import hashes_of
from app.store.chat_store import ChatStore, Job, Key, Mark, key_of
from app.store.clock import SteadyClock
from app.store.faults import StoreError, saving_trouble

INTERVAL_S = 0.25
RETRY_S = 3.0
IDLE_S = 60.0
# Reading a large database holds the interpreter lock; the window comes first.
_PAUSE_S = 0.005
# A slow disk is used a twentieth of the time, but is never more than a second behind the screen.
_REST_FACTOR = 20.0
_LONGEST_REST_S = 0.6
CLOSE_S = 5.0
# Number of chats whose written state is remembered, so that only changes to them are written.
_KNOWN_CHATS = 6


class _BusyError(Exception):
    """A job waits, or Draftlight quits: not the time for a backup."""


Refused = dict[Key, tuple[Job, Exception]]


class Writer:
    """Starts its thread, which calls `open_store` at once, so that the first message does not wait for it.

    If opening fails, the next attempt tries again. `tell` gets an error when saving begins to fail or fails
    for another reason, and None when it works again. `erase_copies` deletes rows from all copies of the
    database and returns the images that they had; `erase_images` deletes those of its images that no other
    chat has. `back_up` makes a backup if one is due; it raises damage, and errors of its argument, which it
    calls every few milliseconds. `written` is called after each batch, under the same terms. All are called
    on the thread. `jobs` wait from the beginning.
    """

    def __init__(
        self,
        open_store: Callable[[], ChatStore],
        tell: Callable[[Exception | None], None],
        *,
        erase_copies: Callable[[Collection[Key]], set[str]] = lambda keys: set(),
        erase_images: Callable[[ChatStore, set[str]], None] = lambda store, hashes: None,
        back_up: Callable[[Callable[[], None]], None] = lambda proceed: None,
        written: Callable[[ChatStore, Callable[[], None]], None] = lambda store, proceed: None,
        clock: SteadyClock | None = None,
        jobs: Mapping[Key, Job] | None = None,
        interval_s: float = INTERVAL_S,
        retry_s: float = RETRY_S,
        idle_s: float = IDLE_S,
    ) -> None:
        self._open_store = open_store
        self._tell = tell
        self._erase_copies = erase_copies
        self._erase_images = erase_images
        self._images: set[str] = set()  # that chats referred to which were deleted since
        self._back_up = back_up
        self._written = written
        self._clock = clock or SteadyClock()
        self._interval_s = interval_s
        self._retry_s = retry_s
        self._idle_s = idle_s
        self._jobs: dict[Key, Job] = dict(jobs or {})
        self._in_flight: dict[Key, Job] = {}
        self._refused: Refused = {}
        self._replaced: set[Key] = set()  # whose earlier states the next job erases
        self._replacing: set[Key] = set()  # of them, those in flight
        self._known: dict[Key, Conversation] = {}
        self._waiters: list[Callable[[bool], None]] = []
        self._durable = True  # everything written until now
        self._told: Exception | None = None
        self._wake = threading.Condition()
        self._closing = self._abandoned = False
        self._thread = threading.Thread(target=self._run, name="draftlight-chats", daemon=True)
        self._thread.start()

    def add(self, jobs: Mapping[Key, Job]) -> None:
        """Lets `jobs` wait, which are written together, in place of earlier ones under their keys."""
        with self._wake:
            erased = {key for key, job in jobs.items() if job is None or key in self._replaced}
            for old in map(self.waiting().get, erased):  # its images may never reach the database
                if isinstance(old, Conversation):
                    self._images = self._images | hashes_of(old)
            self._jobs.update(jobs)
            for key in jobs:
                self._refused.pop(key, None)
            self._wake.notify_all()

    def erase_earlier(self, keys: Collection[Key]) -> None:
        """Lets the next jobs of `keys` erase the replaced data completely, also in the copies."""
        with self._wake:
            self._replaced.update(keys)

    def waiting(self) -> dict[Key, Job]:
        """Returns the jobs that are not written, or may not be after `close()`."""
        with self._wake:
            refused = {key: job for key, (job, _) in self._refused.items()}
            return {**refused, **self._in_flight, **self._jobs}

    def when_kept(self, done: Callable[[bool], None]) -> None:
        """Writes the waiting jobs at once, durably.

        Calls `done` with True then, or with False if that fails; on the thread, or before it returns.
        """
        with self._wake:
            kept = self._durable and not (self._jobs or self._in_flight)
            if not (kept or self._closing):
                self._waiters.append(done)
                self._wake.notify_all()
                return
            kept = kept and not self._refused
        done(kept)

    def note(self, chat: Conversation) -> None:
        """Remembers that `chat` was just read from the database."""
        with self._wake:
            if not any(key_of(chat) in jobs for jobs in (self._jobs, self._in_flight, self._refused)):
                self._remember(chat)

    def flush(self, timeout_s: float = 10.0) -> bool:
        """Waits until everything is written; False if that fails or takes longer."""
        kept = SimpleQueue[bool]()
        self.when_kept(kept.put)
        try:
            return kept.get(timeout=timeout_s)
        except Empty:
            return False

    def close(self, *, write: bool = True, timeout_s: float = CLOSE_S) -> bool:
        """Writes the waiting jobs if `write`, and ends the thread. False if a job is left.

        Waits at most `timeout_s`; `waiting()` then returns the other jobs, and nothing more is written.
        """
        with self._wake:
            self._closing, self._abandoned = True, not write
            self._wake.notify_all()
        self._thread.join(timeout_s)
        self._abandoned = True
        return not self.waiting()

    # ---- on the thread

    def _run(self) -> None:
        store: ChatStore | None = None
        rest_s, last = 0.0, False
        while not last:
            idle = self._rest(rest_s, opened=store is not None)
            if self._abandoned:
                break
            if idle:
                self._use_the_time(partial(self._back_up, self._proceed))
                continue
            batch, waiters, last = self._take()
            if last and not (batch or waiters):
                break
            begun_s = time.monotonic()
            written: dict[Key, Job] = {}
            refused: Refused = {}
            error: Exception | None = None
            try:
                store = store or self._open_store()
                self._carry_out(store, batch, written, refused, durable=bool(waiters))
                took_s = time.monotonic() - begun_s
                rest_s = max(self._interval_s, min(_REST_FACTOR * took_s, _LONGEST_REST_S))
            except Exception as failed:  # any error: the chats in memory are the only copy
                error, rest_s = failed, self._retry_s
                if store:
                    store.close()
                store = None
            self._settle(batch, written, refused, error)
            for done in waiters:
                done(not (error or self._refused))
            if store and batch:
                self._use_the_time(partial(self._written, store, self._proceed))
        if store:
            store.close()
        with self._wake:
            waiters, self._waiters = self._waiters, []
        for done in waiters:
            done(False)

    def _rest(self, rest_s: float, *, opened: bool) -> bool:
        """Waits for something to do, then for `rest_s`, or until it has to be done at once.

        Returns True if nothing came for a while.
        """
        with self._wake:
            if opened and not self._wake.wait_for(self._has_work, self._idle_s):
                return True
            # Without a connection one is opened even if nothing waits, so that a failure is known.
            self._wake.wait_for(lambda: self._waiters or self._closing, rest_s)
            return False

    def _has_work(self) -> bool:
        return bool(self._jobs or self._waiters or self._closing)

    def _use_the_time(self, back_up: Callable[[], None]) -> None:
        try:
            back_up()
        except _BusyError:
            pass  # later
        except Exception as error:
            self._tell(error)

    def _proceed(self) -> None:
        with self._wake:
            if self._wake.wait_for(self._has_work, _PAUSE_S):
                raise _BusyError

    def _take(self) -> tuple[dict[Key, Job], list[Callable[[bool], None]], bool]:
        """Returns the batch, those who wait for its result, and whether it is the last one."""
        with self._wake:
            self._in_flight, self._jobs = self._jobs, {}
            self._replacing = self._replaced & self._in_flight.keys()
            self._replaced -= self._replacing
            waiters, self._waiters = self._waiters, []
            return self._in_flight, waiters, self._closing

    def _carry_out(
        self,
        store: ChatStore,
        batch: dict[Key, Job],
        written: dict[Key, Job],
        refused: Refused,
        *,
        durable: bool,
    ) -> None:
        """Writes `batch`, and adds to `written` and `refused` what became of it. Raises any error."""
        deleted = {key: job for key, job in batch.items() if job is None}
        others = {key: job for key, job in batch.items() if job is not None}
        if deleted or self._replacing:
            self._note_images(store.images_of(deleted.keys() | self._replacing))
        if others or durable:
            replacing = self._replacing & others.keys()
            durable = durable or bool(replacing)
            refused.update(self._write(store, others, durable=durable, forget=bool(replacing)))
            if replacing:
                self._stop_if_abandoned()
                self._note_images(self._erase_copies(replacing))
                store.truncate_log()
                if not deleted:  # which still refer to images until they are written
                    self._erase_their_images(store)
            written.update(others)
            self._durable = durable
        if deleted:
            self._stop_if_abandoned()
            self._note_images(self._erase_copies(deleted))
            refused.update(self._write(store, deleted, durable=True, forget=True))
            store.truncate_log()
            self._erase_their_images(store)
            written.update(deleted)
            self._durable = True

    def _write(
        self, store: ChatStore, batch: Mapping[Key, Job], *, durable: bool, forget: bool = False
    ) -> Refused:
        """Writes `batch` in one transaction; returns the jobs with a value that cannot be stored.

        `forget`: removes deleted text from the search indexes.
        """
        refused: Refused = {}
        with store.transaction(durable=durable):
            for key, job in batch.items():
                if error := store.attempt(key, job, self._known.get(key)):
                    refused[key] = job, StoreError(saving_trouble(error))
            if forget:
                store.forget_words()
            store.set_mark(Mark(store.mark().changes + bool(batch), *self._clock.read()))
            self._stop_if_abandoned()
        return refused

    def _note_images(self, hashes: set[str]) -> None:
        with self._wake:
            self._images = self._images | hashes

    def _erase_their_images(self, store: ChatStore) -> None:
        """Deletes the images of deleted chats. If that fails, the deletions are carried out again."""
        with self._wake:
            images = self._images
        if images:
            self._stop_if_abandoned()
            self._erase_images(store, images)
            with self._wake:
                self._images = self._images - images

    def _stop_if_abandoned(self) -> None:
        if self._abandoned:
            raise TimeoutError("The chats were closed before the disk answered.")

    def _settle(
        self, batch: dict[Key, Job], written: dict[Key, Job], refused: Refused, error: Exception | None
    ) -> None:
        """Reports a change of the failure and keeps the unwritten changes waiting."""
        with self._wake:
            reasons = [each for _, each in (*self._refused.values(), *refused.values())]
            failure = error or next(iter(reasons), None)
            tells = repr(failure) != repr(self._told) and not self._abandoned
            if tells:
                self._told = failure
        if tells:  # before anybody sees the result
            self._tell(failure)
        with self._wake:
            newer = self._jobs
            for key, job in batch.items():
                self._known.pop(key, None)  # parts of a failed write may be stored
                if key in refused and key not in newer:
                    self._refused[key] = refused[key]
                if key in written and key not in refused and isinstance(job, Conversation):
                    self._remember(job)
            self._jobs = {key: job for key, job in batch.items() if key not in written} | newer
            self._in_flight = {}
            self._replaced |= {key for key in self._replacing if key in refused or key not in written}

    def _remember(self, chat: Conversation) -> None:
        self._known.pop(key_of(chat), None)
        self._known[key_of(chat)] = chat
        while len(self._known) > _KNOWN_CHATS:
            self._known.pop(next(iter(self._known)))
