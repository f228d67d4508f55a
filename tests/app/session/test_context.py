"""The context that a chat uses: counted by its last answers; texts after them are not counted yet."""

from __future__ import annotations

from datetime import datetime

import pytest
from msgspec.structs import replace

from app.session.chats.conversation import Conversation
from app.session.context import Held, held
from app.session.tools import loop
from core.events import Attachment, Message
from core.tools.messages import CallResult
from tests.app.session.tools.test_loop import chat_with, tokens_of, written
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


def test_results_that_the_model_has_not_read_are_counted_besides() -> None:
    calls = chat_with(written("fetch", {}))
    call = calls.turn("t").answer.calls[0]
    calls = loop.allow(calls, "t", call.id, "once", "{}")
    calls = loop.returned(calls, "t", call.id, CallResult("x" * 2_500))
    finished = calls.turn("t").answer.finished
    assert finished is not None
    used = replace(finished, stats=replace(finished.stats, context_used_tokens=50))
    calls = calls.with_answer("t", replace(calls.turn("t").answer, finished=used))
    assert (held(calls, 0).counted_tokens, held(calls, 0).uncounted) == (50, ("x" * 2_500,))
    assert held(calls.go_on("t", "toy"), 90).uncounted == ()
    later = calls.go_on("t", "toy").write("t", tokens_of("So.", first=1)).finish("t", used)
    assert held(later, 0).uncounted == ()
    unknown = calls.with_answer("t", replace(calls.turn("t").answer, finished=None))
    assert held(unknown, 0).uncounted[-1] == "x" * 2_500
