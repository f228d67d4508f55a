"""What a chat completion may be asked with, and the command that comes of it.

Every field of OpenAI's is honoured, ignored because it cannot change the answer, named in the answer's
`changes`, or refused by name because the answer would be a different one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from core.events import Generate, Grammar, ModelInfo, Tool
from core.events.text import well_formed_record
from core.serve.converting import convert_fields
from core.serve.errors import FieldNames, field_error
from core.serve.fields import effort_changes, refused, thinks_at
from core.serve.left_out import Kind, LeftOut, question_at
from core.serve.openai.messages import ChatMessage, Content, messages_of, text_of
from core.serve.sampling import Sampling, limit, stops_of
from core.serve.tools.choice import ToolChoice, choose
from core.settings import Settings

# The user, storage, billing and caching: these do not change the answer.
IGNORED = frozenset(
    {
        "cache_control",
        "metadata",
        "prompt_cache_key",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "store",
        "user",
    }
)
UNSUPPORTED = {
    "audio": "answers are text",
    "function_call": "use “tool_choice”",
    "functions": "use “tools”",
}
_MOST_TOP = 20
_CONTENT_TYPES = ("text",)
_KINDS: dict[str, Kind] = {"system": "system", "developer": "system", "user": "user", "tool": "result"}


class StreamOptions(Struct):
    """`include_obfuscation` is about who listens on a line that nobody listens on."""

    include_usage: bool = False
    include_obfuscation: bool = False


class FunctionTool(Struct):
    """A function that the model may call."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ChatTool(Struct):
    """As it stands in `tools`."""

    type: Literal["function"]
    function: FunctionTool


class NamedFunction(Struct):
    """By its name."""

    name: str


class NamedChoice(Struct):
    """The function that must be called."""

    function: NamedFunction
    type: Literal["function"] = "function"


class Schema(Struct):
    """As it stands in `response_format`."""

    name: str = ""
    schema: dict[str, Any] | None = None
    description: str | None = None
    strict: bool | None = None


class ResponseFormat(Struct):
    """What an answer must be."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: Schema | None = None


class Prediction(Struct):
    """What an answer will probably be."""

    type: Literal["content"]
    content: Content


class TemplateWords(Struct):
    """What other local servers pass on to the chat template; Draftlight has a setting for this one."""

    enable_thinking: bool | None = None


class Sampled(Sampling, kw_only=True):
    """What chat completions and completions share."""

    model: str = ""
    stream: bool = False
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    stop: str | list[str] | None = None
    prediction: Prediction | None = None
    n: int = 1

    @property
    def includes_usage(self) -> bool:
        """Whether a stream ends with a chunk of figures."""
        return self.stream_options is not None and self.stream_options.include_usage

    @property
    def most_tokens(self) -> tuple[str, int] | None:
        """The field that says how long the answer may be, and what it says."""
        return limit("max_tokens", self.max_tokens)

    @property
    def predicted(self) -> str:
        """What the answer will probably be; empty if nobody says."""
        return text_of(self.prediction.content) if self.prediction else ""

    def stops_of(self) -> tuple[str, ...]:
        """Raises `ApiError` 400."""
        return stops_of("stop", (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ()))

    def check_shared(self) -> None:
        """Raises `ApiError` 400 for what is not done."""
        if self.n != 1:
            raise refused("n", "one answer a request; it takes 1")


class ChatRequest(Sampled, kw_only=True):
    """All of it."""

    messages: list[ChatMessage]
    max_completion_tokens: int | None = None
    logprobs: bool = False
    top_logprobs: int | None = None
    tools: list[ChatTool] = field(default_factory=list)
    tool_choice: Literal["auto", "none", "required"] | NamedChoice = "auto"
    parallel_tool_calls: bool = True
    response_format: ResponseFormat | None = None
    modalities: list[Literal["text"]] = field(default_factory=list)
    reasoning_effort: str | None = None
    chat_template_kwargs: TemplateWords = field(default_factory=TemplateWords)

    @property
    def most_tokens(self) -> tuple[str, int] | None:
        """The newer name takes precedence."""
        return limit("max_completion_tokens", self.max_completion_tokens) or super().most_tokens

    @property
    def names(self) -> FieldNames:
        """What the worker may refuse is called so here."""
        if self._grammar() is not None:
            return FieldNames()
        return FieldNames(grammar=self.tool_use.field_of("function.parameters"))

    def generate(self, request: str, base: Settings, model: ModelInfo) -> Generate:
        """The command. Raises `ApiError` 400."""
        self.check_shared()
        self.changes.extend(effort_changes("reasoning_effort", self.reasoning_effort, model))
        use, grammar = self.tool_use, self._grammar()
        if use.must and grammar is not None:
            raise refused("response_format", "an answer that must be a call has the call's form")
        grammar = self.enforceable(grammar or use.grammar(model), self.names.grammar)
        if grammar is not None and not self.draftlight.forced:
            grammar = replace(grammar, drafts=False)
        return well_formed_record(
            Generate(
                request,
                messages_of(self.messages),
                self.settings_of(base, model.context_tokens),
                tools=use.told,
                stops=(*self.stops_of(), *use.stops(model)),
                prediction=self.predicted,
                grammar=grammar,
                logit_bias=self.bias_of(),
                top_logprobs=self._top(),
            )
        )

    def own_settings(self) -> Iterable[tuple[str, str, Any]]:
        """The same, and whether the model thinks first."""
        if self.chat_template_kwargs.enable_thinking is not None:
            wanted = self.chat_template_kwargs.enable_thinking
            yield "chat_template_kwargs.enable_thinking", "chat.thinking", wanted
        if self.reasoning_effort is not None:
            yield "reasoning_effort", "chat.thinking", thinks_at(self.reasoning_effort)
        yield from super().own_settings()

    def _top(self) -> int | None:
        if not self.top_logprobs:
            return 0 if self.logprobs else None
        if not self.logprobs:
            raise field_error("top_logprobs", "“top_logprobs” needs “logprobs”: true.")
        if not 0 <= self.top_logprobs <= _MOST_TOP:
            raise field_error("top_logprobs", f"“top_logprobs” takes 0 to {_MOST_TOP}.")
        return self.top_logprobs

    @property
    def tool_use(self) -> ToolChoice:
        """What the tools come to. Raises `ApiError` 400."""
        told = [
            Tool(
                tool.function.name,
                tool.function.description or "",
                msgspec.json.encode(tool.function.parameters or {}).decode(),
            )
            for tool in self.tools
        ]
        named = self.tool_choice if isinstance(self.tool_choice, NamedChoice) else None
        return choose(
            told,
            self.tool_choice if isinstance(self.tool_choice, str) else "auto",
            name=named.function.name if named else "",
            several=self.parallel_tool_calls,
            strict=[tool.function.name for tool in self.tools if tool.function.strict],
        )

    def _grammar(self) -> Grammar | None:
        asked = self.response_format
        if asked is None or asked.type == "text":
            return None
        if asked.type == "json_object":
            return Grammar("json_object")
        if asked.json_schema is None or asked.json_schema.schema is None:
            raise field_error(
                "response_format.json_schema.schema",
                "“response_format” of the type “json_schema” needs “json_schema.schema”.",
                "missing_required_parameter",
            )
        return Grammar("json_schema", msgspec.json.encode(asked.json_schema.schema).decode())


def chat_request(fields: dict[str, Any]) -> ChatRequest:
    """Of a decoded body. Raises `ApiError` 400."""
    left = LeftOut()
    fields = left.tools(fields, ("function",))
    if isinstance(messages := fields.get("messages"), list):
        question = question_at(messages, lambda message: _KINDS.get(str(message.get("role")), "other"))
        fields |= {
            "messages": [
                _readable(left, f"messages[{number}]", message, number == question)
                for number, message in enumerate(messages)
            ]
        }
    return convert_fields(fields, ChatRequest, IGNORED, UNSUPPORTED, left.changes)


def _readable(left: LeftOut, place: str, message: Any, is_question: bool) -> Any:
    """The message without what the model cannot read."""
    if not isinstance(message, dict):
        return message
    where = f"{place}.content"
    content = left.content(
        where, message.get("content"), _CONTENT_TYPES, text_type="text", is_question=is_question
    )
    if message.get("role") in ("system", "developer"):
        content = left.system(where, content)
    message = {**message, "content": content}
    if isinstance(calls := message.get("tool_calls"), list):
        message["tool_calls"] = [
            _with_arguments(left, f"{place}.tool_calls[{number}].function.arguments", call)
            for number, call in enumerate(calls)
        ]
    return message


def _with_arguments(left: LeftOut, place: str, call: Any) -> Any:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or "arguments" not in function:
        return call
    return {**call, "function": {**function, "arguments": left.arguments(place, function["arguments"])}}
