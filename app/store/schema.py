"""Schema: the tables of the chat database.

    chats    one row a chat: title, times, pin, overrides, draft, queue, deletion, preset, project
    turns    one row a question, in places 0, 1, …; `versions` includes the shown one, which has no row there
    answers  one row an answer beside its turn: state, and the tokens as one blob
    parts    tokens added to an answer since its row was written, while it is being generated
    versions one row a version of a turn that is not shown: the question and its answer
    words    the search index, one row a turn (rowid = turns.id): FTS5 where SQLite has it
    projects one row a project: see rows.py
    documents, document_words   kept documents and their search index: see documents.py
    facts    `words`, `document_words`: the search tables in use; `mark`: see chat_store.py

`sum` is the checksum of the row's other values. A database of another program, or of another version of
Draftlight, is refused, and nothing in it is changed.
"""

from __future__ import annotations

import sqlite3

from app.store import strings
from app.store.database import run, version_of
from app.store.faults import OtherStoreError

VERSION = 8
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
    deleted TEXT,
    preset TEXT NOT NULL,
    queued BLOB NOT NULL,
    project TEXT NOT NULL,
    sum INTEGER NOT NULL
);
CREATE TABLE turns (
    id INTEGER PRIMARY KEY,
    chat TEXT NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
    place INTEGER NOT NULL,
    name TEXT NOT NULL,
    asked TEXT,
    question BLOB NOT NULL,
    sum INTEGER NOT NULL,
    versions INTEGER NOT NULL DEFAULT 1,
    UNIQUE (chat, place)
);
CREATE TABLE answers (
    turn INTEGER PRIMARY KEY REFERENCES turns (id) ON DELETE CASCADE,
    state BLOB NOT NULL,
    tokens BLOB NOT NULL,
    sum INTEGER NOT NULL
);
CREATE TABLE parts (
    turn INTEGER NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    place INTEGER NOT NULL,
    tokens BLOB NOT NULL,
    sum INTEGER NOT NULL,
    PRIMARY KEY (turn, place)
);
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
CREATE TABLE projects (id TEXT PRIMARY KEY, state BLOB NOT NULL, sum INTEGER NOT NULL);
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
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
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

# A damaged database of ours still has at least two of these.
_OURS = ("chats", "turns", "answers", "facts")


def require_ours(connection: sqlite3.Connection) -> bool:
    """Returns whether the database has tables; they are of this version then.

    Raises `OtherStoreError`.
    """
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    version = version_of(connection)
    if names and len(names.intersection(_OURS)) < 2:
        raise OtherStoreError(strings.FOREIGN, strings.FOREIGN_HINT)
    if version > VERSION:
        raise OtherStoreError(strings.NEWER, strings.newer_hint(version, VERSION))
    if version < 0 or (version == 0 and names) or (version and not names):
        raise sqlite3.DatabaseError(f"its version is {version}, with {len(names)} tables")
    if version and version < VERSION:
        raise OtherStoreError(strings.OLDER, strings.older_hint(version, VERSION), older=True)
    return bool(names)


def create(connection: sqlite3.Connection) -> None:
    """Creates the tables, inside a transaction."""
    run(connection, _TABLES)
    connection.execute(f"PRAGMA user_version = {VERSION}")


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
