"""What a response may be asked with, and the command that comes of it.

As with chat completions: every field is done, taken because it cannot change the answer, or refused by
name. Nothing is stored here: `store` says what is kept elsewhere, but what went before has to be sent again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from core.events import Generate, Grammar, ModelInfo, Tool
from core.events.text import well_formed_record
from core.serve.errors import FieldNames, field_error
from core.serve.fields import refused
from core.serve.http.bodies import convert_fields
from core.serve.responses.items import Item, messages_of, with_types
from core.serve.sampling import Sampling
from core.serve.tools.choice import ToolChoice, choose
from core.settings import Settings

# Who asks, what is kept elsewhere and how it is charged; and what would become of a prompt that is too
# long, which is refused here, and of calls of tools that a server runs, of which there are none.
IGNORED = frozenset(
    {
        "max_tool_calls",
        "metadata",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "store",
        "truncation",
        "user",
    }
)
_LOGPROBS = "message.output_text.logprobs"
# Of what there is nothing of here.
_NOTHING = frozenset({"reasoning.encrypted_content"})
_MOST_TOP = 20


class FunctionTool(Struct, forbid_unknown_fields=True):
    """A function that the model may call."""

    type: Literal["function"]
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class NamedChoice(Struct, forbid_unknown_fields=True):
    """The function that must be called."""

    type: Literal["function"]
    name: str


class Text(Struct, tag_field="type", tag="text", forbid_unknown_fields=True):
    """The answer is text."""


class JsonObject(Struct, tag_field="type", tag="json_object", forbid_unknown_fields=True):
    """The answer is a JSON object."""


class JsonSchema(Struct, tag_field="type", tag="json_schema", forbid_unknown_fields=True):
    """The answer is JSON by a schema, which is always kept."""

    schema: dict[str, Any]
    name: str = ""
    description: str | None = None
    strict: bool | None = None


class TextConfig(Struct, forbid_unknown_fields=True):
    """`medium` is what is done without a `verbosity`."""

    format: Text | JsonObject | JsonSchema | None = None
    verbosity: str | None = None


class Reasoning(Struct, forbid_unknown_fields=True):
    """A summary would stand beside the answer."""

    effort: str | None = None
    summary: Any = None
    generate_summary: Any = None


class StreamOptions(Struct, forbid_unknown_fields=True):
    """About who listens on a line that nobody listens on."""

    include_obfuscation: bool = False


class ResponseRequest(Sampling, kw_only=True, forbid_unknown_fields=True):
    """All of it."""

    model: str = ""
    input: str | list[Item]
    instructions: str | None = None
    tools: list[FunctionTool] = field(default_factory=list)
    tool_choice: Literal["auto", "none", "required"] | NamedChoice = "auto"
    parallel_tool_calls: bool = True
    text: TextConfig = field(default_factory=TextConfig)
    reasoning: Reasoning = field(default_factory=Reasoning)
    include: list[str] = field(default_factory=list)
    max_output_tokens: int | None = None
    top_logprobs: int | None = None
    background: bool = False
    stream: bool = False
    stream_options: StreamOptions | None = None

    @property
    def most_tokens(self) -> tuple[str, int] | None:
        """The field that says how long the answer may be, and what it says."""
        return None if self.max_output_tokens is None else ("max_output_tokens", self.max_output_tokens)

    @property
    def wants_logprobs(self) -> bool:
        """Whether they stand beside the text."""
        return _LOGPROBS in self.include

    @property
    def names(self) -> FieldNames:
        """What the worker may refuse is called so here."""
        if self._grammar() is not None:
            return FieldNames("input", "text.format")
        return FieldNames("input", self.tool_use.field_of("parameters"))

    def generate(self, request: str, base: Settings, model: ModelInfo) -> Generate:
        """The command. Raises `ApiError` 400."""
        self._check()
        use, grammar = self.tool_use, self._grammar()
        if use.must and grammar is not None:
            raise refused("text.format", "an answer that must be a call has the call's form")
        return well_formed_record(
            Generate(
                request,
                messages_of(self.instructions, self.input),
                self.settings_of(base, model.context_tokens),
                tools=use.told,
                stops=use.stops(model),
                grammar=grammar or use.grammar(model),
                logit_bias=self.bias_of(),
                top_logprobs=self._top(),
            )
        )

    @property
    def tool_use(self) -> ToolChoice:
        """What the tools come to. Raises `ApiError` 400."""
        told = [
            Tool(tool.name, tool.description or "", msgspec.json.encode(tool.parameters or {}).decode())
            for tool in self.tools
        ]
        named = self.tool_choice if isinstance(self.tool_choice, NamedChoice) else None
        return choose(
            told,
            self.tool_choice if isinstance(self.tool_choice, str) else "auto",
            name=named.name if named else "",
            several=self.parallel_tool_calls,
            strict=[tool.name for tool in self.tools if tool.strict],
        )

    def _values(self, context_tokens: int) -> Iterable[tuple[str, str, Any]]:
        if self.reasoning.effort == "none":
            yield "reasoning.effort", "chat.thinking", False
        yield from super()._values(context_tokens)

    def _check(self) -> None:
        if self.background:
            raise refused("background", "nothing is kept to be asked for later; it takes false")
        if self.text.verbosity not in (None, "medium"):
            raise refused("text.verbosity", "it takes “medium”, which is what is done without it")
        if self.reasoning.effort not in (None, "none"):
            raise refused("reasoning.effort", "how long a model thinks is its own; it takes “none”")
        if unknown := set(self.include) - _NOTHING - {_LOGPROBS}:
            raise refused("include", f"there is no “{sorted(unknown)[0][:80]}” here")

    def _top(self) -> int | None:
        if not self.wants_logprobs:
            if self.top_logprobs:
                raise field_error("top_logprobs", f"“top_logprobs” needs “include”: [“{_LOGPROBS}”].")
            return None
        top = self.top_logprobs or 0
        if not 0 <= top <= _MOST_TOP:
            raise field_error("top_logprobs", f"“top_logprobs” takes 0 to {_MOST_TOP}.")
        return top

    def _grammar(self) -> Grammar | None:
        match self.text.format:
            case JsonObject():
                return Grammar("json_object")
            case JsonSchema(schema):
                return Grammar("json_schema", msgspec.json.encode(schema).decode())
            case _:
                return None


def response_request(fields: dict[str, Any]) -> ResponseRequest:
    """Of a decoded body. Raises `ApiError` 400."""
    return convert_fields(fields | {"input": with_types(fields.get("input"))}, ResponseRequest, IGNORED)
