"""What a message may be asked with, and the command that comes of it.

As with OpenAI's: every field is done, taken because it cannot change the answer, or refused by name.
Fields that say how an answer is drawn may be OpenAI's, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from core.events import Generate, Grammar, ModelInfo, Tool
from core.events.text import well_formed_record
from core.serve.anthropic.blocks import GivenMessage, TextBlock, messages_of
from core.serve.errors import FieldNames
from core.serve.fields import refused
from core.serve.http.bodies import convert_fields
from core.serve.sampling import Sampling, stops_of
from core.serve.tools.choice import ToolChoice, choose
from core.settings import Settings

# Who asks, where, how it is charged, what is kept elsewhere, and how fast: nothing of it changes the answer.
IGNORED = frozenset(
    {
        "cache_control",
        "inference_geo",
        "metadata",
        "service_tier",
        "speed",
        "user_profile_id",
        "workspace_id",
    }
)


Display = Literal["summarized", "omitted"]


class GivenTool(Struct, forbid_unknown_fields=True):
    """A tool that the client runs. How its call is streamed changes nothing of it."""

    name: str
    input_schema: dict[str, Any]
    type: Literal["custom"] | None = None
    description: str | None = None
    strict: bool | None = None
    cache_control: Any = None
    eager_input_streaming: Any = None


class Auto(Struct, tag_field="type", tag="auto", forbid_unknown_fields=True):
    """Call as it sees fit."""

    disable_parallel_tool_use: bool = False


class Any_(Struct, tag_field="type", tag="any", forbid_unknown_fields=True):
    """Call something."""

    disable_parallel_tool_use: bool = False


class Named(Struct, tag_field="type", tag="tool", forbid_unknown_fields=True):
    """Call this one."""

    name: str
    disable_parallel_tool_use: bool = False


class Nothing(Struct, tag_field="type", tag="none", forbid_unknown_fields=True):
    """Call nothing."""


class Disabled(Struct, tag_field="type", tag="disabled", forbid_unknown_fields=True):
    """Do not think first."""


class Adaptive(Struct, tag_field="type", tag="adaptive", forbid_unknown_fields=True):
    """Think first where the model sees fit. Thoughts are told whole, or left out."""

    display: Display | None = None


class Enabled(Struct, tag_field="type", tag="enabled", forbid_unknown_fields=True):
    """Think first, within so many tokens."""

    budget_tokens: int
    display: Display | None = None


class Format(Struct, forbid_unknown_fields=True):
    """What an answer must be."""

    type: Literal["json_schema"]
    schema: dict[str, Any]


class OutputConfig(Struct, forbid_unknown_fields=True):
    """`high` is what is done without it."""

    format: Format | None = None
    effort: str | None = None


class ClearedThoughts(Struct, tag_field="type", tag="clear_thinking_20251015", forbid_unknown_fields=True):
    """Thoughts of earlier answers are left aside anyway."""

    keep: Any = None


class ContextManagement(Struct, forbid_unknown_fields=True):
    """What of the conversation is not told to the model."""

    edits: list[ClearedThoughts] = field(default_factory=list)


class Asked(Sampling, kw_only=True, forbid_unknown_fields=True):
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
        if isinstance(self.thinking, Enabled) and not (model.thinks or model.format.thinks):
            raise refused("thinking", "the loaded model has no switch for it; it takes “adaptive”, too")
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
                grammar=grammar or use.grammar(model),
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

    def _grammar(self) -> Grammar | None:
        if self.output_config.effort not in (None, "high"):
            raise refused("output_config.effort", "it takes “high”, which is what is done without it")
        asked = self.output_config.format or self.output_format
        return Grammar("json_schema", msgspec.json.encode(asked.schema).decode()) if asked else None


class MessageRequest(Asked, kw_only=True, forbid_unknown_fields=True):
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
    return convert_fields(fields, MessageRequest, IGNORED)


def count_request(fields: dict[str, Any]) -> Asked:
    """Of a decoded body. Raises `ApiError` 400."""
    return convert_fields(fields, Asked, IGNORED)
