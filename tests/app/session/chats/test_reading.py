"""Which map belongs to which document of a chat."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from app.session.chats.conversation import Conversation, documents
from core.events import Attachment, Message, Passage, ReadingMap
from tests.app.session.words import finished

A, B, C = (Attachment(name, name * 20) for name in "abc")


def read_map(*sources: int) -> ReadingMap:
    passages = tuple(
        Passage(32 * n, 32 * n + 32, n % 2 == 0, 0.5, source) for n, source in enumerate(sources)
    )
    return ReadingMap("t", "lexical", 1000, 500, passages)


def test_attachments_are_numbered_over_all_turns_and_the_newest_map_counts() -> None:
    chat = Conversation("c", datetime(2026, 1, 1))
    chat = chat.ask("t1", Message("user", "One", (A, B))).read("t1", read_map(-1, 0, 1))
    chat = chat.ask("t2", Message("user", "Two"))
    newer = read_map(1, 2, -1)
    chat = chat.ask("t3", Message("user", "Three", (C,))).read("t3", newer)
    first, second, third = documents(chat)
    assert (first.turn_id, first.index, first.source, first.attachment) == ("t1", 0, 0, A)
    assert first.reading == read_map(-1, 0, 1)
    assert first.answered_by == "t1"
    assert (second.turn_id, second.index, second.source, second.reading) == ("t1", 1, 1, newer)
    assert (third.turn_id, third.source, third.answered_by) == ("t3", 2, "t3")


def test_a_map_stays_with_the_answer_unless_it_is_given_up() -> None:
    chat = Conversation("c", datetime(2026, 1, 1))
    assert documents(chat) == ()
    chat = chat.ask("t1", Message("user", "One", (A,)))
    assert [document.reading for document in documents(chat)] == [None]  # read whole
    chat = chat.read("t1", read_map(0))
    assert chat.cut_off("t1", "gone").turn("t1").answer.reading == read_map(0)
    sparse, dense = finished("t1"), finished("t1")
    sparse = replace(sparse, effective=replace(sparse.effective, reading="sparse"))
    assert chat.finish("t1", sparse).turn("t1").answer.reading == read_map(0)
    assert chat.finish("t1", dense).turn("t1").answer.reading is None


def test_each_answer_has_the_map_of_what_had_been_read_by_then() -> None:
    chat = Conversation("c", datetime(2026, 1, 1))
    chat = chat.ask("t1", Message("user", "One", (A,))).read("t1", read_map(0, 0))
    chat = chat.ask("t2", Message("user", "Two"))
    later = read_map(0, 0, 0)
    chat = chat.ask("t3", Message("user", "Three", (B,))).read("t3", later)
    assert documents(chat, "t1")[0].reading == read_map(0, 0)
    assert documents(chat, "t2")[0].reading == read_map(0, 0)  # it read on from there
    assert documents(chat, "t3")[0].reading == documents(chat)[0].reading == later
    assert documents(chat, "t1")[1].reading is None
    # A document without a passage on its map was skipped.
    chat = Conversation("c", datetime(2026, 1, 1))
    chat = chat.ask("t1", Message("user", "One", (A, B))).read("t1", read_map(0, 0))
    assert documents(chat)[1].reading == read_map(0, 0)


def test_an_answer_that_had_everything_ends_the_maps_before_it() -> None:
    chat = Conversation("c", datetime(2026, 1, 1))
    chat = chat.ask("t1", Message("user", "One", (A,))).read("t1", read_map(0, 0))
    chat = chat.ask("t2", Message("user", "Two")).finish("t2", finished("t2"))
    assert documents(chat)[0].reading is None
    assert documents(chat, "t1")[0].reading is not None
