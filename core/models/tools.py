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
from core.events import Tool, ToolCall

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


def called(calls: Sequence[ToolCall], *, as_text: bool = False) -> list[dict[str, Any]]:
    """An assistant's calls, for a template; `as_text`: arguments as JSON text.

    Raises `RequestError` if arguments are not a JSON object.
    """
    return [
        {
            "id": call.id,
            "type": "function",
            "function": {
                "name": call.name,
                "arguments": json.dumps(arguments, ensure_ascii=False) if as_text else arguments,
            },
        }
        for call in calls
        for arguments in [_arguments(call)]
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


# Before and after a result in words.
RESULT_MARKS = ("<tool_response>\n", "\n</tool_response>")


def calls_in_words(calls: Sequence[ToolCall]) -> str:
    """An assistant's calls as text, for a model whose template does not support tools."""
    texts = (
        json.dumps({"name": call.name, "arguments": _arguments(call)}, ensure_ascii=False) for call in calls
    )
    return "\n".join(f"<tool_call>\n{text}\n</tool_call>" for text in texts)


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
