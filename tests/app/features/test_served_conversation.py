"""What the server's window shows of a request: everything that its messages have."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import count
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from pytestqt.qtbot import QtBot

from app.chat.entry import AnswerEntry, answer_entry
from app.chat.transcript import Transcript
from app.features.server.conversation import turns_of
from app.session.chats.conversation import Answer, Turn
from core.events import Attachment, Generate, Image, LeftOut, Message, Role, Tool, ToolCall

CAME = datetime(2026, 11, 29)
# Not content: what a machine needs to find it, and a document's text, which its chip stands for.
NOT_SHOWN = {"Image": {"path", "hash"}, "ToolCall": {"id"}, "Attachment": {"text"}, "LeftOut": {"kind"}}
NOT_SHOWN |= {"Message": {"role", "tool_call_id"}}


def contents(value: object) -> Iterator[str]:
    """Every text in `value`, also of fields that messages may get later."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from contents(each)
    elif isinstance(value, msgspec.Struct):
        kind = type(value)
        for field in msgspec.structs.fields(kind):
            if field.name not in NOT_SHOWN.get(kind.__name__, ()):
                yield from contents(getattr(value, field.name))


@st.composite
def requests(draw: st.DrawFn) -> Generate:
    """A request of any messages in any order, whose texts all differ."""
    numbers = count(100)

    def words() -> str:
        return f"w{next(numbers)}{draw(st.sampled_from(['', '```', ' <b>', ' *', '“']))}w"

    def message(role: Role) -> Message:
        images = tuple(
            Image(f"{words()}.png", "/gone", "0" * 64, next(numbers), next(numbers), 0,
                  (LeftOut("later frame", 3),) if draw(st.booleans()) else ())
            for _ in range(draw(st.integers(0, 2)))
        )  # fmt: skip
        attached = (Attachment(f"{words()}.txt", "text"),) if draw(st.booleans()) else ()
        texts = {"content": words() if draw(st.booleans()) else "", "images": images}
        if role == "assistant":
            calls = tuple(
                ToolCall(f"c{next(numbers)}", words(), words()) for _ in range(draw(st.integers(0, 2)))
            )
            return Message(role, **texts, tool_calls=calls, thought=words() if draw(st.booleans()) else "")
        return Message(role, **texts, attachments=attached)

    roles = draw(st.lists(st.sampled_from(["system", "user", "assistant", "tool"]), min_size=1, max_size=8))
    tools = tuple(Tool(words()) for _ in range(draw(st.integers(0, 2))))
    return Generate("r", tuple(map(message, roles)), tools=tools)


def shown(turns: tuple[Turn, ...]) -> str:
    return "\n".join(
        text
        for turn in turns
        for text in (turn.user.content, *(each.name for each in turn.user.attachments), turn.answer.text)
    )


@given(requests())
@settings(max_examples=60, deadline=None)
def test_nothing_of_a_request_is_missing(asked: Generate) -> None:
    answer = Answer()
    turns = turns_of(asked, answer, CAME)
    assert turns[-1].id == asked.request
    assert turns[-1].answer is answer
    assert len({turn.id for turn in turns}) == len(turns)
    everything = shown(turns)
    places = [everything.index(text) for text in contents(asked.messages) if text]
    assert len(places) == len([text for text in contents(asked.messages) if text])
    for tool in asked.tools:
        assert tool.name in everything
    for image in (image for message in asked.messages for image in message.images):
        assert f"{image.width:,} × {image.height:,} pixels" in everything
        assert ("without 3 later frames" in everything) or not image.left_out
    assert everything.count("erases images") == sum(len(each.images) for each in asked.messages)
    # In the order of the messages.
    starts = [everything.index(each.content) for each in asked.messages if each.content]
    assert starts == sorted(starts)


def test_an_agents_request_is_shown_as_its_conversation(qtbot: QtBot) -> None:
    images = (
        Image("image-1.png", "/gone", "1" * 64, 40, 30),
        Image("image-2.png", "/gone", "2" * 64, 50, 20),
    )
    call = ToolCall("c1", "look", '{"at": "```"}')
    asked = Generate(
        "r",
        (
            Message("system", "Be brief."),
            Message("user", "What is on it?", images=images[:1]),
            Message("assistant", "I look.", tool_calls=(call,), thought="First look."),
            Message("tool", "A harbour.", tool_call_id="c1", images=images[1:]),
        ),
        tools=(Tool("look"), Tool("write")),
    )
    assert [turn.user.images for turn in turns_of(asked, Answer(), CAME)] == [(), ()]  # named, not shown
    turns = turns_of(asked, Answer(), CAME, lambda hash: True)
    assert [turn.user.images for turn in turns] == [images[:1], images[1:]]
    view = Transcript(read_only=True)
    qtbot.addWidget(view)
    view.resize(900, 700)
    view.show()
    entry = answer_entry(turns[-1])
    entry.show_waiting("Waiting…")
    view.show_turns(turns, running=entry)
    qtbot.waitUntil(lambda: view.answer("r 0") is not None)
    said = view.answer_text("r 0")
    assert said.startswith("**Thought**\n\nFirst look.\n\nI look.\n\n**Call of look**")
    assert '````\n{"at": "```"}\n````' in said
    earlier: Any = view.answer("r 0")
    # It was sent by the client, which the line of figures must not call an import.
    assert "imported" not in earlier.footer.stats.line
    assert isinstance(entry, AnswerEntry)
