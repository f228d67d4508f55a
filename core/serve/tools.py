"""Tools and schemas of a request: declarations, the grammar of a required call, the calls in an answer. Pure.

A required call is written by a grammar: `{"name": …, "arguments": …}`, by the schemas of the tools that may
be called. Where a call is optional and a tool is `strict`, the text is free and calls in it follow their
schemas, if the model writes calls as JSON between marks; other forms of calls are free.

llguidance refuses a schema with a keyword that a grammar cannot enforce. zod writes `propertyNames` for every
record, pydantic writes `uniqueItems` for every set, and both write regular expressions with look-ahead. The
grammar keeps everything else, and `draftlight.changes` names the rules that are not enforced (`relaxed`).
"""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.answer_format import SCHEMA_DATA, SCHEMA_MAPS, AnswerFormat, AnswerSplitter, Call, Part, call_marks
from core.events import Change, Grammar, ModelInfo, Token, Tool, ToolCall
from core.serve.fields import change
from core.serve.http import field_error

# ---- schemas

# llguidance 1.9 refuses a schema with one of these (tests/core/serve/test_schemas.py tries every keyword).
_DROPPED = frozenset(
    {
        "$dynamicAnchor",
        "$dynamicRef",
        "$recursiveRef",
        "contains",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "else",
        "if",
        "maxContains",
        "minContains",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
        "uniqueItems",
    }
)
_FORMATS = frozenset(
    {"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"}
)
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})
_ONES = frozenset({"items", "additionalItems", "additionalProperties"})
# Look-around, back references and word boundaries; a backslash or a class before them makes them plain. A
# class that is not closed is read once: from each of its brackets it would take time with their square.
_IRREGULAR = re.compile(r"\(\?(?:[=!]|<[=!]|P=)|\\[1-9bBk]")
_PLAIN = re.compile(r"\\\\|\[\^?\]?(?:\\.|[^\]\\])*\]?")
_MOST_REFERENCES = 16
_LONG_PATTERN = 10_000
_MOST_NAMED = 50
_WHY = "a grammar cannot enforce this keyword"


def relaxed(grammar: Grammar, name: str) -> tuple[Grammar, list[Change]]:
    """`grammar` without the keywords that it cannot enforce, and a change for each of them.

    `name` is the request's field that has the schema.
    """
    if grammar.kind == "json_object":
        return grammar, []
    schema = msgspec.json.decode(grammar.text)
    dropped: list[tuple[str, Any]] = []
    try:
        kept = _kept(schema, schema, "", dropped)
    except RecursionError:
        return grammar, []  # the compiler reports the error
    if kept != schema:
        grammar = replace(grammar, text=msgspec.json.encode(kept).decode())
    # A tool's parameters are in the schema of its call, which no client has seen.
    own = ".properties.arguments" if name.startswith("tools[") else ""
    return grammar, [
        change(f"{name}{place.removeprefix(own)}", value, "not enforced", _WHY)
        for place, value in dropped[:_MOST_NAMED]
    ]


def _kept(schema: Any, root: Any, place: str, dropped: list[tuple[str, Any]]) -> Any:
    """`schema` without keywords that a grammar cannot enforce; appends these to `dropped`."""
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    for name, value in schema.items():
        where = f"{place}.{name}"
        if (
            name in _DROPPED
            or (name == "format" and isinstance(value, str) and value not in _FORMATS)
            or (name == "pattern" and isinstance(value, str) and _is_irregular(value))
        ):
            dropped.append((where, value))
        elif name in SCHEMA_MAPS and isinstance(value, dict):
            kept[name] = {key: _kept(one, root, f"{where}.{key}", dropped) for key, one in value.items()}
        elif name in _LISTS and isinstance(value, list):
            inner = [_kept(one, root, f"{where}[{at}]", dropped) for at, one in enumerate(value)]
            if name == "oneOf" and "anyOf" not in schema:
                # The compiler does not follow references, and refuses branches that are not clearly disjoint.
                if not _disjoint(value, root):
                    dropped.append((where, value))
                name = "anyOf"
            kept[name] = inner
        elif name in _ONES:
            kept[name] = _kept(value, root, where, dropped)
        else:
            kept[name] = value
    return kept


def _is_irregular(pattern: str) -> bool:
    return len(pattern) > _LONG_PATTERN or bool(_IRREGULAR.search(_PLAIN.sub("", pattern)))


def _disjoint(branches: Sequence[Any], root: Any) -> bool:
    """Whether no value can match two of `branches`: their types or tags differ."""
    resolved = [_resolved(one, root) for one in branches]
    if not all(isinstance(one, dict) for one in resolved):
        return False
    types = [one.get("type") for one in resolved]
    if all(isinstance(one, str) for one in types) and len({*types}) == len(types):
        return not {"integer", "number"} <= {*types}
    tags = [_tags(one) for one in resolved]
    return any(len({each.get(name) for each in tags}) == len(tags) for name in tags[0]) if tags else True


def _tags(schema: dict[str, Any]) -> dict[str, bytes]:
    """The required properties that have one value only, with it."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict) or not isinstance(required, list):
        return {}
    return {
        name: msgspec.json.encode(one["const"])
        for name, one in properties.items()
        if isinstance(one, dict) and "const" in one and name in required
    }


def _resolved(schema: Any, root: Any) -> Any:
    for _ in range(_MOST_REFERENCES):
        reference = schema.get("$ref") if isinstance(schema, dict) else None
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema
        schema = root
        for part in reference[2:].split("/"):
            if isinstance(schema, list) and part.isdecimal():  # `anyOf` of several tools
                schema = {str(at): one for at, one in enumerate(schema)}.get(part)
            else:
                schema = schema.get(part) if isinstance(schema, dict) else None
    return schema


# ---- tools

# The syntax of calls that are JSON between marks: Hermes', Qwen's, and that of tools in the system prompt.
_AS_JSON = "hermes"
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


class ToolChoice(Struct, frozen=True):
    """`must`: a call is required, of the function `name`, or of any. `several`: more than one is allowed.

    `declared` are the tools that the model may call; `strict` those whose schemas are enforced.
    """

    declared: tuple[Tool, ...] = ()
    must: bool = False
    name: str = ""
    several: bool = True
    strict: frozenset[str] = frozenset()

    def grammar(self, model: ModelInfo) -> Grammar | None:
        """The grammar of the answer; None if it is free."""
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
        """The request's field of the grammar; `schema` is its name within a tool."""
        if len(self._callable) == 1:
            return f"tools[{self.declared.index(self._callable[0])}].{schema}"
        return "tools"

    def stops(self, model: ModelInfo | None) -> tuple[str, ...]:
        """Stop sequences: the end of a call, if only one is allowed."""
        if self.several or self.must or not self.declared or model is None:
            return ()
        _, end = call_marks(model.format)
        return (end,) if end else ()

    def rules(self, model: ModelInfo | None) -> CallRules:
        """How the answer's calls are parsed."""
        if self.must:
            return CallRules(forced=True)
        if not self.declared or model is None:
            return CallRules()
        loose = bool(self.strict) and not self._keeps_calls(model)
        return CallRules(self.declared, most=None if self.several else 1, loose=loose)

    def _keeps_calls(self, model: ModelInfo) -> bool:
        """Whether the schemas of optional calls are enforced."""
        return bool(self.strict) and not self.must and model.format.calls[:1] == (_AS_JSON,)

    def _call_schema(self, tool: Tool, root: str) -> dict[str, Any]:
        # The arguments of an optional call are free, unless the tool is strict.
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
        return tuple(tool for tool in self.declared if not self.name or tool.name == self.name)


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


def _moved(schema: Any, root: str) -> Any:
    """`schema` with its references rewritten for the path `root`."""
    if isinstance(schema, list):
        return [_moved(one, root) for one in schema]
    if not isinstance(schema, dict):
        return schema
    moved: dict[str, Any] = {}
    for name, value in schema.items():
        if name in SCHEMA_MAPS and isinstance(value, dict):
            moved[name] = {key: _moved(one, root) for key, one in value.items()}
        else:
            moved[name] = value if name in SCHEMA_DATA else _moved(value, root)
    reference = moved.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        moved["$ref"] = root + reference.removeprefix("#")
    return moved


# The form of `ToolChoice.grammar`.
_HEAD = re.compile(r'\s*\{\s*"name"\s*:\s*"(?P<name>[^"\\]*)"\s*,\s*"arguments"\s*:\s*')


class ForcedCall:
    """Splitter of an answer that is one forced call; has the methods of an `AnswerSplitter`."""

    in_thought = False

    def __init__(self) -> None:
        self._held = ""

    def add(self, text: str) -> list[Part]:
        """Adds text. The call is certain at the end only."""
        self._held += text
        return []

    def end(self) -> list[Part]:
        """Ends the answer; returns the call, whose arguments may be cut off, or text that is none."""
        head = _HEAD.match(self._held)
        if head is None:
            return [Part("text", self._held)] if self._held else []
        # The last brace closes the call, not its arguments.
        arguments = self._held[head.end() :].rstrip().removesuffix("}").rstrip()
        return [Part("call", self._held, (Call(head["name"], arguments),))]


class CallRules(Struct, frozen=True):
    """Rules for the calls in an answer.

    Without `tools` nothing is a call. `forced`: a grammar makes the answer one call. `most`: further calls
    are dropped. `loose`: a tool is strict, and nothing makes the model keep its schema.
    """

    tools: tuple[Tool, ...] = ()
    forced: bool = False
    most: int | None = None
    loose: bool = False


_LOOSE = Change(
    "tools.strict",
    "true",
    "false",
    "this model's calls that need not be made are free; “tool_choice” “required” keeps their schema",
)


class ThoughtDelta(Struct, frozen=True):
    """The next part of the thought."""

    text: str


class TextDelta(Struct, frozen=True):
    """The next part of the text."""

    text: str


Piece = ThoughtDelta | TextDelta | ToolCall


class Written:
    """Parser of one answer, in the format that its first token has. `calls` counts its calls."""

    def __init__(self, rules: CallRules) -> None:
        self._rules = rules
        self._splitter: AnswerSplitter | ForcedCall | None = None
        self._thought = self._paused = False  # there was a thought; something else followed it
        self.thought_tokens = 0
        self.calls = 0

    @property
    def changes(self) -> tuple[Change, ...]:
        """Strict tools whose schemas were not enforced."""
        return (_LOOSE,) if self._rules.loose else ()

    def add(self, tokens: Sequence[Token]) -> Iterator[Piece]:
        """Adds tokens. Consecutive text is one piece."""
        found: list[Part] = []
        for token in tokens:
            if self._splitter is None:
                self._splitter = self._begin(token.format or AnswerFormat())
            more = self._splitter.add(token.text)
            self.thought_tokens += self._splitter.in_thought or any(part.kind == "thought" for part in more)
            found += more
        return self._pieces(found)

    def end(self) -> Iterator[Piece]:
        """Ends the answer; returns the pieces held back."""
        return self._pieces(self._splitter.end() if self._splitter else [])

    def _begin(self, format: AnswerFormat) -> AnswerSplitter | ForcedCall:
        if self._rules.forced:
            return ForcedCall()
        tools = self._rules.tools
        return AnswerSplitter(format if tools else format.without_calls(), tools)

    def _pieces(self, parts: Iterable[Part]) -> Iterator[Piece]:
        for kind, same in groupby(self._told(parts), lambda part: part.kind):
            run = list(same)
            text = "".join(part.text for part in run)
            if kind == "thought":
                yield ThoughtDelta(text)
            elif kind == "text":
                yield TextDelta(text)
            for call in (call for part in run for call in part.calls):
                if self._rules.most is None or self.calls < self._rules.most:
                    self.calls += 1
                    yield ToolCall(f"call_{secrets.token_hex(12)}", call.name, call.arguments)

    def _told(self, parts: Iterable[Part]) -> Iterator[Part]:
        """`parts` without marks; thoughts of several channels are paragraphs of one."""
        for part in parts:
            if part.kind == "thought":
                again = self._thought and self._paused
                self._thought, self._paused = True, False
                yield replace(part, text=f"\n\n{part.text}") if again else part
                continue
            self._paused = True
            if part.kind != "mark":
                yield part
