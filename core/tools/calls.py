"""Calls of tools: declarations, the grammar of a required call, and the calls in an answer. Pure.

The local server and the chat use the same code.

A grammar enforces a required call: `{"name": …, "arguments": …}`, with the schemas of the allowed tools. If
a call is optional and a tool is `strict`, only the calls in the text must follow their schemas, if the model
writes calls as JSON between marks; other forms of calls are not enforced.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.answer_format import AnswerFormat, AnswerSplitter, Call, Part, call_marks
from core.events import Change, Grammar, ModelInfo, Token, Tool, ToolCall
from core.tools.schemas import moved

# Syntaxes that write calls as JSON between marks: Hermes', Qwen's, and that of tools in the system prompt.
_AS_JSON = "hermes"


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
        """The grammar of the answer; None if nothing is enforced."""
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
        # The arguments of an optional call are enforced only if the tool is strict.
        keeps = self.must or tool.name in self.strict
        parameters = (msgspec.json.decode(tool.parameters) if keeps else None) or {"type": "object"}
        return {
            "type": "object",
            "properties": {
                "name": {"const": tool.name},
                "arguments": moved(parameters, f"{root}/properties/arguments"),
            },
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }

    @property
    def _callable(self) -> tuple[Tool, ...]:
        return tuple(tool for tool in self.declared if not self.name or tool.name == self.name)


# The form that `ToolChoice.grammar` enforces.
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
        """Ends the answer; returns the call, whose arguments may be cut off, or text if it is not a call."""
        head = _HEAD.match(self._held)
        if head is None:
            return [Part("text", self._held)] if self._held else []
        # The last brace closes the call, not its arguments.
        arguments = self._held[head.end() :].rstrip().removesuffix("}").rstrip()
        return [Part("call", self._held, (Call(head["name"], arguments),))]


class CallRules(Struct, frozen=True):
    """Rules for the calls in an answer.

    Without `tools` nothing is a call. `forced`: a grammar makes the answer one call. `most`: further calls
    are dropped. `loose`: a tool is strict, but no grammar enforces its schema.
    """

    tools: tuple[Tool, ...] = ()
    forced: bool = False
    most: int | None = None
    loose: bool = False


_LOOSE = Change(
    "tools.strict",
    "true",
    "false",
    "no grammar for this model's optional calls; “tool_choice” “required” enforces the schema",
)


class ThoughtDelta(Struct, frozen=True):
    """The next part of the thought."""

    text: str


class TextDelta(Struct, frozen=True):
    """The next part of the text."""

    text: str


Piece = ThoughtDelta | TextDelta | ToolCall


class Written:
    """Parser of one answer, in the format of its first token. `calls` counts its calls."""

    def __init__(self, rules: CallRules) -> None:
        self._rules = rules
        self._splitter: AnswerSplitter | ForcedCall | None = None
        self._thought = self._paused = False  # a thought was written; other text followed it
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


# ---- names

# Characters that chat templates and OpenAI's API do not accept in the name of a function.
_OTHER = re.compile(r"[^A-Za-z0-9_-]+")
_MOST_NAME = 64


def model_names(tools: Iterable[tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """The names under which a model sees tools, which are given as server and name.

    They are unique and consist of letters, digits, “_” and “-”.

    A tool keeps its name, unless it is not such a name or two servers have it: then its server's name
    precedes it, and a number follows where that is not unique either. The names do not depend on the order of
    `tools`.
    """
    listed = sorted({*tools})
    own: dict[str, int] = {}
    for _, tool in listed:
        own[tool] = own.get(tool, 0) + 1
    names: dict[str, tuple[str, str]] = {}
    for server, tool in listed:
        if own[tool] == 1 and len(tool) <= _MOST_NAME and tool and not _OTHER.search(tool):
            names[tool] = (server, tool)
    for server, tool in listed:
        if names.get(tool) == (server, tool):
            continue
        joined = "_".join(_OTHER.sub("_", part).strip("_") or "tool" for part in (server, tool))
        name, number = joined[:_MOST_NAME], 2
        while name in names:
            end = f"_{number}"
            name, number = f"{joined[: _MOST_NAME - len(end)]}{end}", number + 1
        names[name] = (server, tool)
    return names
