"""Which chats the model may give a title, and which models may."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec.structs import replace

from app.controllers.titles import LEAST_PARAMETERS, may_give_titles, messages_for_title, wants_title
from app.session.chats.conversation import Answer, Conversation, Turn
from core.events import Message, Token
from tests.app.session.words import INFO

QUESTION = Message("user", "When may the ferry leave?")
NOW = datetime(2026, 3, 4, tzinfo=UTC)


def chat(answer: Answer) -> Conversation:
    return Conversation("c", NOW, (Turn("t", QUESTION, answer),))


def test_a_chat_wants_one_after_an_answer_and_only_while_it_has_none() -> None:
    tokens = (Token("t", 1, "At ten.", "normal", 1, 0),)
    answered = chat(Answer(tokens=tokens, status="finished"))
    assert wants_title(answered)
    assert messages_for_title(answered) == (QUESTION, Message("assistant", "At ten."))
    assert wants_title(chat(Answer(tokens=tokens, status="stopped")))
    assert not wants_title(chat(Answer(tokens=tokens, status="writing")))
    assert not wants_title(chat(Answer(tokens=tokens, status="failed")))
    assert not wants_title(chat(Answer(status="stopped")))
    assert not wants_title(answered.renamed("Ferries"))
    assert not wants_title(answered.with_deleted(NOW))
    assert not wants_title(Conversation("c", NOW))


def test_only_large_models_give_them() -> None:
    assert not may_give_titles(None)
    assert not may_give_titles(replace(INFO, parameters=LEAST_PARAMETERS - 1))
    assert may_give_titles(replace(INFO, parameters=LEAST_PARAMETERS))
