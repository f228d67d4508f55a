"""KeptRequests: stores the local server's requests and answers for 30 days, in a database of their own.

    requests   one row a request: `record` is its line in the list, `content` the messages and the answer;
               `sum` and `content_sum` are their checksums

The file is separate from the chats' because agents send a whole conversation with each request, so it grows
fast; its damage affects no chat; and it has no backup or log, so that an erased request is nowhere:
`secure_delete` overwrites it.

A thread writes, so that no client waits for a disk. A job that fails is reported once and retried. Readers
run the waiting jobs first. A damaged file is renamed, and its readable requests are copied to a new one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from app.store import strings
from app.store.database import Database, Migration, check, checksum, migrate, run
from app.store.faults import NewerStoreError, StoreError, is_damage
from app.store.packing import forgiving, pack_tokens, unpack_tokens
from core.events import Event, Finished, Generate, ReadingMap, Token
from core.events.wire import well_formed_record
from core.serve.requests import ServedRequest

# Agents repeat the conversation in each request; the fastest level reduces it to a quarter.
_LEVEL = 1


KEPT_DAYS = 30
MOST_REQUESTS = 1_000
MOST_BYTES = 500_000_000
_FILE, _ASIDE = "requests.db", "requests-damaged-*.db"
_LOOK_S = 3600.0
_RETRY_S = 30.0
_CLOSE_S = 5.0
# Jobs that may wait while writing fails; more would only fill the memory.
_MOST_WAITING = 100
_UNREADABLE = (sqlite3.Error, ValueError, TypeError, OverflowError)
_Value = TypeVar("_Value")
_TABLES = """
CREATE TABLE requests (
    id TEXT PRIMARY KEY,
    came_ms INTEGER NOT NULL,
    record BLOB NOT NULL,
    sum INTEGER NOT NULL,
    content BLOB NOT NULL,
    content_sum INTEGER NOT NULL
);
CREATE INDEX requests_came ON requests (came_ms);
"""
_MIGRATIONS: list[Migration] = [lambda connection: run(connection, _TABLES)]
VERSION = len(_MIGRATIONS)


class KeptRequest(Struct, frozen=True):
    """A request with its answer. `record` is its line in the list; `asked` is None if it was discarded.

    `events` has the reading map, the tokens and the end, in this order.
    """

    record: ServedRequest
    asked: Generate | None
    events: tuple[Event, ...]

    @property
    def finished(self) -> Finished | None:
        """The end of the answer; None if the request failed or was cancelled in the queue."""
        return next((each for each in reversed(self.events) if isinstance(each, Finished)), None)


class _Content(Struct, frozen=True):
    asked: Generate | None
    tokens: bytes
    reading: ReadingMap | None
    finished: Finished | None


_encoder = msgspec.msgpack.Encoder()


def pack_record(record: ServedRequest) -> bytes:
    """Returns the line in the list as a blob."""
    return _encoder.encode(record)


def unpack_record(blob: bytes) -> ServedRequest:
    """Raises `ValueError` (or msgspec's error, which is one) if the blob is damaged."""
    record: ServedRequest = forgiving(msgspec.msgpack.decode(blob), ServedRequest)
    return record


def pack_content(request: KeptRequest) -> bytes:
    """Returns everything but the record as a blob."""
    reading = next((each for each in reversed(request.events) if isinstance(each, ReadingMap)), None)
    tokens = pack_tokens([each for each in request.events if isinstance(each, Token)])
    content = _Content(request.asked, tokens, reading, request.finished)
    return zlib.compress(_encoder.encode(content), _LEVEL)


def unpack_content(record: ServedRequest, blob: bytes) -> KeptRequest:
    """Returns the request of `record`. Raises `ValueError` if the blob is damaged."""
    try:
        raw = msgspec.msgpack.decode(zlib.decompress(blob))
    except zlib.error as error:
        raise ValueError(str(error)) from error
    # Settings change between versions; the request stays readable.
    content: _Content = forgiving(raw, _Content)
    around = ((content.reading,), unpack_tokens(content.tokens), (content.finished,))
    events = tuple(each for some in around for each in some if each is not None)
    return KeptRequest(record, content.asked, events)


class RequestStore(Database):
    """Opens or creates the file at `path`. Raises `NewerStoreError` or `sqlite3.Error`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, any_thread=True)
        try:
            self.connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            self.connection.execute("PRAGMA secure_delete = ON")
            migrate(self.connection, _MIGRATIONS, _newer)
        except BaseException:
            self.connection.close()
            raise

    # ---- reading

    def records(self) -> list[ServedRequest]:
        """Returns all, the oldest first. Raises `sqlite3.Error`; for damage `ValueError` or `TypeError`."""
        found = self.connection.execute(
            "SELECT id, came_ms, record, sum FROM requests ORDER BY came_ms, rowid"
        )
        return [_record(*row) for row in found]

    def load(self, request: str) -> KeptRequest:
        """Raises `KeyError` for an unknown id, and as `records`."""
        row = self.connection.execute(
            "SELECT id, came_ms, record, sum, content, content_sum FROM requests WHERE id = ?", (request,)
        ).fetchone()
        if row is None:
            raise KeyError(request)
        *head, content, total = row
        check(total, content)
        return unpack_content(_record(*head), content)

    def readable(self) -> Iterator[KeptRequest | None]:
        """Yields each readable request of a damaged file, and None for each unreadable one."""
        ids = self.connection.execute("SELECT id FROM requests ORDER BY came_ms, rowid")
        with contextlib.suppress(sqlite3.Error):
            for (request,) in ids.fetchall():
                try:
                    yield self.load(request)
                except (sqlite3.Error, ValueError, TypeError, KeyError):
                    yield None

    # ---- writing

    def add(self, request: KeptRequest) -> None:
        record, content = request.record, pack_content(request)
        head = (record.id, round(record.came_s * 1000), pack_record(record))
        self.connection.execute(
            "INSERT OR REPLACE INTO requests VALUES (?, ?, ?, ?, ?, ?)",
            (*head, checksum(*head), content, checksum(content)),
        )

    def erase(self, request: str) -> None:
        self.connection.execute("DELETE FROM requests WHERE id = ?", (request,))
        self._shrink()

    def erase_all(self) -> None:
        self.connection.execute("DELETE FROM requests")
        self._shrink()

    def expire(self, since_s: float, most: int, most_bytes: int) -> None:
        """Erases requests older than the Unix time `since_s`, and the oldest ones beyond `most` requests or
        `most_bytes` bytes; the newest stays.
        """
        erased = self.connection.execute(
            "DELETE FROM requests WHERE came_ms < ? OR id IN (SELECT id FROM (SELECT id, row_number()"
            " OVER newest AS place, sum(length(content)) OVER newest AS bytes FROM requests"
            " WINDOW newest AS (ORDER BY came_ms DESC, rowid DESC))"
            " WHERE place > ? OR (bytes > ? AND place > 1))",
            (round(since_s * 1000), most, most_bytes),
        ).rowcount
        if erased:
            self._shrink()

    def _shrink(self) -> None:
        """Returns free pages to the file system."""
        # `execute` would free one page only: the statement has to be stepped to its end.
        self.connection.executescript("PRAGMA incremental_vacuum")


def _newer(found: int, known: int) -> NewerStoreError:
    return NewerStoreError(found, known, strings.NEWER_REQUESTS, strings.newer_requests_hint)


def _record(request: str, came_ms: int, blob: bytes, total: int) -> ServedRequest:
    check(total, request, came_ms, blob)
    return unpack_record(blob)


Job = Callable[[RequestStore], None]


class KeptRequests:
    """Stores requests in a file of `folder`; without a folder it stores none. For any thread.

    `now_s` returns the Unix time. `records` and `load` read the disk: call them off the UI thread.
    """

    def __init__(self, folder: Path | None, *, now_s: Callable[[], float] = time.time) -> None:
        self._path = folder / _FILE if folder else None
        self._now_s = now_s
        self._tell: Callable[[StoreError | None], None] = lambda error: None
        self._said: StoreError | None = None
        self._store: RequestStore | None = None
        # Guards the file.
        self._file = threading.RLock()
        self._jobs: deque[Job] = deque()
        self._reads: deque[Callable[[], None]] = deque()
        self._wake = threading.Condition()
        self._failing = self._closing = False
        self._thread: threading.Thread | None = None
        if self._path is not None and self._path.is_file():
            # Old requests are erased even if none is stored any more.
            self._do(self._expire)

    def listen(self, tell: Callable[[StoreError | None], None]) -> None:
        """Calls `tell` on any thread with errors, including the last one, and with None after recovery."""
        self._tell = tell
        if self._said is not None:
            tell(self._said)

    def add(self, request: KeptRequest) -> None:
        if len(self._jobs) < _MOST_WAITING:
            self._do(partial(self._keep, well_formed_record(request)))

    def erase(self, request: str) -> None:
        self._do(lambda store: store.erase(request))

    def erase_all(self) -> None:
        """Queues the erasure of all requests, damaged files included."""
        self._do(self._erase_all)

    def fetch_records(self, done: Callable[[tuple[ServedRequest, ...] | StoreError], None]) -> None:
        """Reads `records` on the thread and calls `done` with the result."""
        self._fetch(self.records, done)

    def fetch(self, request: str, done: Callable[[KeptRequest | StoreError | None], None]) -> None:
        """Calls `done` with the result of `load`, or None for an unknown id, on the thread."""
        self._fetch(lambda: self._load_if_known(request), done)

    def records(self) -> tuple[ServedRequest, ...]:
        """Returns all stored requests, the oldest first. Raises `StoreError`."""
        return tuple(self._read(lambda store: store.records()) or ())

    def load(self, request: str) -> KeptRequest:
        """Raises `KeyError` for an unknown id, `StoreError` if the file cannot be read."""
        found = self._read(lambda store: store.load(request))
        if found is None:
            raise KeyError(request)
        return found

    def _load_if_known(self, request: str) -> KeptRequest | None:
        with contextlib.suppress(KeyError):
            return self.load(request)
        return None

    def close(self) -> bool:
        """Runs the waiting jobs and closes the file; False if a job failed. Safe to call twice."""
        with self._wake:
            self._closing = True
            self._wake.notify_all()
        if self._thread is not None:
            self._thread.join(_CLOSE_S)
        return not self._jobs

    # ---- the jobs, on the thread or before a read

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
        self._queue(self._jobs, job)

    def _fetch(self, read: Callable[[], _Value], done: Callable[[_Value | StoreError], None]) -> None:
        def work() -> None:
            try:
                found: _Value | StoreError = read()
            except StoreError as error:
                found = error
            done(found)

        if self._path is None or self._closing:
            work()
        else:
            self._queue(self._reads, work)

    def _queue(self, queue: deque[_Value], work: _Value) -> None:
        with self._wake:
            queue.append(work)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="draftlight-requests", daemon=True)
                self._thread.start()
            self._wake.notify_all()

    def _run(self) -> None:
        while True:
            with self._wake:
                wait_s = _RETRY_S if self._failing else _LOOK_S
                woken = self._wake.wait_for(
                    lambda: self._closing or self._reads or (self._jobs and not self._failing), wait_s
                )
                last = self._closing
            if not (self._jobs or woken):
                self._jobs.append(self._expire)
            try:
                while self._reads and not last:
                    self._reads.popleft()()
                self._carry_out()
            except StoreError as error:
                self._report(error)
            except Exception as error:  # a bug: without this thread all later requests would be lost
                self._report(_trouble(error))
            else:
                self._report(None)
            if last:
                break
        with self._file:
            self._let_go()

    def _report(self, error: StoreError | None) -> None:
        """Reports the first failure of several, and the recovery."""
        failing, self._failing = self._failing, error is not None
        if failing != self._failing:
            self._say(error)

    def _carry_out(self) -> None:
        """Runs the waiting jobs. Raises `StoreError` if the disk refuses one, which then stays the first.

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
        """Returns None without a file. Raises `StoreError`, and errors of `read` other than damage."""
        with self._file:
            try:
                self._carry_out()
            except StoreError:
                pass  # the thread retries and reports it
            except Exception as error:  # the job is dropped, so the thread does not see it
                self._say(_trouble(error))
            if self._path is None or not self._path.is_file():
                return None
            return self._with_store(read)

    def _with_store(self, work: Callable[[RequestStore], _Value]) -> _Value:
        """Runs `work` on the file; if it is damaged, once more on a new one."""
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
        """Renames the damaged file and copies its readable requests. Raises `OSError`, `sqlite3.Error`."""
        assert self._path is not None
        self._let_go()
        aside = self._path.with_name(_ASIDE.replace("*", f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"))
        for side in ("", "-journal"):  # otherwise SQLite would apply it to the new file
            with contextlib.suppress(FileNotFoundError):
                os.replace(f"{self._path}{side}", f"{aside}{side}")
        kept, lost = self._salvaged(aside)
        self._say(StoreError(strings.REQUESTS_DAMAGED, strings.damaged_requests(kept, lost, aside.name)))

    def _salvaged(self, aside: Path) -> tuple[int, int]:
        """Returns how many requests were copied from `aside`, and how many are unreadable."""
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
