"""The conversation of a served request as turns for the transcript: every message, and all that it has. Pure.

Messages between two answers are one question. The last question has the request's own answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import groupby

from app.features.server import strings
from app.session.chats.conversation import Answer, Turn
from core.documents import strings as document_strings
from core.events import TYPED, Generate, Image, Message, Token, ToolCall

_BACKTICKS = re.compile("`+")


def turns_of(
    asked: Generate,
    answer: Answer,
    came: datetime,
    has_picture: Callable[[str], bool] = lambda hash: False,
) -> tuple[Turn, ...]:
    """The turns of a request. The last one has its id, and `answer`.

    Texts of the system, of tools, and of an answer that the client began are marked as such. All images are
    named; those with a picture, by their hashes, are shown as well.
    """
    names = {call.id: call.name for message in asked.messages for call in message.tool_calls}
    runs = [list(each) for _, each in groupby(asked.messages, lambda each: each.role == "assistant")]
    if not runs or runs[0][0].role == "assistant":
        runs.insert(0, [])
    begun = runs.pop() if len(runs) % 2 == 0 else []
    questions, answers = runs[::2], runs[1::2]
    questions[-1] += begun
    turns = []
    for number, messages in enumerate(questions):
        is_last = number == len(questions) - 1
        tools = ", ".join(each.name for each in asked.tools) if not number else ""
        turns.append(
            Turn(
                asked.request if is_last else f"{asked.request} {number}",
                _question(messages, names, tools, has_picture),
                answer if is_last else _earlier(answers[number]),
                came if is_last else None,
            )
        )
    return tuple(turns)


def _question(
    messages: list[Message], names: dict[str, str], tools: str, has_picture: Callable[[str], bool]
) -> Message:
    parts = [_heading(strings.TOOLS), tools] if tools else []
    for message in messages:
        if message.role == "tool":
            parts.append(_heading(strings.result_of(names.get(message.tool_call_id, ""))))
        elif message.role != "user":
            parts.append(_heading(strings.ROLES[message.role]))
        parts += _texts(message)
        parts += map(_image_line, message.images)
    attachments = tuple(each for message in messages for each in message.attachments)
    images = tuple(each for message in messages for each in message.images if has_picture(each.hash))
    return Message("user", "\n\n".join(parts), attachments, images=images)


def _earlier(messages: list[Message]) -> Answer:
    parts = [part for each in messages for part in (*_texts(each), *map(_image_line, each.images))]
    return Answer((Token("", TYPED, "\n\n".join(parts), "normal", 1, 0),) if parts else (), "imported")


def _texts(message: Message) -> Iterator[str]:
    """The texts of a message as Markdown, without its attachments and images."""
    if message.thought:
        yield _heading(strings.THOUGHT)
        yield message.thought
    if message.content:
        yield message.content
    yield from map(_call, message.tool_calls)


def _heading(text: str) -> str:
    return f"**{text}**"


def _call(call: ToolCall) -> str:
    longest = max((len(each) for each in _BACKTICKS.findall(call.arguments)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{_heading(strings.call_of(call.name))}\n\n{fence}\n{call.arguments}\n{fence}"


def _image_line(image: Image) -> str:
    left_out = document_strings.left_out(image.left_out)
    return strings.image(image.name, image.width, image.height, left_out)
