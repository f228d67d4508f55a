"""`POST /v1/chat/completions`: request, messages, and the answer whole or in chunks.

Every field of OpenAI's is honoured, ignored because it cannot change the answer, named in the answer's
`changes`, or refused by name because the answer would be a different one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, ClassVar, Literal

import msgspec
from msgspec import Struct, field

from core.events import (
    Change,
    Finished,
    Grammar,
    Message,
    ModelInfo,
    Stats,
    Token,
    ToolCall,
)
from core.serve.answering import (
    AnswerWriter,
    Prepared,
    WriterOf,
    logprobs_of,
    origins,
    usage,
)
from core.serve.conversation import CHAT_ROLES, ConversationReader
from core.serve.fields import (
    FORMS,
    convert_fields,
    effort_changes,
    refused,
    thinking_at,
    with_answer_form,
    with_tools,
)
from core.serve.http import ApiError, event, field_error
from core.serve.request import AnswerRequest, limit
from core.serve.response_memory import ResponseMemory
from core.tools.calls import Piece, TextDelta, ThoughtDelta


class TextPart(Struct):
    """A text part. Other types are handled before decoding."""

    type: Literal["text"]
    text: str


Content = str | list[TextPart] | None


def text_of(content: Content) -> str:
    """The whole text; each part is a line."""
    if isinstance(content, list):
        return "\n".join(part.text for part in content)
    return content or ""


UNSUPPORTED = {"audio": "answers are text", **FORMS}
_MOST_TOP = 20


class Schema(Struct):
    """The schema in `response_format`."""

    name: str = ""
    schema: dict[str, Any] | None = None
    description: str | None = None
    strict: bool | None = None


class ResponseFormat(Struct):
    """The form of the answer. Responses have the schema's fields next to the type."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: Schema | None = None
    schema: dict[str, Any] | None = None
    name: str = ""
    strict: bool | None = None

    def grammar(self) -> Grammar | None:
        """None for text. Raises `ApiError` 400 without a schema."""
        given = self.json_schema.schema if self.json_schema else self.schema
        if self.type == "text" or (self.type == "json_object" and not given):
            return Grammar("json_object") if self.type == "json_object" else None
        if given is None:
            raise field_error(
                "response_format.json_schema.schema",
                "“response_format” of the type “json_schema” needs “json_schema.schema”.",
                "missing_required_parameter",
            )
        return Grammar("json_schema", msgspec.json.encode(given).decode())


class Prediction(Struct):
    """`prediction`: the probable answer."""

    type: Literal["content"]
    content: Content


class TemplateWords(Struct):
    """Variables that other local servers pass to the chat template; Draftlight has a setting for this one."""

    enable_thinking: bool | None = None


class Reasoning(Struct):
    """OpenRouter's: a level of effort, or whether to think at all."""

    effort: str | None = None
    enabled: bool | None = None


class Thinking(Struct):
    """DeepSeek's, GLM's and Kimi's."""

    type: Literal["enabled", "disabled", "auto"]


class Sampled(AnswerRequest, kw_only=True):
    """The fields that chat completions and completions share."""

    max_tokens: int | None = None
    prediction: Prediction | None = None
    n: int = 1
    response_format: ResponseFormat | None = None

    @property
    def most_tokens(self) -> tuple[str, int] | None:
        """The field that limits the answer's length, and its value in tokens."""
        return limit("max_tokens", self.max_tokens)

    @property
    def predicted(self) -> str:
        """The text of `prediction`; empty without one."""
        return text_of(self.prediction.content) if self.prediction else ""

    def answer_grammar(self) -> tuple[str, Grammar] | None:
        """By `response_format`."""
        grammar = self.response_format.grammar() if self.response_format else None
        return ("response_format", grammar) if grammar else None

    def check(self) -> None:
        """Raises `ApiError` 400 for more than one answer."""
        if self.n != 1:
            raise refused("n", "one answer a request; it accepts 1")


class ChatRequest(Sampled, kw_only=True):
    """A chat completion's request."""

    schema_field: ClassVar[str] = "function.parameters"

    messages: tuple[Message, ...]
    max_completion_tokens: int | None = None
    logprobs: bool = False
    top_logprobs: int | None = None
    modalities: list[Literal["text"]] = field(default_factory=list)
    reasoning_effort: str | None = None
    reasoning: Reasoning = field(default_factory=Reasoning)
    thinking: Thinking | None = None
    enable_thinking: bool | None = None
    chat_template_kwargs: TemplateWords = field(default_factory=TemplateWords)

    @property
    def most_tokens(self) -> tuple[str, int] | None:
        """The newer name takes precedence."""
        return limit("max_completion_tokens", self.max_completion_tokens) or super().most_tokens

    def unsupported(self, model: ModelInfo) -> Iterable[Change]:
        """Levels of effort."""
        yield from effort_changes("reasoning_effort", self.reasoning_effort, model)
        yield from effort_changes("reasoning.effort", self.reasoning.effort, model)

    def conversation(self) -> tuple[Message, ...]:
        """The messages."""
        return self.messages

    def own_settings(self) -> Iterable[tuple[str, str, Any]]:
        """The shared fields, and whether the model thinks first."""
        modes = {"enabled": "on", "disabled": "off", "auto": "auto", True: "on", False: "off"}
        switches: dict[str, bool | str | None] = {
            "thinking": self.thinking.type if self.thinking else None,
            "enable_thinking": self.enable_thinking,
            "chat_template_kwargs.enable_thinking": self.chat_template_kwargs.enable_thinking,
            "reasoning.enabled": self.reasoning.enabled,
        }
        for name, given in switches.items():
            if given is not None:
                yield name, "chat.thinking", modes[given]
        for name, effort in (
            ("reasoning.effort", self.reasoning.effort),
            ("reasoning_effort", self.reasoning_effort),
        ):
            if effort:
                yield name, "chat.thinking", thinking_at(effort)
        yield from super().own_settings()

    def logprobs_count(self) -> int | None:
        """By `logprobs` and `top_logprobs`."""
        if not self.top_logprobs:
            return 0 if self.logprobs else None
        if not self.logprobs:
            raise field_error("top_logprobs", "“top_logprobs” needs “logprobs”: true.")
        if not 0 <= self.top_logprobs <= _MOST_TOP:
            raise field_error("top_logprobs", f"“top_logprobs” accepts 0 to {_MOST_TOP}.")
        return self.top_logprobs


def read_chat(fields: dict[str, Any]) -> tuple[AnswerRequest, WriterOf]:
    """The request from a decoded body, and the writer of its answer. Raises `ApiError` 400."""
    asked = chat_request(fields)
    return asked, partial(ChatWriter, asked, functions=_calls_functions(fields))


def _calls_functions(fields: dict[str, Any]) -> bool:
    """Whether the tools are sent as `functions`, so that the answer has a `function_call`."""
    return "messages" in fields and bool(fields.get("functions")) and not fields.get("tools")


def chat_request(fields: dict[str, Any]) -> AnswerRequest:
    """The request from a decoded body. Raises `ApiError` 400.

    Cursor sends requests of `/v1/responses` here, and reads chat completions.
    """
    if "messages" not in fields and isinstance(fields.get("input"), str | list):
        return ResponseMemory().requested(fields)
    functions = fields.get("functions")
    if _calls_functions(fields):
        named = {"tools": functions, "tool_choice": fields.get("function_call"), "parallel_tool_calls": False}
        fields = {**fields, **named, "functions": None, "function_call": None}
    elif not functions:
        fields = {**fields, "functions": None, "function_call": None}
    conversation = ConversationReader("messages", CHAT_ROLES)
    fields = with_answer_form(with_tools(fields, conversation.changes))
    fields = fields | {"messages": conversation.read(fields.get("messages"))}
    asked = convert_fields(fields, ChatRequest, UNSUPPORTED, conversation.changes, conversation.unknown)
    asked.images.extend(conversation.images)
    return asked


DONE = b"data: [DONE]\n\n"
# Answers that were ended early are cut off, like those that reached their limit.
REASONS = {"stop": "stop", "length": "length", "cancelled": "length", "repetition": "length"}


class ChatWriter(AnswerWriter):
    """Writes an answer as OpenAI's chat completion.

    `functions`: the first call is written as a `function_call`. `objects` are the names of a whole answer and
    of a chunk.
    """

    objects: ClassVar[tuple[str, str]] = ("chat.completion", "chat.completion.chunk")
    annotates: ClassVar[bool] = True

    def __init__(self, asked: AnswerRequest, made: Prepared, *, functions: bool = False) -> None:
        super().__init__(asked, made)
        self._functions = functions
        self._calls = 0
        self._said = ""  # kept for annotations
        self._head = {
            "id": made.generate.request,
            "object": self.objects[asked.stream],
            "created": int(time.time()),
            "model": made.model,
        }
        self._usage: dict[str, Any] = {"usage": None} if asked.includes_usage else {}

    def opening(self) -> bytes:
        """The first chunk, with the role."""
        return self._chunk({"role": "assistant", "content": ""})

    def written(self, tokens: Sequence[Token]) -> bytes:
        """Chunks of the new tokens; empty without new text."""
        deltas = self._deltas(tokens)
        logprobs = self._logprobs(tokens)
        told = self._asked.draftlight.tokens
        if not deltas and (logprobs or told):
            deltas = [{}]
        out = b""
        for delta in deltas:
            # Data about the tokens is sent once, in their first chunk.
            more: dict[str, Any] = {"draftlight": {"tokens": origins(tokens)}} if told else {}
            out += self._chunk(delta, None, logprobs, more)
            told, logprobs = False, None
        return out

    def finished(self, finished: Finished) -> bytes:
        """The last chunks and `[DONE]`."""
        stats = finished.stats
        out = b"".join(self._chunk(delta) for piece in self._written.end() for delta in self._pieces(piece))
        figures = self.figures(finished)
        reason = self._reason(finished)
        if self.annotations is not None:
            found, figures["draftlight"]["facts"] = self.annotations.of_chat(self._said)
            out += self._chunk({"annotations": found})
        if not self._asked.includes_usage:
            return out + self._chunk({}, reason, more=figures) + DONE
        last: dict[str, Any] = {**self._head, "choices": [], "usage": self._figures(stats), **figures}
        return out + self._chunk({}, reason) + event(last) + DONE

    def failed(self, error: ApiError) -> bytes:
        """The event of an error after the opening."""
        return event(error.body())

    def whole(self, tokens: Sequence[Token], finished: Finished) -> dict[str, Any]:
        """The body of an answer that is not streamed."""
        choice = self._whole_choice(tokens)
        figures = self.figures(finished, tokens)
        if self.annotations is not None:
            message = choice["message"]
            found = self.annotations.of_chat(message["content"] or "")
            message["annotations"], figures["draftlight"]["facts"] = found
        return {
            **self._head,
            "choices": [
                {**choice, "logprobs": self._logprobs(tokens), "finish_reason": self._reason(finished)}
            ],
            "usage": self._figures(finished.stats),
            **figures,
        }

    def _whole_choice(self, tokens: Sequence[Token]) -> dict[str, Any]:
        pieces = [*self._written.add(tokens), *self._written.end()]
        said = "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))
        calls = [piece for piece in pieces if isinstance(piece, ToolCall)]
        message: dict[str, Any] = {"role": "assistant", "content": said, "refusal": None}
        if thought := "".join(piece.text for piece in pieces if isinstance(piece, ThoughtDelta)):
            message["reasoning_content"] = thought
        if calls:
            message["content"] = said or None
            called = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in calls
            ]
            first = called[0]["function"]
            message |= {"function_call": first} if self._functions else {"tool_calls": called}
        return {"index": 0, "message": message}

    def _deltas(self, tokens: Sequence[Token]) -> list[dict[str, Any]]:
        return [delta for piece in self._written.add(tokens) for delta in self._pieces(piece)]

    def _choice(self, delta: dict[str, Any]) -> dict[str, Any]:
        return {"index": 0, "delta": delta}

    def _logprobs(self, tokens: Sequence[Token]) -> dict[str, Any] | None:
        content = logprobs_of(tokens)
        return {"content": content, "refusal": None} if content else None

    def _reason(self, finished: Finished) -> str:
        if self._written.calls and finished.reason == "stop":
            return "function_call" if self._functions else "tool_calls"
        return REASONS[finished.reason]

    def _pieces(self, piece: Piece) -> list[dict[str, Any]]:
        """The deltas of a piece. Clients expect a call's name before its arguments."""
        match piece:
            case ThoughtDelta(text):
                # The name that local servers share; OpenAI shows no thoughts.
                return [{"reasoning_content": text}]
            case TextDelta(text):
                if self.annotations is not None:
                    self._said += text
                return [{"content": text}]
            case ToolCall(id, name, arguments):
                functions = [{"name": name, "arguments": ""}, {"arguments": arguments}]
                if self._functions:
                    return [{"function_call": function} for function in functions]
                self._calls += 1
                heads: list[dict[str, Any]] = [{"id": id, "type": "function"}, {}]
                return [
                    {"tool_calls": [{"index": self._calls - 1, **head, "function": function}]}
                    for head, function in zip(heads, functions)
                ]

    def _figures(self, stats: Stats) -> dict[str, Any]:
        return usage(stats, self._written.thought_tokens)

    def _chunk(
        self,
        delta: dict[str, Any],
        reason: str | None = None,
        logprobs: dict[str, Any] | None = None,
        more: dict[str, Any] | None = None,
    ) -> bytes:
        choice = {**self._choice(delta), "logprobs": logprobs, "finish_reason": reason}
        return event({**self._head, "choices": [choice], **self._usage, **(more or {})})
