"""Schema: the tables of the chat database and their migrations.

    chats    one row a chat: title, times, pin, overrides, draft, queue, deletion, archiving, preset, project
    turns    one row a question, in places 0, 1, …
    answers  one row an answer beside its turn: state, and the tokens as one blob
    parts    tokens added to an answer since its row was written, while it is being generated
    versions one row a version of a turn that is not shown: the question and its answer
    words    the search index, one row a turn (rowid = turns.id): FTS5 where SQLite has it
    projects one row a project: see rows.py
    documents, document_words   kept documents and their search index: see documents.py

A database of another program is refused, and nothing in it is changed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from app.store.database import Migration, Value, checksum, run
from app.store.faults import ForeignStoreError

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
# From version 2 to 3. `turns.versions` includes the shown version, whose place has no row.
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
# From version 3 to 4. A row's checksum covers all its values, so `_widen` computes it again.
_ARCHIVE = """
ALTER TABLE chats ADD COLUMN archived TEXT;
ALTER TABLE chats ADD COLUMN preset TEXT NOT NULL DEFAULT '';
"""
# From version 5 to 6. The default is an empty list in msgpack.
_QUEUED = "ALTER TABLE chats ADD COLUMN queued BLOB NOT NULL DEFAULT x'90'"
# From version 6 to 7. A chat without a project has an empty id.
_PROJECTS = """
CREATE TABLE projects (id TEXT PRIMARY KEY, state BLOB NOT NULL, sum INTEGER NOT NULL);
ALTER TABLE chats ADD COLUMN project TEXT NOT NULL DEFAULT ''
"""
# Columns of `chats` up to version 3, without the checksum.
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
# The later columns, and their values in a row of an older version.
_ADDED = ("archived", "preset", "queued", "project")
ADDED_HEAD: tuple[Value, ...] = (None, "", b"\x90", "")
# From version 4 to 5. The text is the last column, so listing documents does not read it.
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
MIGRATIONS: list[Migration] = [
    lambda connection: run(connection, _TABLES),
    lambda connection: run(connection, _CHECKED),
    lambda connection: run(connection, _VERSIONS),
    lambda connection: _widen(connection, _ARCHIVE, 0, 2),
    lambda connection: run(connection, _DOCUMENTS),
    lambda connection: _widen(connection, _QUEUED, 2, 3),
    lambda connection: _widen(connection, _PROJECTS, 3, 4),
]
VERSION = len(MIGRATIONS)
# The first versions with checksums and parts of answers; versions of turns; archive and presets; documents;
# queued messages; projects.
CHECKED_VERSION, VERSIONS_VERSION, ARCHIVE_VERSION, DOCUMENTS_VERSION = 2, 3, 4, 5
QUEUE_VERSION, PROJECTS_VERSION = 6, 7

# A damaged database of ours still has at least two of these.
_OURS = ("chats", "turns", "answers", "facts")


def refuse_foreign(connection: sqlite3.Connection) -> None:
    """Raises `ForeignStoreError` if the file has tables of another program."""
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if names and len(names.intersection(_OURS)) < 2:
        raise ForeignStoreError


def head_of(version: int, columns: Sequence[str]) -> Sequence[str]:
    """Returns those of `columns`, today's columns of `chats`, that `version` has."""
    added = 2 * (version >= ARCHIVE_VERSION) + (version >= QUEUE_VERSION) + (version >= PROJECTS_VERSION)
    return columns[: len(OLD_HEAD) + added]


def words_table(full_text: bool) -> str:
    """Returns the name of the table that searches use."""
    return "words" if full_text else "words_plain"


def make_words(connection: sqlite3.Connection, full_text: bool) -> bool:
    """Creates the search table. False if it exists and was the last one in use, so nothing has to fill it."""
    table = words_table(full_text)
    exists = connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    filled = connection.execute("SELECT value FROM facts WHERE name = 'words'").fetchone()
    if exists and filled and filled[0] == table:
        return False
    if exists:
        connection.execute(f"DELETE FROM {table}")
    else:
        connection.execute(_FULL_TEXT if full_text else _PLAIN)
    connection.execute("INSERT OR REPLACE INTO facts VALUES ('words', ?)", (table,))
    return True


def make_document_words(connection: sqlite3.Connection, full_text: bool) -> None:
    """Creates the search index of documents where SQLite has FTS5; rebuilds one that was not maintained."""
    exists = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'document_words'").fetchone()
    complete = connection.execute("SELECT 1 FROM facts WHERE name = 'document_words'").fetchone()
    if not full_text:
        connection.execute("DELETE FROM facts WHERE name = 'document_words'")
    elif not (exists and complete):
        if not exists:
            connection.execute(_DOCUMENT_WORDS)
        connection.execute("INSERT INTO document_words (document_words) VALUES ('rebuild')")
        connection.execute("INSERT OR REPLACE INTO facts VALUES ('document_words', 'whole')")


def _widen(connection: sqlite3.Connection, script: str, before: int, after: int) -> None:
    """Adds columns to `chats`: `before` and `after` count those beyond `OLD_HEAD`.

    A damaged row keeps its checksum and so stays recognisable as damaged.
    """
    columns = ", ".join((*OLD_HEAD, *_ADDED[:before]))
    rows = connection.execute(f"SELECT {columns}, sum FROM chats WHERE sum IS NOT NULL").fetchall()
    run(connection, script)
    for *values, found in rows:
        if found == checksum(*values):
            fresh = checksum(*values, *ADDED_HEAD[before:after])
            connection.execute("UPDATE chats SET sum = ? WHERE id = ?", (fresh, values[0]))
