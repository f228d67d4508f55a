"""Database: what all SQLite files of Draftlight share: connection, transactions, checksums.

SQLite detects a damaged page, but not a changed letter. Each row therefore stores a CRC-32 of its values.

A database with a write-ahead log cannot be opened on a full disk or in a folder that is not writable, because
SQLite creates an index of the log beside it. It is then read into memory, with the transactions of the log.
"""

from __future__ import annotations

import contextlib
import sqlite3
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

import msgspec

from core.system.private import make_file

Value = str | int | bytes | None

# Another process may hold the file for this long before a call fails; writers try again later. A writer that
# closes makes up to two attempts, in less than `writer.CLOSE_S`.
BUSY_MS = 1_000


class ChecksumError(ValueError):
    """A row's values do not match its checksum."""


def checksum(*values: Value) -> int:
    """Returns the CRC-32 of a row's values, as SQLite returns them."""
    return zlib.crc32(msgspec.msgpack.encode(values))


def check(found: object, *values: Value) -> None:
    """Raises `ChecksumError` if `found` is not the checksum of `values`."""
    if found != checksum(*values):
        raise ChecksumError("a row's checksum does not match its values")


def text_of(value: object) -> str:
    """Returns `value`. Raises `TypeError` if it is not text: SQLite's columns accept any type."""
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} where text should be")
    return value


# Errors of the surroundings that reading from memory avoids.
_NOT_OPENED = ("SQLITE_CANTOPEN", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_FULL")


def connect(path: Path | None, *, read_only: bool = False) -> sqlite3.Connection:
    """Opens a connection in autocommit mode; in memory if `path` is None. No other code opens connections.

    The file, and SQLite's files beside it, are readable by their owner only. Raises `sqlite3.Error`.
    """
    if path is None:
        return sqlite3.connect(":memory:", isolation_level=None)
    if not read_only:
        with contextlib.suppress(OSError):
            make_file(path)  # SQLite would apply the umask
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}",
        uri=True,
        isolation_level=None,
        timeout=BUSY_MS / 1000,
    )
    if not read_only:
        # On macOS only these make SQLite's fsync reach the disk; elsewhere they have no effect.
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("PRAGMA checkpoint_fullfsync = ON")
        return connection
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        return connection
    except sqlite3.Error as error:
        if not getattr(error, "sqlite_errorname", "").startswith(_NOT_OPENED):
            connection.close()
            raise
        connection.close()
        try:
            content = _content(path)
        except OSError:
            raise error from None
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        if content:
            connection.deserialize(content)
    except BaseException:
        connection.close()
        raise
    return connection


def _content(path: Path) -> bytes:
    """Returns the database at `path` with the committed transactions of its log. Raises `OSError`.

    The format is SQLite's (https://www.sqlite.org/fileformat2.html#walformat): a header of 32 bytes, then
    frames of 24 bytes and a page. A frame is valid if it has the header's salt and the running checksum; a
    frame with a size ends a transaction.
    """
    content = bytearray(path.read_bytes())
    log = path.with_name(f"{path.name}-wal")
    frames = log.read_bytes() if log.exists() else b""
    if len(content) < 100 or content[18] != 2:
        return bytes(content)
    content[18:20] = b"\1\1"  # no log, which a database in memory cannot have
    if len(frames) < 32:
        return bytes(content)
    magic, _, page_bytes, _ = struct.unpack(">4I", frames[:16])
    order = ">" if magic & 1 else "<"
    sums = _log_sums((0, 0), frames[:24], order)
    if sums != struct.unpack(">2I", frames[24:32]) or page_bytes < 512:
        return bytes(content)
    pages: dict[int, bytes] = {}
    for begin in range(32, len(frames) - page_bytes - 23, 24 + page_bytes):
        head, page = frames[begin : begin + 24], frames[begin + 24 : begin + 24 + page_bytes]
        sums = _log_sums(_log_sums(sums, head[:8], order), page, order)
        if head[8:16] != frames[16:24] or sums != struct.unpack(">2I", head[16:24]):
            break
        number, size = struct.unpack(">2I", head[:8])
        pages[number] = page
        if size:
            content[size * page_bytes :] = bytes(max(0, size * page_bytes - len(content)))
            for number, page in pages.items():
                content[(number - 1) * page_bytes : number * page_bytes] = page
            pages = {}
    content[18:20] = b"\1\1"
    return bytes(content)


def _log_sums(sums: tuple[int, int], data: bytes, order: str) -> tuple[int, int]:
    """Returns the two running checksums of a log after `data`."""
    one, two = sums
    for first, second in struct.iter_unpack(f"{order}2I", data):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two


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


def version_of(connection: sqlite3.Connection) -> int:
    """Returns the schema's version, 0 for an empty file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def run(connection: sqlite3.Connection, script: str) -> None:
    """Executes the statements of `script`; `executescript` would commit the migration's transaction."""
    for statement in script.split(";"):
        if statement.strip():
            connection.execute(statement)


def has_full_text(connection: sqlite3.Connection) -> bool:
    """Returns whether this SQLite was built with FTS5."""
    try:
        connection.execute("CREATE VIRTUAL TABLE temp.probe USING fts5(x)")
    except sqlite3.OperationalError:
        return False
    connection.execute("DROP TABLE temp.probe")
    return True


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
