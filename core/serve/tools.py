"""Tools of a request: their shapes in the APIs, and the choice among them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from core.events import Tool
from core.serve.http import field_error
from core.tools.calls import ToolChoice

# OpenAI's names have at most 64 characters and Anthropic's 128; tools of MCP servers reach that.
_NAME = re.compile(r"[\w.-]{1,128}", re.ASCII)


class GivenTool(Struct):
    """A function that the model may call, or a custom tool, whose input is any text.

    To the model a custom tool is a function of that text, with its grammar, which is not enforced, in the
    description.
    """

    name: str
    type: Literal["function", "custom"] = "function"
    description: str = ""
    parameters: dict[str, Any] = {}
    strict: bool = False
    format: Any = None

    @property
    def declared(self) -> Tool:
        """The declaration for the model."""
        if self.type == "function":
            return Tool(self.name, self.description, msgspec.json.encode(self.parameters).decode())
        grammar = self.format.get("definition") if isinstance(self.format, dict) else None
        texts = [self.description, f"Grammar of the input:\n{grammar}" if grammar else ""]
        parameters = {
            "type": "object",
            "properties": {"input": {"type": "string"}},
            "required": ["input"],
            "additionalProperties": False,
        }
        return Tool(self.name, "\n\n".join(filter(None, texts)), msgspec.json.encode(parameters).decode())


class Choice(Struct):
    """Whether a call is allowed or required, and of which functions; of any without `names`."""

    type: Literal["auto", "none", "required"] = "auto"
    names: list[str] = []
    disable_parallel_tool_use: bool = False


def choose(tools: Sequence[GivenTool], choice: Choice, *, several: bool = True) -> ToolChoice:
    """`choice` of `tools`. `several`: more than one call is allowed. Raises `ApiError` 400."""
    names = [tool.name for tool in tools]
    if odd := next((one for one in names if not _NAME.fullmatch(one)), None):
        raise field_error(
            "tools",
            f"“{odd[:80]}” is not a valid function name. Use at most 128 letters, digits, “_”, “-” and “.”.",
        )
    if doubled := next((one for one, count in Counter(names).items() if count > 1), None):
        raise field_error("tools", f"“tools” has “{doubled}” twice.")
    known, only = set(names), set(choice.names)
    if unknown := next((one for one in choice.names if one not in known), None):
        raise field_error("tool_choice", f"“tool_choice” names “{unknown}”, which is not in “tools”.")
    if "" in choice.names:
        raise field_error("tool_choice", "“tool_choice” has no name of a function.")
    must = choice.type == "required"
    if must and not tools:
        raise field_error("tool_choice", "“tool_choice” requires a call, but “tools” is empty.")
    if choice.type == "none":
        return ToolChoice()
    # The declarations stay whole where one function must be called: the prompt stays the same.
    whole = not only or (must and len(choice.names) == 1)
    declared = tuple(tool.declared for tool in tools if whole or tool.name in only)
    name = choice.names[0] if must and len(choice.names) == 1 else ""
    strict = frozenset(tool.name for tool in tools if tool.strict)
    several = several and not choice.disable_parallel_tool_use
    return ToolChoice(declared, must, name, several, strict)
