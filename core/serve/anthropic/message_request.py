"""What a message may be asked with, and the command that comes of it.

The rules for unsupported fields are those of chat completions. OpenAI's sampling fields are accepted, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct, field

from core.events import Change, Generate, Grammar, ModelInfo, Tool
from core.events.text import well_formed_record
from core.serve.anthropic.blocks import BLOCKS, GivenMessage, TextBlock, messages_of
from core.serve.converting import convert_fields
from core.serve.errors import FieldNames
from core.serve.fields import change, effort_changes, refused
from core.serve.left_out import Kind, LeftOut, question_at
from core.serve.sampling import Sampling, stops_of
from core.serve.tools.choice import ToolChoice, choose
from core.settings import Settings

# The user, location, billing, caching and how calls are streamed: these do not change the answer.
IGNORED = frozenset(
    {
        "cache_control",
        "caller",
        "eager_input_streaming",
        "inference_geo",
        "metadata",
        "service_tier",
        "speed",
        "user_profile_id",
        "workspace_id",
    }
)
UNSUPPORTED = {
    "container": "no tool of the server runs",
    "mcp_servers": "the server connects to no other server; declare the tools in “tools”",
}
_TYPES = tuple(str(kind.__struct_config__.tag) for kind in BLOCKS)
_CLEARS_THOUGHTS = "clear_thinking_"


Display = Literal["summarized", "omitted"]


class GivenTool(Struct):
    """A tool that the client runs."""

    name: str
    input_schema: dict[str, Any]
    type: Literal["custom"] | None = None
    description: str | None = None
    strict: bool | None = None


class Auto(Struct, tag_field="type", tag="auto"):
    """Call as it sees fit."""

    disable_parallel_tool_use: bool = False


class Any_(Struct, tag_field="type", tag="any"):
    """Call something."""

    disable_parallel_tool_use: bool = False


class Named(Struct, tag_field="type", tag="tool"):
    """Call this one."""

    name: str
    disable_parallel_tool_use: bool = False


class Nothing(Struct, tag_field="type", tag="none"):
    """Call nothing."""


class Disabled(Struct, tag_field="type", tag="disabled"):
    """Do not think first."""


class Adaptive(Struct, tag_field="type", tag="adaptive"):
    """Think first where the model sees fit. Thoughts are told whole, or left out."""

    display: Display | None = None


class Enabled(Struct, tag_field="type", tag="enabled"):
    """Think first, within so many tokens."""

    budget_tokens: int
    display: Display | None = None


class Format(Struct):
    """What an answer must be."""

    type: Literal["json_schema"]
    schema: dict[str, Any]


class OutputConfig(Struct):
    """The form of the answer, and how thorough it is."""

    format: Format | None = None
    effort: str | None = None


class Edit(Struct):
    """A way to shorten the conversation. The chat template decides which thoughts the model reads."""

    type: str
    keep: Any = None


class ContextManagement(Struct):
    """Parts of the conversation that the model does not read."""

    edits: list[Edit] = field(default_factory=list)


class Asked(Sampling, kw_only=True):
    """What a message and a count of its tokens share."""

    model: str = ""
    messages: list[GivenMessage]
    system: str | list[TextBlock] | None = None
    tools: list[GivenTool] = field(default_factory=list)
    tool_choice: Auto | Any_ | Named | Nothing = field(default_factory=Auto)
    thinking: Disabled | Adaptive | Enabled | None = None
    output_config: OutputConfig = field(default_factory=OutputConfig)
    output_format: Format | None = None
    context_management: ContextManagement | None = None

    @property
    def names(self) -> FieldNames:
        """What the worker may refuse is called so here."""
        if self._grammar() is None:
            return FieldNames(grammar=self.tool_use.field_of("input_schema"))
        return FieldNames(grammar="output_config.format" if self.output_config.format else "output_format")

    def generate(self, request: str, base: Settings, model: ModelInfo) -> Generate:
        """The command. Raises `ApiError` 400."""
        self.changes.extend(self._changes(model))
        use, grammar = self.tool_use, self._grammar()
        if use.must and grammar is not None:
            raise refused("output_config.format", "an answer that must be a call has the call's form")
        return well_formed_record(
            Generate(
                request,
                messages_of(self.system, self.messages),
                self.settings_of(base, model.context_tokens),
                tools=use.told,
                stops=(*self.given_stops(), *use.stops(model)),
                grammar=self.enforceable(grammar or use.grammar(model), self.names.grammar),
                logit_bias=self.bias_of(),
            )
        )

    @property
    def shows_thoughts(self) -> bool:
        """Whether what was thought stands in its blocks; else they are empty."""
        return not isinstance(self.thinking, Adaptive | Enabled) or self.thinking.display != "omitted"

    def given_stops(self) -> tuple[str, ...]:
        """Raises `ApiError` 400."""
        return ()

    @property
    def tool_use(self) -> ToolChoice:
        """What the tools come to. Raises `ApiError` 400."""
        told = [
            Tool(tool.name, tool.description or "", msgspec.json.encode(tool.input_schema).decode())
            for tool in self.tools
        ]
        choice = self.tool_choice
        return choose(
            told,
            {Any_: "required", Nothing: "none"}.get(type(choice), "auto"),
            name=choice.name if isinstance(choice, Named) else "",
            several=isinstance(choice, Nothing) or not choice.disable_parallel_tool_use,
            strict=[tool.name for tool in self.tools if tool.strict],
        )

    def _values(self, context_tokens: int) -> Iterable[tuple[str, str, Any]]:
        if self.thinking is not None:
            yield "thinking", "chat.thinking", not isinstance(self.thinking, Disabled)
        yield from super()._values(context_tokens)

    def _changes(self, model: ModelInfo) -> Iterable[Change]:
        if isinstance(self.thinking, Enabled):
            yield from effort_changes("thinking", "enabled", model)
        if self.output_config.effort not in (None, "high"):
            reason = "the loaded model has no levels of effort"
            yield change("output_config.effort", self.output_config.effort, "high", reason)
        for number, edit in enumerate(self.context_management.edits if self.context_management else ()):
            if not edit.type.startswith(_CLEARS_THOUGHTS):
                reason = "the model reads the whole conversation"
                yield change(f"context_management.edits[{number}]", edit.type, "none", reason)

    def _grammar(self) -> Grammar | None:
        asked = self.output_config.format or self.output_format
        return Grammar("json_schema", msgspec.json.encode(asked.schema).decode()) if asked else None


_T = TypeVar("_T", bound=Asked)


class MessageRequest(Asked, kw_only=True):
    """All of it."""

    max_tokens: int
    stop_sequences: list[str] = field(default_factory=list)
    stream: bool = False

    @property
    def most_tokens(self) -> tuple[str, int]:
        """It has to be said."""
        return "max_tokens", self.max_tokens

    def given_stops(self) -> tuple[str, ...]:
        """Raises `ApiError` 400."""
        return stops_of("stop_sequences", tuple(self.stop_sequences))


def message_request(fields: dict[str, Any]) -> MessageRequest:
    """Of a decoded body. Raises `ApiError` 400."""
    return _converted(fields, MessageRequest)


def count_request(fields: dict[str, Any]) -> Asked:
    """Of a decoded body. Raises `ApiError` 400."""
    return _converted(fields, Asked)


def _converted(fields: dict[str, Any], kind: type[_T]) -> _T:
    left = LeftOut()
    fields = left.tools(fields, ("custom",))
    if "system" in fields:
        fields |= {"system": left.system("system", fields["system"])}
    if isinstance(messages := fields.get("messages"), list):
        question = question_at(messages, _kind)
        fields |= {
            "messages": [
                _with_text(left, f"messages[{number}].content", message, number == question)
                for number, message in enumerate(messages)
            ]
        }
    return convert_fields(fields, kind, IGNORED, UNSUPPORTED, left.changes)


def _kind(message: dict[str, Any]) -> Kind:
    content, role = message.get("content"), message.get("role")
    if role == "user" and isinstance(content, list):
        return "result" if any(map(_is_result, content)) else "user"
    return role if role in ("system", "user") else "other"


def _is_result(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_result"


def _with_text(left: LeftOut, place: str, message: Any, is_question: bool) -> Any:
    """The message with texts in place of the blocks that the model cannot read, in results of calls, too."""
    if not isinstance(message, dict) or not isinstance(message.get("content"), list):
        return message
    blocks = []
    for number, block in enumerate(message["content"]):
        if _is_result(block):
            where = f"{place}[{number}].content"
            block = {
                **block,
                "content": left.content(where, block.get("content"), ("text",), text_type="text"),
            }
        blocks.append(block)
    content = left.content(place, blocks, _TYPES, text_type="text", is_question=is_question)
    if message.get("role") == "system":
        content = left.system(place, content)
    return {**message, "content": content}
