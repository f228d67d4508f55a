"""Schema: the tables of the chat database, their version, and the way from older versions.

    chats    one row a chat: title, times, pin, overrides, draft, queue, deletion, archiving, preset
    turns    one row a question, in places 0, 1, …
    answers  one row an answer beside its turn: state, and the tokens as one blob
    parts    tokens that an answer got since its row was written, while it is being written
    versions one row a version of a turn that is not shown: the question and its answer, whole
    words    what is searched, one row a turn (rowid = turns.id): FTS5 where SQLite has it
    documents, document_words   kept documents and what of them is searched: see documents/document_rows

`user_version` is the version. A newer one is refused: this Draftlight would write what that
one cannot read. A database of another program is refused, too, and nothing in it is changed. Each
migration is one step and runs in one transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from app.store.checksum import Value, checksum
from app.store.recovery.faults import ForeignStoreError, NewerStoreError

VERSION = 6
# Another window may write for this long before we give up for now; writers try again later.
BUSY_MS = 2_000

_TABLES = """
CREATE TABLE chats (
    id TEXT PRIMARY KEY,
    created TEXT NOT NULL,
    changed TEXT NOT NULL,
    title TEXT NOT NULL,
    name TEXT NOT NULL,
    turns INTEGER NOT NULL,
    pinned INTEGER NOT NULL,
    context_used_tokens INTEGER NOT NULL,
    overrides BLOB NOT NULL,
    draft BLOB NOT NULL,
    deleted TEXT
);
CREATE TABLE turns (
    id INTEGER PRIMARY KEY,
    chat TEXT NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
    place INTEGER NOT NULL,
    name TEXT NOT NULL,
    asked TEXT,
    question BLOB NOT NULL,
    UNIQUE (chat, place)
);
CREATE TABLE answers (
    turn INTEGER PRIMARY KEY REFERENCES turns (id) ON DELETE CASCADE,
    state BLOB NOT NULL,
    tokens BLOB NOT NULL
);
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""
# From version 1 to 2: `sum` is NULL until a row is written again.
_CHECKED = """
ALTER TABLE chats ADD COLUMN sum INTEGER;
ALTER TABLE turns ADD COLUMN sum INTEGER;
ALTER TABLE answers ADD COLUMN sum INTEGER;
CREATE TABLE parts (
    turn INTEGER NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    place INTEGER NOT NULL,
    tokens BLOB NOT NULL,
    sum INTEGER NOT NULL,
    PRIMARY KEY (turn, place)
);
"""
# From version 2 to 3. `turns.versions` counts the shown one, too: the place that no row has is its.
_VERSIONS = """
ALTER TABLE turns ADD COLUMN versions INTEGER NOT NULL DEFAULT 1;
CREATE TABLE versions (
    turn INTEGER NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    place INTEGER NOT NULL,
    name TEXT NOT NULL,
    asked TEXT,
    question BLOB NOT NULL,
    state BLOB NOT NULL,
    tokens BLOB NOT NULL,
    sum INTEGER NOT NULL,
    PRIMARY KEY (turn, place)
);
"""
# From version 3 to 4. A row's checksum covers all its values, so it is made anew: see `_widen`.
_ARCHIVE = """
ALTER TABLE chats ADD COLUMN archived TEXT;
ALTER TABLE chats ADD COLUMN preset TEXT NOT NULL DEFAULT '';
"""
# From version 5 to 6. The default is an empty list in msgpack.
_QUEUED = "ALTER TABLE chats ADD COLUMN queued BLOB NOT NULL DEFAULT x'90'"
# What a row of `chats` was made of up to version 3, beside its checksum.
OLD_HEAD = (
    "id",
    "created",
    "changed",
    "title",
    "name",
    "turns",
    "pinned",
    "context_used_tokens",
    "overrides",
    "draft",
    "deleted",
)
# The values of the columns `archived`, `preset` and `queued`, which came later, where a row lacks them.
ADDED_HEAD: tuple[Value, ...] = (None, "", b"\x90")
# From version 4 to 5. The text is last: whoever lists documents does not read it.
_DOCUMENTS = """
CREATE TABLE documents (
    row INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    characters INTEGER NOT NULL,
    added TEXT NOT NULL,
    used TEXT NOT NULL,
    counts TEXT NOT NULL,
    removed TEXT,
    sum INTEGER NOT NULL,
    text_sum INTEGER NOT NULL,
    text TEXT NOT NULL
);
"""
_DOCUMENT_WORDS = (
    "CREATE VIRTUAL TABLE document_words USING fts5(name, text, content='documents', content_rowid='row',"
    " tokenize='unicode61 remove_diacritics 2', prefix='2 3')"
)
_COLUMNS = "title, question, names, answer"
_FULL_TEXT = (
    f"CREATE VIRTUAL TABLE words USING fts5({_COLUMNS},"
    " tokenize='unicode61 remove_diacritics 2', prefix='2 3')"
)
_PLAIN = f"CREATE TABLE words_plain (rowid INTEGER PRIMARY KEY, {_COLUMNS})"

# MIGRATIONS[n] takes version n to n + 1. Version 0 is an empty file.
MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {
    0: lambda connection: _run(connection, _TABLES),
    1: lambda connection: _run(connection, _CHECKED),
    2: lambda connection: _run(connection, _VERSIONS),
    3: lambda connection: _widen(connection, _ARCHIVE, 0, 2),
    4: lambda connection: _run(connection, _DOCUMENTS),
    5: lambda connection: _widen(connection, _QUEUED, 2, 3),
}
# The first version whose rows have checksums and whose answers have parts.
CHECKED_VERSION = 2
# The first version that keeps all versions of a turn.
VERSIONS_VERSION = 3
# The first version that knows which chats are archived, and which preset each took.
ARCHIVE_VERSION = 4
# The first version that keeps documents.
DOCUMENTS_VERSION = 5
# The first version that keeps queued messages.
QUEUE_VERSION = 6


# Of these a damaged database of ours still has more than one; that of another program hardly.
_OURS = ("chats", "turns", "answers", "facts")


def connect(path: Path, read_only: bool = False) -> sqlite3.Connection:
    """A connection of the calling thread's. Raises `ForeignStoreError` or `sqlite3.Error`."""
    mode = "ro" if read_only else "rwc"
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=BUSY_MS / 1000)
    try:
        _refuse_foreign(connection)
        if not read_only:
            # Write-ahead: reading never waits for writing, and a crash loses whole batches or nothing.
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA cache_size = -16000")
    except BaseException:
        connection.close()
        raise
    return connection


def _refuse_foreign(connection: sqlite3.Connection) -> None:
    """Raises `ForeignStoreError` if there are tables, and they are not ours."""
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if names and len(names.intersection(_OURS)) < 2:
        raise ForeignStoreError


def head_of(version: int, columns: Sequence[str]) -> Sequence[str]:
    """Those of `columns`, the columns of `chats` today, that `version` has."""
    added = 0 if version < ARCHIVE_VERSION else 2 if version < QUEUE_VERSION else 3
    return columns[: len(OLD_HEAD) + added]


def version_of(connection: sqlite3.Connection) -> int:
    """The schema's version; 0 for an empty file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the tables to `VERSION`. Raises `NewerStoreError`, or `sqlite3.Error` with nothing changed."""
    found = version_of(connection)
    if found > VERSION:
        raise NewerStoreError(found, VERSION)
    while found < VERSION:
        connection.execute("BEGIN IMMEDIATE")
        try:
            found = version_of(connection)  # another process may have been first
            if found < VERSION:
                if found not in MIGRATIONS:
                    raise sqlite3.DatabaseError(f"its version is {found}")
                MIGRATIONS[found](connection)
                found += 1
                connection.execute(f"PRAGMA user_version = {found}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def has_full_text(connection: sqlite3.Connection) -> bool:
    """Whether this SQLite was built with FTS5."""
    try:
        connection.execute("CREATE VIRTUAL TABLE temp.probe USING fts5(x)")
    except sqlite3.OperationalError:
        return False
    connection.execute("DROP TABLE temp.probe")
    return True


def words_table(full_text: bool) -> str:
    """The name of the table that is searched."""
    return "words" if full_text else "words_plain"


def make_words(connection: sqlite3.Connection, full_text: bool) -> bool:
    """Make the table that is searched; False if it was there and is the one that was filled last."""
    table = words_table(full_text)
    there = connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    filled = connection.execute("SELECT value FROM facts WHERE name = 'words'").fetchone()
    if there and filled and filled[0] == table:
        return False
    if there:
        connection.execute(f"DELETE FROM {table}")
    else:
        connection.execute(_FULL_TEXT if full_text else _PLAIN)
    connection.execute("INSERT OR REPLACE INTO facts VALUES ('words', ?)", (table,))
    return True


def _widen(connection: sqlite3.Connection, script: str, before: int, after: int) -> None:
    """Adds columns to `chats`, which had `before` of those that came later and has `after` then.

    A row that is damaged keeps its checksum, which fits what is in it as little as before.
    """
    columns = ", ".join((*OLD_HEAD, "archived", "preset")[: len(OLD_HEAD) + before])
    rows = connection.execute(f"SELECT {columns}, sum FROM chats WHERE sum IS NOT NULL").fetchall()
    _run(connection, script)
    for *values, found in rows:
        if found == checksum(*values):
            fresh = checksum(*values, *ADDED_HEAD[before:after])
            connection.execute("UPDATE chats SET sum = ? WHERE id = ?", (fresh, values[0]))


def make_document_words(connection: sqlite3.Connection, full_text: bool) -> None:
    """Make what documents are searched by, if SQLite has it; filled anew if it was away meanwhile."""
    there = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'document_words'").fetchone()
    known = connection.execute("SELECT 1 FROM facts WHERE name = 'document_words'").fetchone()
    if not full_text:
        connection.execute("DELETE FROM facts WHERE name = 'document_words'")
    elif not (there and known):
        if not there:
            connection.execute(_DOCUMENT_WORDS)
        connection.execute("INSERT INTO document_words (document_words) VALUES ('rebuild')")
        connection.execute("INSERT OR REPLACE INTO facts VALUES ('document_words', 'whole')")


def _run(connection: sqlite3.Connection, script: str) -> None:
    """`executescript` would commit the migration's transaction."""
    for statement in script.split(";"):
        if statement.strip():
            connection.execute(statement)
