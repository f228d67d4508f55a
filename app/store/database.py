"""Database: what all SQLite files of Draftlight share: connection, transactions, migrations, checksums.

SQLite detects a damaged page, but not a changed letter. Each row therefore stores a CRC-32 of its
values. Rows of version 0.1.0 have none until they are written again, and pass unchecked.

A migration takes version n to n + 1 in one transaction. A newer version is refused, because this
Draftlight would write what that one cannot read.
"""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

Value = str | int | bytes | None
Migration = Callable[[sqlite3.Connection], None]

# Another process may hold the file for this long before a call fails; writers try again later.
BUSY_MS = 2_000


class ChecksumError(ValueError):
    """A row's values do not match its checksum."""


def checksum(*values: Value) -> int:
    """Returns the CRC-32 of a row's values, as SQLite returns them."""
    return zlib.crc32(msgspec.msgpack.encode(values))


def check(found: int | None, *values: Value) -> None:
    """Raises `ChecksumError` if `found` is not the checksum of `values`. None passes."""
    if found is not None and (not isinstance(found, int) or found != checksum(*values)):
        raise ChecksumError("a row's checksum does not match its values")


class Database:
    """One connection, used by one thread at a time; in memory if `path` is None.

    `any_thread` allows different threads, one after the other. Raises `sqlite3.Error`.
    """

    def __init__(self, path: Path | None, *, read_only: bool = False, any_thread: bool = False) -> None:
        mode = "ro" if read_only else "rwc"
        self.connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}" if path else ":memory:",
            uri=path is not None,
            isolation_level=None,
            timeout=BUSY_MS / 1000,
            check_same_thread=not any_thread,
        )

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


def migrate(
    connection: sqlite3.Connection,
    migrations: Sequence[Migration],
    newer: Callable[[int, int], Exception],
) -> None:
    """Brings the schema to the version `len(migrations)`.

    Raises `newer(found, known)` if the file's version is higher, or `sqlite3.Error` with nothing changed.
    """
    known, found = len(migrations), version_of(connection)
    if found > known:
        raise newer(found, known)
    while found < known:
        connection.execute("BEGIN IMMEDIATE")
        try:
            found = version_of(connection)  # another process may have been first
            if found < known:
                if found < 0:
                    raise sqlite3.DatabaseError(f"its version is {found}")
                migrations[found](connection)
                found += 1
                connection.execute(f"PRAGMA user_version = {found}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


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
