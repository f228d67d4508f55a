"""Items as a response's `input` has them, and the messages that Draftlight asks.

What an answer said and what it called beside that are items of their own there, and one turn here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.events import Message, Role, ToolCall
from core.serve.errors import field_error
from core.serve.left_out import Kind, LeftOut, question_at

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}


class InputText(Struct, tag_field="type", tag="input_text"):
    """Text of a person or a program."""

    text: str
    prompt_cache_breakpoint: Any = None


class OutputText(Struct, tag_field="type", tag="output_text"):
    """Text of an earlier answer; its annotations are ignored."""

    text: str
    annotations: Any = None
    logprobs: Any = None


class Refusal(Struct, tag_field="type", tag="refusal"):
    """An earlier answer that refused."""

    refusal: str


Part = InputText | OutputText | Refusal


class MessageItem(Struct, tag_field="type", tag="message"):
    """A message. Clients leave its `type` out."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[Part]
    id: str | None = None
    status: str | None = None
    phase: str | None = None


class CallItem(Struct, tag_field="type", tag="function_call"):
    """A call of an earlier answer."""

    call_id: str
    name: str
    arguments: str
    id: str | None = None
    status: str | None = None
    caller: Any = None


class ResultItem(Struct, tag_field="type", tag="function_call_output"):
    """What a call gave."""

    call_id: str
    output: str | list[InputText]
    id: str | None = None
    status: str | None = None
    caller: Any = None


class CustomCallItem(Struct, tag_field="type", tag="custom_tool_call"):
    """A call of a custom tool, of an earlier answer."""

    call_id: str
    name: str
    input: str
    id: str | None = None
    status: str | None = None


class CustomResultItem(Struct, tag_field="type", tag="custom_tool_call_output"):
    """What the call of a custom tool gave."""

    call_id: str
    output: str | list[InputText]
    id: str | None = None
    status: str | None = None


class ReasoningItem(Struct, tag_field="type", tag="reasoning"):
    """The thought before an earlier answer or call: its text, else its summary. Encrypted text is ignored."""

    id: str | None = None
    summary: Any = None
    content: Any = None
    encrypted_content: Any = None
    status: str | None = None


Item = MessageItem | CallItem | ResultItem | CustomCallItem | CustomResultItem | ReasoningItem
_ITEMS = tuple(str(kind.__struct_config__.tag) for kind in get_args(Item))
_RESULTS = ("function_call_output", "custom_tool_call_output")
_PARTS = tuple(str(kind.__struct_config__.tag) for kind in (InputText, OutputText, Refusal))


def with_types(given: Any) -> Any:
    """`input` as it came, with the type of those items that are messages and do not say so."""
    if not isinstance(given, list):
        return given
    return [
        {"type": "message", **item} if isinstance(item, dict) and "role" in item else item for item in given
    ]


def with_text(left: LeftOut, items: list[Any]) -> list[Any]:
    """The items without those of other types, and with texts in place of parts that the model cannot read."""
    question = question_at(items, _kind)
    read = []
    for number, item in enumerate(items):
        if isinstance(item, dict):
            name = "output" if item.get("type") in _RESULTS else "content"
            types = ("input_text",) if name == "output" else _PARTS
            if item.get("type") in ("message", *_RESULTS) and name in item:
                content = left.content(
                    f"input[{number}].{name}",
                    item[name],
                    types,
                    text_type="input_text",
                    is_question=number == question,
                )
                if item.get("role") in ("system", "developer"):
                    content = left.system(f"input[{number}].content", content)
                item = {**item, name: content}
            elif item.get("type") == "function_call" and "arguments" in item:
                arguments = left.arguments(f"input[{number}].arguments", item["arguments"])
                item = {**item, "arguments": arguments}
        read.append(item)
    return left.items("input", read, _ITEMS)


def _kind(item: dict[str, Any]) -> Kind:
    if item.get("type") == "message":
        role = str(item.get("role"))
        return "user" if role == "user" else "system" if role in ("system", "developer") else "other"
    return "result" if item.get("type") in _RESULTS else "other"


def messages_of(instructions: str | None, given: str | Sequence[Item]) -> tuple[Message, ...]:
    """Draftlight's. Raises `ApiError` 400 if there are none."""
    items = [MessageItem("user", given)] if isinstance(given, str) else given
    messages = [Message("system", instructions)] if instructions else []
    asked = len(messages)
    thoughts: list[str] = []  # of the assistant's next item
    for item in items:
        match item:
            case MessageItem(role, content):
                thought = _taken(thoughts) if role == "assistant" else ""
                messages.append(Message(_ROLES[role], _text(content), thought=thought))
            case CallItem(call, name, arguments) | CustomCallItem(call, name, arguments):
                if isinstance(item, CustomCallItem):
                    arguments = msgspec.json.encode({"input": arguments}).decode()
                made = ToolCall(call, name, arguments)
                if len(messages) > asked and messages[-1].role == "assistant":
                    turn = messages.pop()
                    thought = "\n\n".join(each for each in (turn.thought, _taken(thoughts)) if each)
                    messages.append(replace(turn, tool_calls=(*turn.tool_calls, made), thought=thought))
                else:
                    messages.append(Message("assistant", "", tool_calls=(made,), thought=_taken(thoughts)))
            case ResultItem(call, output) | CustomResultItem(call, output):
                messages.append(Message("tool", _text(output), tool_call_id=call))
            case ReasoningItem():
                thoughts += [text for text in [_thought(item)] if text]
                continue
        thoughts.clear()
    if len(messages) == asked:
        raise field_error("input", "“input” is empty; it takes a text or at least one message.")
    return tuple(messages)


def _taken(thoughts: list[str]) -> str:
    """The thoughts as one text; the list is empty after this."""
    text = "\n\n".join(thoughts)
    thoughts.clear()
    return text


def _thought(item: ReasoningItem) -> str:
    return _part_texts(item.content) or _part_texts(item.summary)


def _part_texts(parts: object) -> str:
    """The texts of `parts`, a list of objects that clients may fill with anything."""
    if not isinstance(parts, list):
        return ""
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "\n\n".join(text for text in texts if isinstance(text, str) and text)


def _text(content: str | Sequence[Part]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.refusal if isinstance(part, Refusal) else part.text for part in content)
