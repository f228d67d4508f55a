"""Search: chats that have all the words, best first, each with the passage that matches.

Words are matched from their beginnings by FTS5 (`fog dep` finds “Fog departures”). Where that
finds nothing, or SQLite has no FTS5, the words are looked for anywhere inside the texts: this
finds the middle of a word, and scripts that put no spaces between words.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from app.session.chats.archive import Hit, passage_of
from app.store.schema import words_table

# A person looks at a screenful; more than this says nothing more.
MOST_CHATS = 100
_MOST_ROWS = 600
_TEXTS = ("title", "question", "names", "answer")


def search(connection: sqlite3.Connection, query: str, full_text: bool) -> list[Hit]:
    """The chats that `query` finds. Nothing to look for finds nothing."""
    words = query.replace("\0", " ").split()
    if not words:
        return []
    hits = _of_titles(connection, words)
    rows = list(_by_words(connection, words)) if full_text else []
    if not rows:
        rows = list(_by_pieces(connection, words, words_table(full_text)))
    for chat, turn, *texts in rows:
        if len(hits) >= MOST_CHATS:
            break
        if chat not in hits:
            best = max(texts, key=lambda text: sum(word.casefold() in text.casefold() for word in words))
            hits[chat] = Hit(chat, turn, *passage_of(best, words))
    return list(hits.values())


def _of_titles(connection: sqlite3.Connection, words: list[str]) -> dict[str, Hit]:
    """Chats whose titles have all words anywhere, the latest first."""
    where = " AND ".join(["title LIKE ? ESCAPE '\\'"] * len(words))
    rows = connection.execute(
        f"SELECT id FROM chats WHERE deleted IS NULL AND turns > 0 AND {where}"
        f" ORDER BY changed DESC LIMIT {MOST_CHATS}",
        [_like(word) for word in words],
    )
    return {chat: Hit(chat) for (chat,) in rows}


def _by_words(connection: sqlite3.Connection, words: list[str]) -> Iterator[tuple[str, ...]]:
    """Rows by FTS5, best first."""
    # Quoted, nothing in a word is an operator; a word of signs only has nothing to match.
    wanted = [word for word in words if any(character.isalnum() for character in word)]
    if not wanted:
        return iter(())
    match = " ".join('"{}"*'.format(word.replace('"', '""')) for word in wanted)
    return connection.execute(
        "SELECT turns.chat, turns.name, words.title, words.question, words.names, words.answer FROM words"
        " JOIN turns ON turns.id = words.rowid JOIN chats ON chats.id = turns.chat"
        f" WHERE words MATCH ? AND chats.deleted IS NULL ORDER BY words.rank LIMIT {_MOST_ROWS}",
        (match,),
    )


def _by_pieces(connection: sqlite3.Connection, words: list[str], table: str) -> Iterator[tuple[str, ...]]:
    """Rows that have the words anywhere in their texts, the latest chat first."""
    anywhere = " OR ".join(f"words.{text} LIKE ? ESCAPE '\\'" for text in _TEXTS)
    where = " AND ".join([f"({anywhere})"] * len(words))
    return connection.execute(
        "SELECT turns.chat, turns.name, words.title, words.question, words.names, words.answer"
        f" FROM {table} AS words JOIN turns ON turns.id = words.rowid JOIN chats ON chats.id = turns.chat"
        f" WHERE chats.deleted IS NULL AND {where} ORDER BY chats.changed DESC LIMIT {_MOST_ROWS}",
        [_like(word) for word in words for _ in _TEXTS],
    )


def _like(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
