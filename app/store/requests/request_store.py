"""RequestStore: kept requests in an SQLite file: list, load, add, erase. One caller at a time.

    requests   one row a request: `record` is what a list says of it, `content` what was asked and answered;
               `sum` and `content_sum` are their checksums

A file of its own beside the chats': agents send a whole conversation with each request, so it grows fast;
damage to it touches no chat; and no backup is made of it, so that what is erased is nowhere. What is erased
is overwritten, and there is no log that could have it still.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from app.store import strings
from app.store.checksum import check, checksum
from app.store.recovery.faults import NewerStoreError
from app.store.requests.kept_request import (
    KeptRequest,
    pack_content,
    pack_record,
    unpack_content,
    unpack_record,
)
from core.serve.requests import ServedRequest

VERSION = 1
# Another Draftlight may write for this long before we give up for now.
_BUSY_MS = 2_000
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
# MIGRATIONS[n] takes version n to n + 1. Version 0 is an empty file.
MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {
    0: lambda connection: _run(connection, _TABLES),
}


class RequestStore:
    """Opens or makes the file at `path`. Raises `NewerStoreError` or `sqlite3.Error`."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(
            path, isolation_level=None, timeout=_BUSY_MS / 1000, check_same_thread=False
        )
        try:
            self._connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            self._connection.execute("PRAGMA secure_delete = ON")
            self._migrate()
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        """Safe to call twice."""
        self._connection.close()

    # ---- reading

    def records(self) -> list[ServedRequest]:
        """All, the oldest first. Raises `sqlite3.Error`, and `ValueError` or `TypeError` for damage."""
        found = self._connection.execute(
            "SELECT id, came_ms, record, sum FROM requests ORDER BY came_ms, rowid"
        )
        return [_record(*row) for row in found]

    def load(self, request: str) -> KeptRequest:
        """Raises `KeyError` if there is none of that id, and as `records`."""
        row = self._connection.execute(
            "SELECT id, came_ms, record, sum, content, content_sum FROM requests WHERE id = ?", (request,)
        ).fetchone()
        if row is None:
            raise KeyError(request)
        *head, content, total = row
        check(total, content)
        return unpack_content(_record(*head), content)

    def readable(self) -> Iterator[KeptRequest | None]:
        """Each of a damaged file that can be read, and None for each that cannot; as far as there are ids."""
        ids = self._connection.execute("SELECT id FROM requests ORDER BY came_ms, rowid")
        with contextlib.suppress(sqlite3.Error):
            for (request,) in ids.fetchall():
                try:
                    yield self.load(request)
                except (sqlite3.Error, ValueError, TypeError, KeyError):
                    yield None

    # ---- writing

    def add(self, request: KeptRequest) -> None:
        """One more, or another one in its place."""
        record, content = request.record, pack_content(request)
        head = (record.id, round(record.came_s * 1000), pack_record(record))
        self._connection.execute(
            "INSERT OR REPLACE INTO requests VALUES (?, ?, ?, ?, ?, ?)",
            (*head, checksum(*head), content, checksum(content)),
        )

    def erase(self, request: str) -> None:
        """It and all of it, for good. Nothing happens if it is not there."""
        self._connection.execute("DELETE FROM requests WHERE id = ?", (request,))
        self._shrink()

    def erase_all(self) -> None:
        """All of them, for good."""
        self._connection.execute("DELETE FROM requests")
        self._shrink()

    def expire(self, since_s: float, most: int, most_bytes: int) -> None:
        """Erase those that came before `since_s`, and the oldest where there are more than `most`, or where
        all take more than `most_bytes`; the newest stays.
        """
        erased = self._connection.execute(
            "DELETE FROM requests WHERE came_ms < ? OR id IN (SELECT id FROM (SELECT id, row_number()"
            " OVER newest AS place, sum(length(content)) OVER newest AS bytes FROM requests"
            " WINDOW newest AS (ORDER BY came_ms DESC, rowid DESC))"
            " WHERE place > ? OR (bytes > ? AND place > 1))",
            (round(since_s * 1000), most, most_bytes),
        ).rowcount
        if erased:
            self._shrink()

    def _shrink(self) -> None:
        """What was overwritten need not take room."""
        # `execute` would free one page: this statement has to be stepped to its end, and gives no rows.
        self._connection.executescript("PRAGMA incremental_vacuum")

    def _migrate(self) -> None:
        found = int(self._connection.execute("PRAGMA user_version").fetchone()[0])
        if found > VERSION:
            raise NewerStoreError(found, VERSION, strings.NEWER_REQUESTS, strings.newer_requests_hint)
        while found < VERSION:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                found = int(self._connection.execute("PRAGMA user_version").fetchone()[0])
                if found < VERSION:  # another process may have been first
                    MIGRATIONS[found](self._connection)
                    found += 1
                    self._connection.execute(f"PRAGMA user_version = {found}")
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise


def _record(request: str, came_ms: int, blob: bytes, total: int) -> ServedRequest:
    check(total, request, came_ms, blob)
    return unpack_record(blob)


def _run(connection: sqlite3.Connection, script: str) -> None:
    """`executescript` would commit the migration's transaction."""
    for statement in script.split(";"):
        if statement.strip():
            connection.execute(statement)
