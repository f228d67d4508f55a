"""Chats on disk: exact, changed in place, listed, migrated."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from app.session.chats.archive import summary_of
from app.session.chats.conversation import Answer, Conversation, Turn
from app.store import schema
from app.store.chat_files import from_json, to_json
from app.store.chat_store import ChatStore
from app.store.database import ChecksumError, Database
from app.store.faults import EmptyStoreError, OtherStoreError
from core.events import Message, Token
from tests.app.store import chats
from tests.app.store.chats import NOON, chat_of


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChatStore]:
    store = ChatStore(tmp_path / "any.db")
    yield store
    store.close()


def empty(store: ChatStore) -> None:
    with store.transaction():
        for summary in store.summaries():
            store.purge(summary.id)


def write(store: ChatStore, chat: Conversation, before: Conversation | None = None) -> None:
    with store.transaction():
        store.write(chat, before)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(chats.chats, max_size=3, unique_by=lambda chat: chat.id))
def test_any_chat_comes_back_exactly(store: ChatStore, many: list[Conversation]) -> None:
    empty(store)
    for chat in many:
        write(store, chat)
    assert [store.load(chat.id) for chat in many] == many
    assert {each.id: each for each in store.summaries()} == {chat.id: summary_of(chat) for chat in many}


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(chats.chats, st.lists(chats.turns, min_size=1, max_size=4), st.booleans())
def test_writing_only_what_changed_is_writing_it(
    store: ChatStore, first: Conversation, later: list[tuple[chats.Turn, ...]], rename: bool
) -> None:
    empty(store)
    write(store, first)
    before = first
    for turns in later:
        # Some of the old turns stay the same objects, as when a chat goes on.
        chat = replace(before, turns=(*before.turns[: len(turns)], *turns)[:5])
        chat = chat.renamed("Another") if rename else chat
        write(store, chat, before)
        assert store.load(chat.id) == chat
        before = chat
    order = "SELECT title, question, names, answer FROM words ORDER BY 1, 2, 3, 4"
    in_steps = store.connection.execute(order).fetchall()
    empty(store)
    write(store, before)
    assert in_steps == store.connection.execute(order).fetchall()


def test_a_flush_in_mid_answer_writes_that_answer_only(tmp_path: Path) -> None:
    store = ChatStore(tmp_path / "chats.db")
    chat = chat_of(1, turns=20, tokens=50).ask("new", Message("user", "And now?"))
    write(store, chat)
    rows: list[str] = []
    store.connection.set_trace_callback(rows.append)
    longer = chat.write("new", chats.written("new", 30))
    write(store, longer, chat)
    changing = [row.split()[0:3] for row in rows if row.startswith(("INSERT", "DELETE", "UPDATE"))]
    assert changing == [["INSERT", "INTO", "chats"], ["DELETE", "FROM", "parts"], ["INSERT", "OR", "REPLACE"]]
    store.connection.set_trace_callback(None)
    assert store.load(chat.id) == longer
    store.close()


def test_of_a_growing_answer_only_new_tokens_are_written(tmp_path: Path) -> None:
    store = ChatStore(tmp_path / "chats.db")
    before = Conversation("c", NOON).ask("t", Message("user", "?"))
    write(store, before)
    tokens = chats.written("t", 1000)
    for begin in range(0, 1000, 10):
        chat = before.write("t", tokens[begin : begin + 10])
        write(store, chat, before)
        assert store.load("c") == chat
        before = chat
    sizes = "SELECT max(length(tokens)), count(*) FROM"
    longest, parts = store.connection.execute(f"{sizes} parts").fetchone()
    assert parts == 99
    assert longest < 1_000
    ended = before.finish("t", chats.finished("t", 1000))
    write(store, ended, before)
    assert store.load("c") == ended
    assert store.connection.execute(f"{sizes} parts").fetchone()[1] == 0
    store.close()


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE chats SET title = title || '!'",
        "UPDATE chats SET context_used_tokens = 7",
        "UPDATE turns SET name = 'other'",
        "UPDATE turns SET asked = '2020-01-01T00:00:00+00:00' WHERE place = 1",
        "UPDATE answers SET tokens = (SELECT tokens FROM answers WHERE turn = 2) WHERE turn = 1",
        "UPDATE answers SET turn = turn + 100",
        "DELETE FROM answers WHERE turn = 1",
        "DELETE FROM turns WHERE place = 2",
        "DELETE FROM turns WHERE place = 0",
        "DELETE FROM parts WHERE place = (SELECT min(place) FROM parts)",
        "UPDATE parts SET tokens = (SELECT tokens FROM parts ORDER BY place DESC LIMIT 1)",
    ],
)
def test_no_harm_to_a_row_goes_unnoticed(tmp_path: Path, harm: str) -> None:
    store = ChatStore(tmp_path / "chats.db")
    before = chat_of(1, turns=3).ask("new", Message("user", "And now?"))
    write(store, before)
    for _ in range(4):
        chat = before.write("new", chats.written("new", 3, word=str(len(before.turns[-1].answer.tokens))))
        write(store, chat, before)
        before = chat
    store.check()
    store.connection.execute("PRAGMA foreign_keys = OFF")
    assert store.connection.execute(harm).rowcount
    with pytest.raises(ChecksumError):
        store.check()
    store.close()


def test_purging_leaves_nothing(tmp_path: Path) -> None:
    store = ChatStore(tmp_path / "chats.db")
    write(store, chat_of(1, turns=3))
    with store.transaction():
        store.purge("c1")
    for table in ("chats", "turns", "answers", "words"):
        assert store.connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
    with pytest.raises(KeyError):
        store.load("c1")
    store.close()


def test_half_a_character_is_stored_and_exported_as_a_question_mark(tmp_path: Path) -> None:
    half = "a\ud83db"
    token = Token("r", 1, "\ud83d", "normal", 1, 0)
    turns = (Turn("t", Message("user", half), Answer((token,), "stopped")),)
    chat = Conversation("c", NOON, turns, name=half)
    with ChatStore(tmp_path / "chats.db") as store:
        write(store, chat)
        store.search(half)
        store.check()
        assert store.load("c") == from_json(to_json([chat]))[0]
        assert (store.load("c").name, store.load("c").turns[0].answer.text) == ("a\ufffdb", "\ufffd")


def test_a_batch_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    store = ChatStore(tmp_path / "chats.db")

    def fail_half_way() -> None:
        with store.transaction():
            store.write(chat_of(1))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()
    assert store.summaries() == []
    store.close()


def test_a_database_that_is_being_created_is_not_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader opens it between two statements of the process or thread that writes."""
    path = tmp_path / "chats.db"
    with Database(path) as database:
        database.connection.execute("PRAGMA journal_mode = WAL")
    version_of = schema.version_of

    def created_before(connection: sqlite3.Connection) -> int:
        monkeypatch.undo()
        ChatStore(path).close()
        return version_of(connection)

    monkeypatch.setattr(schema, "version_of", created_before)
    with pytest.raises(EmptyStoreError):
        ChatStore(path, read_only=True)
    ChatStore(path, read_only=True).close()


def test_a_newer_file_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    store = ChatStore(path)
    write(store, chat_of(1))
    store.connection.execute("PRAGMA user_version = 99")
    store.close()
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(OtherStoreError, match="version 99"):
            ChatStore(path, read_only=read_only)
    assert path.read_bytes() == before


def test_an_older_file_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    with Database(path) as database:
        schema.create(database.connection)
        database.connection.execute(f"PRAGMA user_version = {schema.VERSION - 1}")
    before = path.read_bytes()
    for read_only in (True, False):
        with pytest.raises(OtherStoreError, match="older"):
            ChatStore(path, read_only=read_only)
    assert path.read_bytes() == before


def test_commits_reach_the_disk_on_macos(tmp_path: Path) -> None:
    """SQLite's fsync ends at the disk's cache there, unless these are set."""
    with ChatStore(tmp_path / "chats.sqlite") as store:
        for name in ("fullfsync", "checkpoint_fullfsync"):
            assert store.connection.execute(f"PRAGMA {name}").fetchone() == (1,)
