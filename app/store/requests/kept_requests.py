"""KeptRequests: the local server's requests that outlive the window, for 30 days. Written on a thread.

Nobody who is being answered waits for a disk: what is to be done waits here, and what cannot be done is
said once and tried again. Whoever reads sees all of it, because what waits is done first. A damaged file is
set aside, and what of it can be read goes into a new one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from app.store import strings
from app.store.recovery.faults import StoreError, is_damage
from app.store.requests.kept_request import KeptRequest
from app.store.requests.request_store import RequestStore
from core.events.text import well_formed_record
from core.serve.requests import ServedRequest

KEPT_DAYS = 30
MOST_REQUESTS = 1_000
MOST_BYTES = 500_000_000
_FILE, _ASIDE = "requests.db", "requests-damaged-*.db"
_LOOK_S = 3600.0
_RETRY_S = 30.0
_CLOSE_S = 5.0
# While the disk takes nothing; more would be memory that nobody gets back.
_MOST_WAITING = 100
_UNREADABLE = (sqlite3.Error, ValueError, TypeError, OverflowError)
_Value = TypeVar("_Value")
Job = Callable[[RequestStore], None]


class KeptRequests:
    """In a file of `folder`; without a folder nothing is kept. Any thread may call.

    `now_s`: Unix time.
    """

    def __init__(self, folder: Path | None, *, now_s: Callable[[], float] = time.time) -> None:
        self._path = folder / _FILE if folder else None
        self._now_s = now_s
        self._tell: Callable[[StoreError | None], None] = lambda error: None
        self._said: StoreError | None = None
        self._store: RequestStore | None = None
        # Held while the file is read or written.
        self._file = threading.RLock()
        self._jobs: deque[Job] = deque()
        self._wake = threading.Condition()
        self._failing = self._closing = False
        self._thread: threading.Thread | None = None
        if self._path is not None and self._path.is_file():
            # What is too old goes, whether or not anything is kept now.
            self._do(self._expire)

    def listen(self, tell: Callable[[StoreError | None], None]) -> None:
        """`tell` hears why nothing can be kept, or what was lost, and at once what was said so far; None once
        it works again. On any thread.
        """
        self._tell = tell
        if self._said is not None:
            tell(self._said)

    def add(self, request: KeptRequest) -> None:
        """Keep it, soon."""
        if len(self._jobs) < _MOST_WAITING:
            self._do(partial(self._keep, well_formed_record(request)))

    def erase(self, request: str) -> None:
        """Soon it is nowhere any more."""
        self._do(lambda store: store.erase(request))

    def erase_all(self) -> None:
        """Soon none is anywhere any more, in a damaged file that was set aside neither."""
        self._do(self._erase_all)

    def records(self) -> tuple[ServedRequest, ...]:
        """All that are kept, the oldest first. Raises `StoreError`."""
        return tuple(self._read(lambda store: store.records()) or ())

    def load(self, request: str) -> KeptRequest:
        """Raises `KeyError` if it is not kept, `StoreError` if it cannot be read."""
        found = self._read(lambda store: store.load(request))
        if found is None:
            raise KeyError(request)
        return found

    def close(self) -> bool:
        """Do what waits and let the file go; False if something could not be done. Safe to call twice."""
        with self._wake:
            self._closing = True
            self._wake.notify_all()
        if self._thread is not None:
            self._thread.join(_CLOSE_S)
        return not self._jobs

    # ---- the jobs, on the thread or before somebody reads

    def _keep(self, request: KeptRequest, store: RequestStore) -> None:
        store.add(request)
        self._expire(store)

    def _expire(self, store: RequestStore) -> None:
        store.expire(self._now_s() - KEPT_DAYS * 86_400, MOST_REQUESTS, MOST_BYTES)

    def _erase_all(self, store: RequestStore) -> None:
        assert self._path is not None
        store.erase_all()
        for aside in self._path.parent.glob(_ASIDE):
            aside.unlink()
            aside.with_name(f"{aside.name}-journal").unlink(missing_ok=True)

    # ---- inside

    def _do(self, job: Job) -> None:
        if self._path is None:
            return
        with self._wake:
            self._jobs.append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="draftlight-requests", daemon=True)
                self._thread.start()
            self._wake.notify_all()

    def _run(self) -> None:
        while True:
            with self._wake:
                wait_s = _RETRY_S if self._failing else _LOOK_S
                self._wake.wait_for(lambda: self._closing or (self._jobs and not self._failing), wait_s)
                last = self._closing
            if not (self._jobs or last):
                self._jobs.append(self._expire)
            try:
                self._carry_out()
            except StoreError as error:
                self._report(error)
            except Exception as error:  # a bug; without this thread all later requests would be lost, too
                self._report(_trouble(error))
            else:
                self._report(None)
            if last:
                break
        with self._file:
            self._let_go()

    def _report(self, error: StoreError | None) -> None:
        """Tells the first failure of several, and that it is over."""
        failing, self._failing = self._failing, error is not None
        if failing != self._failing:
            self._say(error)

    def _carry_out(self) -> None:
        """Runs the waiting jobs. Raises `StoreError` if the disk refuses one, which then stays the next.

        A job that raises anything else is dropped: it would fail again and block the others.
        """
        with self._file:
            while self._jobs:
                try:
                    self._with_store(self._jobs[0])
                except StoreError:
                    raise
                except Exception:
                    self._jobs.popleft()
                    raise
                self._jobs.popleft()

    def _read(self, read: Callable[[RequestStore], _Value]) -> _Value | None:
        """None if there is nothing to read. Raises `StoreError`, and what `read` raises beside damage."""
        with self._file:
            try:
                self._carry_out()
            except StoreError:
                pass  # the thread tries again and tells it
            except Exception as error:  # the job is dropped, so the thread does not see it
                self._say(_trouble(error))
            if self._path is None or not self._path.is_file():
                return None
            return self._with_store(read)

    def _with_store(self, work: Callable[[RequestStore], _Value]) -> _Value:
        """`work` done on the file; once more on a new one where the file is damaged."""
        try:
            return self._tried(work)
        except OSError as error:
            raise _trouble(error) from error
        except _UNREADABLE as error:
            if isinstance(error, sqlite3.Error) and not is_damage(error):
                raise _trouble(error) from error
        try:
            self._set_aside()
            return self._tried(work)
        except (OSError, *_UNREADABLE) as error:
            raise _trouble(error) from error

    def _tried(self, work: Callable[[RequestStore], _Value]) -> _Value:
        assert self._path is not None
        if self._store is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._store = RequestStore(self._path)
        return work(self._store)

    def _set_aside(self) -> None:
        """The file is damaged: a new one takes what can be read of it. Raises `OSError`, `sqlite3.Error`."""
        assert self._path is not None
        self._let_go()
        aside = self._path.with_name(_ASIDE.replace("*", f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"))
        for side in ("", "-journal"):  # which would be taken for the new file's
            with contextlib.suppress(FileNotFoundError):
                os.replace(f"{self._path}{side}", f"{aside}{side}")
        kept, lost = self._salvaged(aside)
        self._say(StoreError(strings.REQUESTS_DAMAGED, strings.damaged_requests(kept, lost, aside.name)))

    def _salvaged(self, aside: Path) -> tuple[int, int]:
        """How many requests of the file at `aside` are in the new one, and how many could not be read."""
        assert self._path is not None
        self._store = RequestStore(self._path)
        try:
            old = RequestStore(aside)
        except (sqlite3.Error, StoreError):
            return 0, 0
        kept = lost = 0
        try:
            for request in old.readable():
                if request is None:
                    lost += 1
                else:
                    self._store.add(request)
                    kept += 1
        finally:
            old.close()
        return kept, lost

    def _say(self, error: StoreError | None) -> None:
        self._said = error
        self._tell(error)

    def _let_go(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            store.close()


def _trouble(error: Exception) -> StoreError:
    full = getattr(error, "sqlite_errorname", "").startswith("SQLITE_FULL")
    full = full or (isinstance(error, OSError) and error.errno == errno.ENOSPC)
    hint = strings.DISK_FULL if full else strings.not_opened(str(error))
    return StoreError(strings.REQUESTS_NOT_KEPT, hint)
