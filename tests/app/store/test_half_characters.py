"""Half a character in a chat is stored and exported as U+FFFD, and nothing else is lost by it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from app.session.chats.conversation import Answer, Conversation, Turn
from app.store.chat_files import from_json, to_json
from app.store.chat_store import ChatStore
from core.events import Message, Token
from core.events.wire import well_formed_record

HALF = "a\ud83db"
TOKENS = (Token("r", 1, "\ud83d", "normal", 1, 0), Token("r", 2, "\ude00", "normal", 2, 1))
CHAT = Conversation(
    "c",
    datetime(2026, 1, 1, tzinfo=UTC),
    (Turn("t", Message("user", HALF), Answer(TOKENS, "stopped")), Turn("u", Message("user", "whole"))),
    name=HALF,
)


def test_it_is_stored(tmp_path: Path) -> None:
    with closing(ChatStore(tmp_path / "chats.db")) as store:
        with store.transaction():
            store.write(CHAT)
        kept = store.load("c")
        assert kept == well_formed_record(CHAT)
        assert (kept.name, kept.turns[0].answer.text) == ("a\ufffdb", "\ufffd\ufffd")
        assert store.search("whole")
        store.search(HALF)
    with closing(sqlite3.connect(tmp_path / "chats.db")) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_it_is_exported() -> None:
    (chat,) = from_json(to_json([CHAT]))
    assert (chat.name, chat.turns[0].user.content) == ("a\ufffdb", "a\ufffdb")
