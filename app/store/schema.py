"""Schema: the tables of the chat database.

    chats      one row a chat: columns for lists and searches, everything except the turns in `state`
    turns      one row a question, in places 0, 1, …, with its hidden versions and their tokens
    parts      the shown answer of a turn: all of it at place 0; then, while it is being generated, the tokens
               that were added since, at the place of the first one
    blobs      results of calls in a turn's answers, by their SHA-256
    images     the images of a turn, of all its versions, by hash; those of unsent messages at place -1
    words      the search index of the turns (rowid = turns.id)
    projects   one row a project
    documents  one row a kept document: its facts
    texts      names and texts of the documents (rowid = documents.row), and their search index
    facts      `mark`: see chat_store.py

`sum` is the checksum of the row's other values, `text_sum` that of a document's text. What belongs to a row
goes with it: foreign keys and triggers do it. A database of another program, or of another version of
Draftlight, is refused, and nothing in it is changed.
"""

from __future__ import annotations

import sqlite3

from app.store import strings
from app.store.database import ChecksumError
from app.store.faults import OtherStoreError

VERSION = 12
_SEARCHED = "tokenize='unicode61 remove_diacritics 2', prefix='2 3'"
_STATEMENTS = (
    """CREATE TABLE chats (
        id TEXT PRIMARY KEY,
        title TEXT NOT NULL,
        name TEXT NOT NULL,
        changed TEXT NOT NULL,
        turns INTEGER NOT NULL,
        deleted INTEGER NOT NULL,
        state BLOB NOT NULL,
        sum INTEGER NOT NULL
    )""",
    """CREATE TABLE turns (
        id INTEGER PRIMARY KEY,
        chat TEXT NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
        place INTEGER NOT NULL,
        name TEXT NOT NULL,
        state BLOB NOT NULL,
        sum INTEGER NOT NULL,
        UNIQUE (chat, place)
    )""",
    """CREATE TABLE parts (
        chat TEXT NOT NULL,
        turn INTEGER NOT NULL,
        place INTEGER NOT NULL,
        state BLOB NOT NULL,
        sum INTEGER NOT NULL,
        PRIMARY KEY (chat, turn, place),
        FOREIGN KEY (chat, turn) REFERENCES turns (chat, place) ON DELETE CASCADE
    )""",
    """CREATE TABLE blobs (
        chat TEXT NOT NULL,
        turn INTEGER NOT NULL,
        hash TEXT NOT NULL,
        data BLOB NOT NULL,
        sum INTEGER NOT NULL,
        PRIMARY KEY (chat, turn, hash),
        FOREIGN KEY (chat, turn) REFERENCES turns (chat, place) ON DELETE CASCADE
    )""",
    """CREATE TABLE images (
        chat TEXT NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
        place INTEGER NOT NULL,
        hash TEXT NOT NULL,
        sum INTEGER NOT NULL,
        PRIMARY KEY (chat, place, hash)
    )""",
    f"CREATE VIRTUAL TABLE words USING fts5(title, question, names, answer, {_SEARCHED})",
    """CREATE TRIGGER chat_renamed AFTER UPDATE OF name ON chats WHEN new.name <> old.name BEGIN
        UPDATE words SET title = new.name
        WHERE rowid = (SELECT id FROM turns WHERE chat = new.id AND place = 0);
    END""",
    """CREATE TRIGGER turn_gone AFTER DELETE ON turns BEGIN
        DELETE FROM words WHERE rowid = old.id;
    END""",
    "CREATE TABLE projects (id TEXT PRIMARY KEY, state BLOB NOT NULL, sum INTEGER NOT NULL)",
    """CREATE TABLE documents (
        row INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL,
        used TEXT NOT NULL,
        removed INTEGER NOT NULL,
        state BLOB NOT NULL,
        sum INTEGER NOT NULL,
        text_sum INTEGER NOT NULL
    )""",
    f"CREATE VIRTUAL TABLE texts USING fts5(name, text, {_SEARCHED})",
    """CREATE TRIGGER document_renamed AFTER UPDATE OF name ON documents WHEN new.name <> old.name BEGIN
        UPDATE texts SET name = new.name WHERE rowid = old.row;
    END""",
    """CREATE TRIGGER document_gone AFTER DELETE ON documents BEGIN
        DELETE FROM texts WHERE rowid = old.row;
    END""",
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
)

# A damaged database of ours still has at least two of these.
_OURS = ("chats", "turns", "parts", "facts")


def require_ours(connection: sqlite3.Connection) -> bool:
    """Returns whether the database has tables; they are of this version then.

    Raises `OtherStoreError`, `ChecksumError`.
    """
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if names and len(names.intersection(_OURS)) < 2:
        raise OtherStoreError(strings.FOREIGN, strings.FOREIGN_HINT)
    if version > VERSION:
        raise OtherStoreError(strings.NEWER, strings.newer_hint(version, VERSION))
    if version < 0 or (version == 0 and names) or (version and not names):
        raise ChecksumError(f"its version is {version}, with {len(names)} tables")
    if version and version < VERSION:
        raise OtherStoreError(strings.OLDER, strings.older_hint(version, VERSION), older=True)
    return bool(names)


def create(connection: sqlite3.Connection) -> None:
    """Creates the tables, inside a transaction."""
    for statement in _STATEMENTS:
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")
