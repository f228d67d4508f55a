"""Titles: which chats the model may give one, and which models may. Pure."""

from __future__ import annotations

from app.session.chats.conversation import Conversation
from core.events import Message, ModelInfo

# Of ten real questions the starter (135 million) titled none better than their first words do: it answers
# again, or repeats the question. Instruct models are told apart by their size, which is all that is known.
LEAST_PARAMETERS = 1_000_000_000


def may_give_titles(info: ModelInfo | None) -> bool:
    """Whether the model is large enough."""
    return info is not None and info.parameters >= LEAST_PARAMETERS


def wants_title(chat: Conversation) -> bool:
    """Whether it has only its question's first words, and an answer that ended in order."""
    if chat.name or chat.deleted or not chat.turns:
        return False
    answer = chat.turns[0].answer
    return answer.status in ("finished", "stopped") and bool(answer.text.strip())


def messages_for_title(chat: Conversation) -> tuple[Message, ...]:
    """What a title is made of: the first question and its answer."""
    first = chat.turns[0]
    return (first.user, Message("assistant", first.answer.text))
