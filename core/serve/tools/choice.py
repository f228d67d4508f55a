"""What a request's tools come to: what the model is told, what its answer must be, how it is taken apart.

A call that must be made is written by a grammar: `{"name": …, "arguments": …}`, by the schemas of the
tools that may be called. One that may be made, or not, is written freely; then `strict` cannot be kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from core.events import Grammar, ModelInfo, Tool
from core.serve.errors import field_error
from core.serve.tools.parsers import parser
from core.serve.tools.pieces import ForcedCall, MarkedCalls, Pieces, TextOnly

_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)


class ToolChoice(Struct, frozen=True):
    """`must`: a call has to be made, of the function `name`, or of any. `several`: more than one may be.

    `told` are all that the model is told of; `strict`: one of them asked that its schema is kept.
    """

    told: tuple[Tool, ...] = ()
    must: bool = False
    name: str = ""
    several: bool = True
    strict: bool = False

    @property
    def grammar(self) -> Grammar | None:
        """What the answer must be; None where it is free."""
        if not self.must:
            return None
        wanted = self._callable
        shapes = [_call_schema(tool, f"#/anyOf/{place}") for place, tool in enumerate(wanted)]
        if len(wanted) == 1:
            shapes = [_call_schema(wanted[0], "#")]
        schema = shapes[0] if len(shapes) == 1 else {"anyOf": shapes}
        return Grammar("json_schema", msgspec.json.encode(schema).decode())

    def field_of(self, schema: str) -> str:
        """The field that the grammar was made of; `schema` is its name within a tool."""
        if len(self._callable) == 1:
            return f"tools[{self.told.index(self._callable[0])}].{schema}"
        return "tools"

    @property
    def is_loose(self) -> bool:
        """A schema was to be kept, and nothing makes the model keep it."""
        return self.strict and not self.must

    def stops(self, model: ModelInfo | None) -> tuple[str, ...]:
        """Where one call is all there may be, its end is the answer's."""
        if self.several or self.must or not self.told or model is None:
            return ()
        end = parser(model.tool_parser).end
        return (end,) if end else ()

    def pieces(self, model: ModelInfo | None) -> Pieces:
        """What takes the answer apart."""
        if self.must:
            return ForcedCall()
        if not self.told or model is None:
            return TextOnly()
        return MarkedCalls(parser(model.tool_parser), self.told, None if self.several else 1)

    @property
    def _callable(self) -> tuple[Tool, ...]:
        return tuple(tool for tool in self.told if not self.name or tool.name == self.name)


def choose(
    tools: Sequence[Tool],
    choice: Literal["auto", "none", "required"] | str,
    *,
    name: str = "",
    several: bool = True,
    strict: bool = False,
    field: str = "tool_choice",
) -> ToolChoice:
    """`choice` of `tools`; `name` is the function that must be called.

    Raises `ApiError` 400 naming `field`.
    """
    names = [tool.name for tool in tools]
    if odd := next((one for one in names if not _NAME.fullmatch(one)), None):
        raise field_error(
            "tools", f"“{odd[:80]}” is no name of a function: letters, digits, “_”, “-” and “.”, 64 at most."
        )
    if doubled := next((one for one in names if names.count(one) > 1), None):
        raise field_error("tools", f"“tools” has “{doubled}” twice.")
    if name and name not in names:
        raise field_error(field, f"“{field}” names “{name}”, which is not in “tools”.")
    must = choice == "required" or bool(name)
    if must and not tools:
        raise field_error(field, f"“{field}” wants a call, and “tools” is empty.")
    if choice == "none":
        return ToolChoice()
    return ToolChoice(tuple(tools), must, name, several, strict)


def _call_schema(tool: Tool, root: str) -> dict[str, Any]:
    parameters = msgspec.json.decode(tool.parameters) or {"type": "object"}
    return {
        "type": "object",
        "properties": {
            "name": {"const": tool.name},
            "arguments": _moved(parameters, f"{root}/properties/arguments"),
        },
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _moved(schema: Any, root: str) -> Any:
    """`schema` with its references as they are when it stands at `root`."""
    if isinstance(schema, list):
        return [_moved(one, root) for one in schema]
    if not isinstance(schema, dict):
        return schema
    moved = {name: value if name in ("const", "enum", "default", "examples") else _moved(value, root)
             for name, value in schema.items()}  # fmt: skip
    reference = moved.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        moved["$ref"] = root + reference.removeprefix("#")
    return moved
