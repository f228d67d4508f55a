"""The context that a chat uses: counted by its last answers; texts after them are not counted yet."""

from __future__ import annotations

from datetime import datetime

import pytest

from app.session.chats.conversation import Conversation
from app.session.context import Held, held
from core.events import Attachment, Message
from tests.app.session.words import finished, token

NEW = Conversation("c1", datetime(2026, 5, 4, 12, 0))


def user(text: str, *attachments: Attachment) -> Message:
    return Message("user", text, attachments)


def chat(last: str, context: int = 90) -> Conversation:
    """Two turns; `last` says how the second one is."""
    first = NEW.ask("t1", user("One")).write("t1", [token(0, text="two")])
    both = first.finish("t1", finished(context=50)).ask("t2", user("Three", Attachment("a.txt", "A")))
    if last == "waiting":
        return both
    both = both.write("t2", [token(0, text="four")])
    return both if last == "writing" else both.finish("t2", finished(context=context))


def test_a_whole_answer_is_counted_by_its_end_whatever_the_last_request_used() -> None:
    for last_tokens in (0, 70):
        assert held(chat("finished"), last_tokens) == Held(90)


@pytest.mark.parametrize("last", ["waiting", "writing"])
def test_a_running_answer_is_counted_by_what_was_reported_of_it(last: str) -> None:
    assert held(chat(last), 70) == Held(70)


def test_what_came_after_the_last_count_is_uncounted() -> None:
    assert held(chat("writing"), 0) == Held(50, ("A", "Three", "four"))
    assert held(chat("waiting"), 0) == Held(50, ("A", "Three"))
    # An imported answer has no count.
    assert held(chat("finished", context=0), 70) == Held(50, ("A", "Three", "four"))


def test_without_any_count_the_chats_messages_are_counted() -> None:
    found = held(NEW.ask("t1", user("One")), 0)
    # Without an answer, what is asked next is part of the same message.
    assert found == Held(0, ("One",), (user("One\n\nx"),))
