"""Database: what all SQLite files of Draftlight share: connection, transactions, checksums.

SQLite detects a damaged page, but not a changed letter. Each row therefore stores a CRC-32 of its values.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec

from app.store import strings
from core.system.paths import shown
from core.system.private import make_file

Value = str | int | bytes | None

# Another process may hold the file for this long before a call fails; writers try again later. A writer that
# closes makes up to two attempts, in less than `writer.CLOSE_S`.
BUSY_MS = 1_000


class ChecksumError(ValueError):
    """A row's values do not match its checksum, or SQLite finds the file inconsistent."""


def checksum(*values: Value) -> int:
    """Returns the CRC-32 of a row's values, as SQLite returns them."""
    return zlib.crc32(msgspec.msgpack.encode(values))


def checked(row: Sequence[Any]) -> list[Any]:
    """Returns the values of a row whose last one is their checksum. Raises `ChecksumError`."""
    *values, total = row
    if total != checksum(*values):
        raise ChecksumError("a row's checksum does not match its values")
    return values


def text_of(value: object) -> str:
    """Returns `value`. Raises `TypeError` if it is not text: SQLite's columns accept any type."""
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} where text should be")
    return value


# Errors of the surroundings that `_from_memory` avoids.
_NOT_OPENED = ("SQLITE_CANTOPEN", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_FULL")


def connect(path: Path | None, *, read_only: bool = False) -> sqlite3.Connection:
    """Opens a connection in autocommit mode; in memory if `path` is None. No other code opens connections.

    The file, and SQLite's files next to it, are readable by their owner only. Raises `sqlite3.Error`.
    """
    if path is None:
        return sqlite3.connect(":memory:", isolation_level=None)
    if obstacle := obstacle_at(path):  # SQLite waits for the writer of a pipe
        raise sqlite3.OperationalError(obstacle)
    if not read_only:
        with contextlib.suppress(OSError):
            make_file(path)  # SQLite would apply the umask
        connection = _open(path, "mode=rwc")
        # On macOS only these make SQLite's fsync reach the disk; elsewhere they have no effect.
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("PRAGMA checkpoint_fullfsync = ON")
        return connection
    connection = _open(path, "mode=ro")
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        return connection
    except sqlite3.Error as error:
        connection.close()
        if not getattr(error, "sqlite_errorname", "").startswith(_NOT_OPENED):
            raise
    return _from_memory(path)


def obstacle_at(path: Path) -> str:
    """Describes anything at `path` that is not a file; empty for a file, or if nothing exists."""
    with contextlib.suppress(OSError):
        if path.is_dir():
            return strings.not_a_file(path.name, strings.FOLDER)
        if path.is_symlink() and not path.exists():
            return strings.not_a_file(path.name, strings.dangling(shown(os.readlink(path))))
        if path.exists() and not path.is_file():
            return strings.not_a_file(path.name, strings.SPECIAL)
    return ""


def _open(path: Path, how: str) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?{how}"
    return sqlite3.connect(address, uri=True, isolation_level=None, timeout=BUSY_MS / 1000)


def _from_memory(path: Path) -> sqlite3.Connection:
    """Reads the database with the transactions of its log into memory.

    On a full disk, or in a folder that is not writable, SQLite cannot create the log and its index. In
    exclusive mode it has the index in memory, and this file system takes no locks, for which the file would
    have to be writable. Without a log the file is all there is.
    """
    how = "mode=ro&vfs=unix-none" if path.with_name(f"{path.name}-wal").exists() else "mode=ro&immutable=1"
    memory = sqlite3.connect(":memory:", isolation_level=None)
    try:
        with contextlib.closing(_open(path, how)) as file:
            file.execute("PRAGMA locking_mode = EXCLUSIVE")
            file.backup(memory)
    except BaseException:
        memory.close()
        raise
    return memory


class Database:
    """Owns one connection of `connect`, used by one thread at a time. Raises `sqlite3.Error`."""

    def __init__(self, path: Path | None, *, read_only: bool = False) -> None:
        self.connection = connect(path, read_only=read_only)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Safe to call twice."""
        self.connection.close()

    @contextlib.contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[None]:
        """Writes all or nothing of what runs inside. Raises `sqlite3.Error`.

        The result survives this process; that of a `durable` transaction also a loss of power.
        """
        self.connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # a full disk has rolled back already
                self.connection.execute("ROLLBACK")
            raise

    @contextlib.contextmanager
    def part(self) -> Iterator[None]:
        """Writes all or nothing of a part of a transaction, which continues if the part fails."""
        self.connection.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # the whole transaction was rolled back
                self.connection.execute("ROLLBACK TO part")
                self.connection.execute("RELEASE part")
            raise
        self.connection.execute("RELEASE part")

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Reads inside see one state of the file, whatever another connection writes."""
        if self.connection.in_transaction:
            yield
            return
        self.connection.execute("BEGIN")
        try:
            yield
        finally:
            with contextlib.suppress(sqlite3.Error):
                self.connection.execute("COMMIT")


def prefix_query(words: Sequence[str]) -> str:
    """Returns an FTS5 query for texts that have a word beginning with each of `words`; empty for none.

    Quoted, nothing in a word is an operator. Words without a letter or digit have no token.
    """
    with_letters = [word for word in words if any(character.isalnum() for character in word)]
    return " ".join('"{}"*'.format(word.replace('"', '""')) for word in with_letters)


def like(word: str) -> str:
    """Returns a LIKE pattern for `word` anywhere in a text, with `\\` as the escape character."""
    escaped = word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
