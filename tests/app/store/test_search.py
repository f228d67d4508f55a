"""Finding chats by what was said in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.session.chats.archive import passage_of
from app.session.chats.conversation import Answer, Conversation, Turn
from app.store.chat_store import ChatStore
from app.store.faults import UNREADABLE, is_damage
from core.events import Attachment, Message, Token
from tests.app.store.chats import NOON


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


PASTED = [
    pytest.param(" ".join(map(str, range(9_000))), id="many words"),
    pytest.param("x" * 60_000, id="a long word"),
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChatStore]:
    store = ChatStore(tmp_path / "chats.db")
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
        pytest.param("fog " * 5_000, "c1", id="often"),
    ],
)
def test_words_are_found(store: ChatStore, query: str, chat: str) -> None:
    assert found(store, query) == [chat]


@pytest.mark.parametrize(
    "query", ["", "  ", "fog intervals", "zebra", "*", "NOT", "title:fog", "NEAR(", "\0", *PASTED]
)
def test_what_is_not_there_is_not_found(store: ChatStore, query: str) -> None:
    assert found(store, query) == []


def test_the_passage_shows_the_match(store: ChatStore) -> None:
    (hit,) = store.search("duty mast")
    assert hit.turn_id == "t1"
    assert hit.passage == "The ferry waits until the duty master agrees."
    assert [hit.passage[begin:end] for begin, end in hit.marks] == ["duty", "mast"]


@pytest.mark.parametrize("place", range(3))
def test_the_passage_is_of_the_text_with_most_of_the_words(place: int) -> None:
    texts = ["Fog in the north", "Fog over the sea", "Fog at the pier"]
    texts[place] = "The pilot waits for the fog"
    question, document, answer = texts
    with ChatStore(None) as store:
        with store.transaction():
            store.write(said(1, question, answer, document).renamed("Fog"))
        (hit,) = store.search("fog pilot")
    assert hit.passage == texts[place]
    assert [hit.passage[begin:end] for begin, end in hit.marks] == ["pilot", "fog"]


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


def test_a_letter_whose_lower_case_is_longer_shifts_no_mark() -> None:
    assert passage_of("İyi günler. Fog in Iğdır", ["fog", "İYİ"])[1] == ((0, 3), (12, 15))


def test_a_passage_from_the_middle_of_a_long_text() -> None:
    text = "word " * 200 + "the needle lies here " + "word " * 200
    passage, marks = passage_of(text, ["needle"])
    assert passage.startswith("…word")
    assert passage.endswith("…")
    assert len(passage) < 180
    assert [passage[begin:end] for begin, end in marks] == ["needle"]


@pytest.mark.parametrize("column", ["title", "question", "names", "answer"])
def test_a_search_in_texts_of_another_type_reports_damage(store: ChatStore, column: str) -> None:
    """Swapped pages do that; SQLite's columns accept any type."""
    store.connection.execute(f"UPDATE words SET {column} = x'ff00'")
    with pytest.raises(UNREADABLE) as raised:
        found(store, "ferry" if column != "answer" else "departures")
    assert is_damage(raised.value)
