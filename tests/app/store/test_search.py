"""Finding chats by what was said in them, with and without SQLite's full-text index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from app.session.chats.archive import passage_of
from app.session.chats.conversation import Answer, Conversation, Turn
from app.store.chat_store import ChatStore
from app.store.faults import UNREADABLE, is_damage
from app.store.library import Library
from core.events import Attachment, Message, Token
from tests.app.store.chats import NOON, chat_of


def said(number: int, question: str, answer: str, *names: str) -> Conversation:
    token = Token(f"t{number}", 1, answer, "normal", 1, 0)
    user = Message("user", question, tuple(Attachment(name, "the text of it") for name in names))
    turn = Turn(f"t{number}", user, Answer((token,), "finished"), NOON.replace(minute=number))
    return Conversation(f"c{number}", NOON, (turn,))


CHATS = (
    said(1, "Fog departures", "The ferry waits until the duty master agrees.", "Harbour handbook.pdf"),
    said(2, "Merge intervals", "Sort them first, then walk over the pairs.", "berths.csv"),
    said(3, "Über die Fähre", "Die Fähre fährt bei Nebel nicht."),
    said(4, "天気は", "今日の港は霧が深いです。"),
    said(5, "100% of it_all", "a\\b 'quoted' \"twice\""),
)


@pytest.fixture(params=[True, False], ids=["fts5", "like"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ChatStore]:
    store = ChatStore(tmp_path / "chats.db", full_text=request.param)
    with store.transaction():
        for chat in CHATS:
            store.write(chat)
    yield store
    store.close()


def found(store: ChatStore, query: str) -> list[str]:
    return [hit.chat_id for hit in store.search(query)]


@pytest.mark.parametrize(
    ("query", "chat"),
    [
        ("fog", "c1"),
        ("FERRY master", "c1"),
        ("handbook", "c1"),
        ("fog ferry", "c1"),
        ("interv", "c2"),
        ("berths.csv", "c2"),
        ("Nebel", "c3"),
        ("霧", "c4"),
        ("eparture", "c1"),
        ("it_all", "c5"),
        ("100%", "c5"),
        ("a\\b", "c5"),
        ('"twice"', "c5"),
    ],
)
def test_words_are_found(store: ChatStore, query: str, chat: str) -> None:
    assert found(store, query) == [chat]


@pytest.mark.parametrize(
    "query", ["", "  ", "fog intervals", "zebra", "*", "NOT", "title:fog", "NEAR(", "\0"]
)
def test_what_is_not_there_is_not_found(store: ChatStore, query: str) -> None:
    assert found(store, query) == []


def test_the_passage_shows_the_match(store: ChatStore) -> None:
    (hit,) = store.search("duty mast")
    assert hit.turn_id == "t1"
    assert hit.passage == "The ferry waits until the duty master agrees."
    assert [hit.passage[begin:end] for begin, end in hit.marks] == ["duty", "mast"]


def test_a_title_alone_needs_no_passage(store: ChatStore) -> None:
    (hit,) = store.search("depart")
    assert (hit.chat_id, hit.passage) == ("c1", "")


def test_a_given_name_is_found_and_an_old_one_is_not(store: ChatStore) -> None:
    renamed = CHATS[0].renamed("Lighthouse rota")
    with store.transaction():
        store.write(renamed, CHATS[0])
    assert found(store, "lighthouse") == ["c1"]
    with store.transaction():
        store.write(renamed.renamed("Something else"), renamed)
    assert found(store, "lighthouse") == []


def test_deleted_chats_are_not_found(store: ChatStore) -> None:
    with store.transaction():
        store.write(CHATS[0].with_deleted(NOON), CHATS[0])
    assert found(store, "ferry") == []


def test_a_replaced_answer_is_not_found(store: ChatStore) -> None:
    chat = CHATS[0]
    turn = replace(chat.turns[0], id="again", answer=Answer((), "stopped"))
    with store.transaction():
        store.write(replace(chat, turns=(turn,)), chat)
    assert found(store, "ferry") == []
    assert found(store, "fog") == ["c1"]


def test_an_answer_is_found_once_it_is_over(store: ChatStore) -> None:
    """Saved again and again while it is being written, with the question that was saved before it."""
    whole = said(9, "What waits?", "The lighthouse keeper.")
    asked = replace(whole, turns=(replace(whole.turns[0], answer=Answer((), "writing")),))
    with store.transaction():
        store.write(asked)
    assert found(store, "lighthouse") == []
    with store.transaction():
        store.write(whole, asked)
    assert found(store, "lighthouse") == ["c9"]


def test_an_index_of_the_other_kind_is_made_when_it_is_needed(tmp_path: Path) -> None:
    for full_text in (False, True, False, True):
        store = ChatStore(tmp_path / "chats.db", full_text=full_text)
        number = len(store.summaries())
        with store.transaction():
            store.write(said(number + 1, f"Ferry {number}", "Waits."))
        assert len(found(store, "ferry")) == number + 1
        assert len(found(store, "waits")) == number + 1
        store.close()


def test_an_archive_in_memory_finds_the_same(store: ChatStore) -> None:
    deleted = CHATS[1].with_deleted(NOON)
    with store.transaction():
        store.write(deleted, CHATS[1])
    with closing(Library(None)) as archive:
        for chat in (CHATS[0], deleted, *CHATS[2:]):
            archive.save(chat)
        for query in ("fog", "ferry master", "霧", "berths", "intervals", "zebra", ""):
            assert [hit.chat_id for hit in archive.search(query)] == found(store, query)


def test_a_passage_from_the_middle_of_a_long_text() -> None:
    text = "word " * 200 + "the needle lies here " + "word " * 200
    passage, marks = passage_of(text, ["needle"])
    assert passage.startswith("…word")
    assert passage.endswith("…")
    assert len(passage) < 180
    assert [passage[begin:end] for begin, end in marks] == ["needle"]


def test_a_chat_of_many_turns_is_one_hit(tmp_path: Path) -> None:
    store = ChatStore(tmp_path / "chats.db")
    with store.transaction():
        store.write(chat_of(1, turns=30, text="same words"))
    assert len(store.search("word7")) == 1
    store.close()


@pytest.mark.parametrize("column", ["title", "question", "names", "answer"])
def test_a_search_in_texts_of_another_type_reports_damage(store: ChatStore, column: str) -> None:
    """Swapped pages do that; SQLite's columns accept any type."""
    table = "words" if store.full_text else "words_plain"
    store.connection.execute(f"UPDATE {table} SET {column} = x'ff00'")
    with pytest.raises(UNREADABLE) as raised:
        found(store, "ferry" if column != "answer" else "departures")
    assert is_damage(raised.value)
