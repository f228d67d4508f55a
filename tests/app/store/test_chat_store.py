"""Records on disk: exact, changed in place, damage noticed."""

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
from app.session.chats.projects import Project
from app.session.documents import KeptDocument
from app.store import schema
from app.store.chat_files import from_json, to_json, to_markdown
from app.store.chat_store import ChatStore, StoredDocument, key_of
from app.store.database import Database
from app.store.faults import UNREADABLE, EmptyStoreError, OtherStoreError
from core.events import Attachment, Message, Token
from tests.app.store import chats
from tests.app.store.chats import NOON, chat_of, with_results

# Values that rows of the tests do not have.
COLUMNS = {
    "chats": {
        "id": "x",
        "title": "x",
        "name": "x",
        "changed": "2020-01-01",
        "turns": 9,
        "deleted": 1,
        "state": 1,
    },
    "turns": {"chat": "x", "name": "x", "state": "x"},
    "parts": {"chat": "x", "state": "x"},
    "documents": {"id": "x", "name": "x", "used": "x", "removed": 1, "state": "x", "text_sum": 1},
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChatStore]:
    store = ChatStore(tmp_path / "any.db")
    yield store
    store.close()


def empty(store: ChatStore) -> None:
    with store.transaction():
        for summary in store.heads("chats"):
            store.do(("chats", summary.id), None)


def write(store: ChatStore, chat: Conversation, before: Conversation | None = None) -> None:
    with store.transaction():
        store.do(key_of(chat), chat, before)


@pytest.mark.sweep
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(chats.chats, st.lists(chats.turns, min_size=1, max_size=4), st.booleans())
def test_writing_only_what_changed_is_writing_it(
    store: ChatStore, first: Conversation, later: list[tuple[chats.Turn, ...]], rename: bool
) -> None:
    empty(store)
    write(store, first)
    assert (store.load(first.id), store.heads("chats")) == (first, [summary_of(first)])
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


def test_a_flush_in_mid_answer_writes_new_tokens_only(store: ChatStore) -> None:
    before = chat_of(1, turns=20, tokens=50).ask("t", Message("user", "And now?"))
    write(store, before)
    tokens = chats.written("t", 1000)
    rows: list[str] = []
    for begin in range(0, 1000, 10):
        chat = before.write("t", tokens[begin : begin + 10])
        store.connection.set_trace_callback(rows.append if begin else None)
        write(store, chat, before)
        store.connection.set_trace_callback(None)
        before = chat
    changing = {" ".join(row.split()[:3]) for row in rows if row.startswith(("INSERT", "DELETE", "UPDATE"))}
    assert changing == {"INSERT INTO chats", "DELETE FROM turns", "INSERT INTO parts"}
    assert max(map(len, rows)) < 2_000
    assert store.connection.execute("SELECT count(*) FROM parts WHERE turn = 20").fetchone() == (100,)
    assert store.load("c1") == before
    ended = before.finish("t", chats.finished("t", 1000))
    write(store, ended, before)
    assert store.load("c1") == ended
    assert store.connection.execute("SELECT count(*) FROM parts WHERE turn = 20").fetchone() == (1,)


@pytest.mark.parametrize(
    "harm",
    [
        *(f"UPDATE chats SET {column} = '{value}'" for column, value in COLUMNS["chats"].items()),
        *(f"UPDATE turns SET {column} = '{value}'" for column, value in COLUMNS["turns"].items()),
        *(f"UPDATE parts SET {column} = '{value}'" for column, value in COLUMNS["parts"].items()),
        *(f"UPDATE documents SET {column} = '{value}'" for column, value in COLUMNS["documents"].items()),
        "UPDATE projects SET id = 'q'",
        "UPDATE projects SET state = x'c1'",
        "UPDATE texts SET text = 'mist'",
        "UPDATE texts SET text = x'ff'",
        "DELETE FROM texts",
        "UPDATE turns SET state = (SELECT state FROM turns WHERE place = 1) WHERE place = 2",
        "UPDATE turns SET place = place + 9",
        "UPDATE parts SET place = place + 99",
        "UPDATE parts SET turn = turn + 9",
        "DELETE FROM turns WHERE place = 2",
        "DELETE FROM turns WHERE place = 0",
        "DELETE FROM chats",
        "DELETE FROM parts WHERE place = (SELECT min(place) FROM parts)",
    ],
)
def test_no_harm_to_a_row_goes_unnoticed(store: ChatStore, harm: str) -> None:
    before = chat_of(1, turns=3).ask("new", Message("user", "And now?"))
    write(store, before)
    for _ in range(4):
        chat = before.write("new", chats.written("new", 3, word=str(len(before.turns[-1].answer.tokens))))
        write(store, chat, before)
        before = chat
    document = StoredDocument(KeptDocument("d", "Fog", "x", 3, NOON, NOON), "fog")
    with store.transaction():
        for record in (Project("p", "Harbour", NOON), document):
            store.do(key_of(record), record)
    store.check()
    store.connection.execute("PRAGMA foreign_keys = OFF")
    assert store.connection.execute(harm).rowcount
    with pytest.raises(UNREADABLE):
        store.check()


def test_half_a_character_is_stored_and_exported_as_a_question_mark(tmp_path: Path) -> None:
    half, whole = "a\ud83db", "a\ufffdb"
    token = Token("r", 1, half, "normal", 1, 0)
    turns = (Turn("t", Message("user", half, (Attachment(half, half),)), Answer((token,), "stopped")),)
    chat = Conversation("c", NOON, turns, name=half)
    document = KeptDocument("d", half, "x", 3, NOON, NOON)
    with ChatStore(tmp_path / "chats.db") as store:
        for record in (chat, Project("p", half, NOON), StoredDocument(document, half), document):
            with store.transaction():
                store.do(key_of(record), record)
        store.search(half)
        store.check()
        assert store.load("c") == from_json(to_json([chat]))[0]
        assert (store.load("c").name, store.load("c").turns[0].answer.text) == (whole, whole)
        assert store.head(("projects", "p")).name == store.head(("documents", "d")).name == whole
    assert half not in to_markdown(chat)


def test_a_database_that_is_being_created_is_not_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader opens it between two statements of the process or thread that writes."""
    path = tmp_path / "chats.db"
    with Database(path) as database:
        database.connection.execute("PRAGMA journal_mode = WAL")
    require_ours = schema.require_ours

    def created_before(connection: sqlite3.Connection) -> bool:
        monkeypatch.undo()
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        ChatStore(path).close()
        return require_ours(connection)

    monkeypatch.setattr(schema, "require_ours", created_before)
    with pytest.raises(EmptyStoreError):
        ChatStore(path, read_only=True)
    ChatStore(path, read_only=True).close()


@pytest.mark.parametrize(("version", "said"), [(99, "version 99"), (schema.VERSION - 1, "older")])
def test_a_file_of_another_version_is_refused_and_not_touched(
    tmp_path: Path, version: int, said: str
) -> None:
    path = tmp_path / "chats.db"
    with ChatStore(path) as store:
        write(store, chat_of(1))
        store.connection.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(OtherStoreError, match=said):
            ChatStore(path, read_only=read_only)
    assert path.read_bytes() == before


def test_results_are_stored_once_a_turn_and_go_with_it(store: ChatStore) -> None:
    content = "returned 42 " * 50
    chat = with_results(chat_of(1, turns=2), content)
    write(store, chat)
    assert store.load("c1") == chat
    rows = store.connection.execute("SELECT turn, data FROM blobs").fetchall()
    assert rows == [(1, content.encode())]
    for table in ("turns", "parts"):
        states = store.connection.execute(f"SELECT state FROM {table}").fetchall()
        assert not [state for (state,) in states if content.encode() in state]
    more = with_results(chat, "and more")
    write(store, more, chat)
    assert store.load("c1") == more
    write(store, more.without(more.turns[1].id), more)
    assert store.connection.execute("SELECT count(*) FROM blobs").fetchone() == (0,)


@pytest.mark.parametrize("damage", ["DELETE FROM blobs", "UPDATE blobs SET data = x'00'"])
def test_a_result_that_is_not_the_one_that_was_written_is_damage(store: ChatStore, damage: str) -> None:
    write(store, with_results(chat_of(1), "returned"))
    with store.transaction():
        store.connection.execute(damage)
    with pytest.raises(UNREADABLE):
        store.load("c1")
