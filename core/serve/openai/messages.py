"""Messages as OpenAI's clients send them, and as Draftlight asks them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from msgspec import Struct

from core.events import Message, Role, ToolCall
from core.serve.errors import field_error

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}


class TextPart(Struct):
    """A text part. Other types are handled before decoding."""

    type: Literal["text"]
    text: str


Content = str | list[TextPart] | None


class CalledFunction(Struct):
    """What a call called."""

    name: str
    arguments: str = "{}"


class GivenCall(Struct):
    """A call of an earlier answer."""

    id: str
    function: CalledFunction
    type: Literal["function"] = "function"
    index: int = 0


class ChatMessage(Struct):
    """A message. Fields that servers add to their answers are accepted and ignored."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Content = None
    name: str | None = None
    tool_calls: list[GivenCall] | None = None
    tool_call_id: str | None = None
    refusal: Any = None
    audio: Any = None
    annotations: Any = None
    function_call: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None
    thinking_blocks: Any = None
    provider_specific_fields: Any = None


def text_of(content: Content) -> str:
    """All of it; parts are lines of their own."""
    if isinstance(content, list):
        return "\n".join(part.text for part in content)
    return content or ""


def messages_of(given: Sequence[ChatMessage]) -> tuple[Message, ...]:
    """Draftlight's. Raises `ApiError` 400 where there are none, or one has nothing that it must have."""
    if not given:
        raise field_error("messages", "“messages” is empty; it takes at least one message.")
    return tuple(_message(f"messages[{place}]", message) for place, message in enumerate(given))


def _message(place: str, given: ChatMessage) -> Message:
    calls = tuple(
        ToolCall(call.id, call.function.name, call.function.arguments) for call in given.tool_calls or ()
    )
    if given.role == "tool" and not given.tool_call_id:
        raise field_error(f"{place}.tool_call_id", "A message of the role “tool” says which call it answers.")
    return Message(
        _ROLES[given.role],
        text_of(given.content),
        tool_calls=calls,
        tool_call_id=given.tool_call_id or "",
        thought=next(filter(None, _thoughts(given)), ""),
    )


def _thoughts(given: ChatMessage) -> Iterator[str]:
    """The thought before an earlier answer, in each form that servers give it."""
    for thought in (given.reasoning_content, given.reasoning):
        yield thought if isinstance(thought, str) else ""
    for parts in (given.reasoning_details, given.thinking_blocks):  # OpenRouter's, LiteLLM's
        texts = [
            part.get("text") or part.get("thinking") or part.get("summary")
            for part in (parts if isinstance(parts, list) else ())
            if isinstance(part, dict)
        ]
        yield "\n\n".join(text for text in texts if isinstance(text, str))
