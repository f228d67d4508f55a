"""Tools, calls and what they gave, in the shapes that chat templates are written for.

A template that knows tools gets them as transformers would give them, arguments as objects. For one that
does not, they are told in the system prompt, and calls and results stand in the turns' own words, in the
form that Hermes models were trained on and most small models have seen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from core.errors import RequestError
from core.events import Message, Tool, ToolCall

_KNOWS = re.compile(r"\btools\b")


def knows_tools(template: str) -> bool:
    """Whether a chat `template` asks for tools."""
    return bool(_KNOWS.search(template))


def declared(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """For a template. Raises `RequestError` if a tool's parameters are no JSON object."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": _object(tool.parameters, f"The parameters of the tool “{tool.name}”"),
            },
        }
        for tool in tools
    ]


def called(calls: Sequence[ToolCall]) -> list[dict[str, Any]]:
    """An assistant's calls, for a template. Raises `RequestError` if arguments are no JSON object."""
    return [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": _arguments(call)},
        }
        for call in calls
    ]


def told(tools: Sequence[Tool]) -> str:
    """The tools in words, for the system prompt of a model whose template knows none."""
    lines = "\n".join(json.dumps(each, ensure_ascii=False) for each in declared(tools))
    return (
        "You can call functions. They are described here, one JSON object a line:\n"
        f"<tools>\n{lines}\n</tools>\n"
        "To call one, answer with its name and arguments as a JSON object, like this:\n"
        '<tool_call>\n{"name": "…", "arguments": {…}}\n</tool_call>'
    )


def in_words(message: Message) -> Message:
    """`message` with its calls, or what a call gave, in its own words, from a role every template knows."""
    if message.role == "tool":
        return Message("user", f"<tool_response>\n{message.content}\n</tool_response>", message.attachments)
    if not message.tool_calls:
        return message
    calls = [
        json.dumps({"name": call.name, "arguments": _arguments(call)}, ensure_ascii=False)
        for call in message.tool_calls
    ]
    parts = [message.content, *(f"<tool_call>\n{call}\n</tool_call>" for call in calls)]
    return Message(message.role, "\n".join(part for part in parts if part), message.attachments)


def _arguments(call: ToolCall) -> Mapping[str, Any]:
    return _object(call.arguments or "{}", f"The arguments of the call of “{call.name}”")


def _object(text: str, what: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"{what} are not JSON: {error}.", "Give a JSON object.") from error
    if not isinstance(value, dict):
        raise RequestError(f"{what} are no JSON object.", "Give a JSON object.")
    return value
