"""What a request's tools come to: what the model is told, what its answer must be, how it is taken apart.

A call that must be made is written by a grammar: `{"name": …, "arguments": …}`, by the schemas of the
tools that may be called. Where one may be made, or not, and a tool is `strict`, the text is free and calls in
it are written so, if the model writes them as JSON between marks; the other forms of calls are free.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from core.answer_format import call_marks
from core.events import Grammar, ModelInfo, Tool
from core.serve.errors import field_error
from core.serve.written import CallRules

# The syntax of calls that are JSON between marks: Hermes', Qwen's, and that of tools told in words.
_AS_JSON = "hermes"
_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)


class ToolChoice(Struct, frozen=True):
    """`must`: a call has to be made, of the function `name`, or of any. `several`: more than one may be.

    `told` are all that the model is told of; `strict` those of them whose schemas are to be kept.
    """

    told: tuple[Tool, ...] = ()
    must: bool = False
    name: str = ""
    several: bool = True
    strict: frozenset[str] = frozenset()

    def grammar(self, model: ModelInfo) -> Grammar | None:
        """What the answer must be; None where it is free."""
        if not self.must and not self._keeps_calls(model):
            return None
        wanted = self._callable
        if len(wanted) == 1:
            schema = self._call_schema(wanted[0], "#")
        else:
            shapes = [self._call_schema(tool, f"#/anyOf/{place}") for place, tool in enumerate(wanted)]
            schema = {"anyOf": shapes}
        text = msgspec.json.encode(schema).decode()
        if self.must:
            return Grammar("json_schema", text)
        begin, end = call_marks(model.format)
        return Grammar("tool_calls", text, begin=begin, end=end)

    def field_of(self, schema: str) -> str:
        """The field that the grammar was made of; `schema` is its name within a tool."""
        if len(self._callable) == 1:
            return f"tools[{self.told.index(self._callable[0])}].{schema}"
        return "tools"

    def stops(self, model: ModelInfo | None) -> tuple[str, ...]:
        """Where one call is all there may be, its end is the answer's."""
        if self.several or self.must or not self.told or model is None:
            return ()
        _, end = call_marks(model.format)
        return (end,) if end else ()

    def rules(self, model: ModelInfo | None) -> CallRules:
        """How the answer's calls are read."""
        if self.must:
            return CallRules(forced=True)
        if not self.told or model is None:
            return CallRules()
        loose = bool(self.strict) and not self._keeps_calls(model)
        return CallRules(self.told, most=None if self.several else 1, loose=loose)

    def _keeps_calls(self, model: ModelInfo) -> bool:
        """Whether calls that need not be made are written by their schemas."""
        return bool(self.strict) and not self.must and model.format.calls[:1] == (_AS_JSON,)

    def _call_schema(self, tool: Tool, root: str) -> dict[str, Any]:
        # What a call that need not be made has is the model's affair, unless its schema is to be kept.
        keeps = self.must or tool.name in self.strict
        parameters = (msgspec.json.decode(tool.parameters) if keeps else None) or {"type": "object"}
        return {
            "type": "object",
            "properties": {
                "name": {"const": tool.name},
                "arguments": _moved(parameters, f"{root}/properties/arguments"),
            },
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }

    @property
    def _callable(self) -> tuple[Tool, ...]:
        return tuple(tool for tool in self.told if not self.name or tool.name == self.name)


def choose(
    tools: Sequence[Tool],
    choice: Literal["auto", "none", "required"] | str,
    *,
    name: str = "",
    several: bool = True,
    strict: Iterable[str] = (),
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
    return ToolChoice(tuple(tools), must, name, several, frozenset(strict))


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
