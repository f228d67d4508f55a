"""A long conversation for tests: turns as the chat store gives them back."""

from __future__ import annotations

from app.session.chats.conversation import Answer, Turn
from core.events import Message
from tests.app.chat.written import FERRY, MERGE, finished, tokens_of


def turns_of(count: int, repeats: int = 3) -> tuple[Turn, ...]:
    """`count` questions and finished answers; every answer says its own number first, and some have
    many short lines, so that nobody guesses their heights."""
    body = tokens_of(("\n\n" + FERRY + "\n\n" + MERGE) * repeats)
    short = tokens_of("\n\n# Short\n\nlines\n\n- of\n- a\n- list")
    turns = []
    for number in range(count):
        question = Message("user", f"Question {number}: who may override it?")
        tokens = (*tokens_of(f"Answer {number}."), *short * (number * 7 % 5), *body)
        turns.append(Turn(f"t{number}", question, Answer(tokens, "finished", finished())))
    return tuple(turns)
