"""The chats of one run."""

from __future__ import annotations

from datetime import datetime

import pytest

from app.session.chats import Chats
from core.events import Message

NOON = datetime(2026, 5, 4, 12, 0)


def asked(chats: Chats, text: str) -> str:
    chat = chats.open.ask(chats.new_turn_id(), Message("user", text))
    chats.keep(chat)
    return chat.id


def test_starts_with_an_empty_chat_that_is_not_listed() -> None:
    chats = Chats(lambda: NOON)
    assert chats.open.turns == ()
    assert chats.open.created == NOON
    assert chats.listed() == ()


def test_newest_first_and_switching_brings_a_chat_back() -> None:
    chats = Chats(lambda: NOON)
    first = asked(chats, "One")
    chats.start()
    second = asked(chats, "Two")
    assert [chat.title for chat in chats.listed()] == ["Two", "One"]
    assert chats.select(first).title == "One"
    assert chats.get(second).title == "Two"
    assert chats.open.id == first


def test_an_unused_chat_is_used_again() -> None:
    chats = Chats(lambda: NOON)
    first = chats.open.id
    assert chats.start().id == first
    asked(chats, "One")
    unused = chats.start().id
    chats.select(first)
    assert chats.start().id == unused


def test_a_branch_begins_with_turns() -> None:
    chats = Chats(lambda: NOON)
    asked(chats, "One")
    asked(chats, "Two")
    branch = chats.branch(chats.open.turns[0].id)
    assert chats.open.id == branch.id
    assert [turn.user.content for turn in branch.turns] == ["One"]
    assert len(chats.listed()) == 2


def test_turn_ids_are_new() -> None:
    chats = Chats()
    ids = [chats.new_turn_id() for _ in range(50)]
    assert len(set(ids)) == 50


def test_an_unknown_chat_is_refused() -> None:
    with pytest.raises(KeyError):
        Chats().select("nowhere")
