"""`POST /v1/chat/completions`: request, messages, and the answer whole or in chunks.

Every field of OpenAI's is honoured, ignored because it cannot change the answer, named in the answer's
`changes`, or refused by name because the answer would be a different one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, ClassVar, Literal

import msgspec
from msgspec import Struct, field

from core.answer_format import CallArguments, CallBegun, Delta, Text, Thought
from core.events import (
    Change,
    Finished,
    Generate,
    Grammar,
    Message,
    ModelInfo,
    Role,
    Stats,
    Token,
    ToolCall,
)
from core.serve.answering import (
    Logprobs,
    LogprobsShape,
    Writer,
    effective,
    origins,
    timings,
    usage,
)
from core.serve.fields import (
    FORMS,
    Adapter,
    Kind,
    change,
    convert_fields,
    effort_changes,
    question_at,
    refused,
    thinking_at,
    with_answer_form,
)
from core.serve.http import ApiError, event, field_error
from core.serve.request import AnswerRequest, limit
from core.serve.responses import ResponseMemory
from core.serve.tools import CallRules, Written

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}


class TextPart(Struct):
    """A text part. Other types are handled before decoding."""

    type: Literal["text"]
    text: str


Content = str | list[TextPart] | None


class CalledFunction(Struct):
    """The function of a call."""

    name: str
    arguments: str = "{}"


class GivenCall(Struct):
    """A call of an earlier answer."""

    id: str
    function: CalledFunction
    type: Literal["function"] = "function"
    index: int = 0


class ChatMessage(Struct):
    """A message. Fields that servers add to their answers are accepted and ignored."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Content = None
    name: str | None = None
    tool_calls: list[GivenCall] | None = None
    tool_call_id: str | None = None
    refusal: Any = None
    audio: Any = None
    annotations: Any = None
    function_call: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None
    thinking_blocks: Any = None
    provider_specific_fields: Any = None


def text_of(content: Content) -> str:
    """The whole text; each part is a line."""
    if isinstance(content, list):
        return "\n".join(part.text for part in content)
    return content or ""


def messages_of(given: Sequence[ChatMessage]) -> tuple[Message, ...]:
    """The messages for the worker. Raises `ApiError` 400 if there are none, or one lacks a field."""
    if not given:
        raise field_error("messages", "“messages” is empty; it accepts at least one message.")
    return tuple(_message(f"messages[{place}]", message) for place, message in enumerate(given))


def _message(place: str, given: ChatMessage) -> Message:
    calls = tuple(
        ToolCall(call.id, call.function.name, call.function.arguments) for call in given.tool_calls or ()
    )
    if given.role == "tool" and not given.tool_call_id:
        raise field_error(f"{place}.tool_call_id", "A message of the role “tool” says which call it answers.")
    return Message(
        _ROLES[given.role],
        text_of(given.content),
        tool_calls=calls,
        tool_call_id=given.tool_call_id or "",
        thought=next(filter(None, _thoughts(given)), ""),
    )


def _thoughts(given: ChatMessage) -> Iterator[str]:
    """The thought before an earlier answer, in each form that servers give it."""
    for thought in (given.reasoning_content, given.reasoning):
        yield thought if isinstance(thought, str) else ""
    for parts in (given.reasoning_details, given.thinking_blocks):  # OpenRouter's, LiteLLM's
        texts = [
            part.get("text") or part.get("thinking") or part.get("summary")
            for part in (parts if isinstance(parts, list) else ())
            if isinstance(part, dict)
        ]
        yield "\n\n".join(text for text in texts if isinstance(text, str))


# The user, storage, billing and caching: these do not change the answer.
IGNORED = frozenset(
    {
        "cache_control",
        "metadata",
        "moderation",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "store",
        "user",
    }
)
UNSUPPORTED = {"audio": "answers are text", **FORMS}
_MOST_TOP = 20
_CONTENT_TYPES = ("text",)
_KINDS: dict[str, Kind] = {"system": "system", "developer": "system", "user": "user", "tool": "result"}


class Schema(Struct):
    """The schema in `response_format`."""

    name: str = ""
    schema: dict[str, Any] | None = None
    description: str | None = None
    strict: bool | None = None


class ResponseFormat(Struct):
    """The form of the answer. Responses have the schema's fields beside the type."""

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
    """What other local servers pass on to the chat template; Draftlight has a setting for this one."""

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

    messages: list[ChatMessage]
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
        """Levels of effort, and names of participants."""
        named = (
            (number, message.name)
            for number, message in enumerate(self.messages)
            if message.name and message.role != "tool"
        )
        for number, name in islice(named, 1):
            reason = "the model reads roles, not the names of participants"
            yield change(f"messages[{number}].name", name, "left out", reason)
        yield from effort_changes("reasoning_effort", self.reasoning_effort, model)
        yield from effort_changes("reasoning.effort", self.reasoning.effort, model)

    def conversation(self) -> tuple[Message, ...]:
        """The messages."""
        return messages_of(self.messages)

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


def chat_request(fields: dict[str, Any]) -> AnswerRequest:
    """The request from a decoded body. Raises `ApiError` 400.

    Cursor sends requests of `/v1/responses` here, and reads chat completions.
    """
    if "messages" not in fields and isinstance(fields.get("input"), str | list):
        return ResponseMemory().requested(fields)
    functions, tools = fields.get("functions"), fields.get("tools")
    older = bool(functions) and not tools
    if older:
        named = {"tools": functions, "tool_choice": fields.get("function_call"), "parallel_tool_calls": False}
        fields = {**fields, **named, "functions": None, "function_call": None}
    elif not functions:
        fields = {**fields, "functions": None, "function_call": None}
    adapter = Adapter()
    fields = with_answer_form(adapter.tools(fields))
    if isinstance(messages := fields.get("messages"), list):
        messages = _with_ids([one for message in messages for one in _turns(message)])
        question = question_at(messages, lambda message: _KINDS.get(str(message.get("role")), "other"))
        fields |= {
            "messages": [
                _adapted(adapter, f"messages[{number}]", message, number == question)
                for number, message in enumerate(messages)
            ]
        }
    request = convert_fields(fields, ChatRequest, IGNORED, UNSUPPORTED, adapter.changes)
    request.__dict__["calls_functions"] = older
    return request


def _turns(message: Any) -> list[Any]:
    """The message with the calls of older versions, and of Anthropic's blocks, as `tool_calls` and `tool`."""
    if not isinstance(message, dict):
        return [message]
    role, called = message.get("role"), message.get("function_call")
    if role == "function":
        return [{**message, "role": "tool"}]
    if isinstance(called, dict) and not message.get("tool_calls"):
        message = {**message, "tool_calls": [{"function": called}], "function_call": None}
    content = message.get("content")
    blocks = [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []
    calls = [one for one in blocks if one.get("type") == "tool_use"] if role == "assistant" else []
    results = [one for one in blocks if one.get("type") == "tool_result"] if role == "user" else []
    if not calls and not results:
        return [message]
    left = [one for one in content if one not in calls and one not in results]
    made = [
        {"id": one.get("id"), "function": {"name": one.get("name"), "arguments": one.get("input")}}
        for one in calls
    ]
    told = [
        {"role": "tool", "tool_call_id": one.get("tool_use_id"), "content": one.get("content")}
        for one in results
    ]
    if calls:
        return [{**message, "content": left, "tool_calls": [*(message.get("tool_calls") or ()), *made]}]
    return [*told, {**message, "content": left}] if left else told


def _with_ids(messages: list[Any]) -> list[Any]:
    """`messages` with an id for each call and result that has none: results follow in the order of calls."""
    waiting: list[Any] = []
    told = []
    for number, message in enumerate(messages):
        if isinstance(message, dict):
            if isinstance(calls := message.get("tool_calls"), list):
                calls = [
                    {**call, "id": call.get("id") or f"call_{number}_{index}"}
                    for index, call in enumerate(calls)
                    if isinstance(call, dict)
                ]
                message = {**message, "tool_calls": calls}
                waiting = [call["id"] for call in calls]
            elif message.get("role") == "tool":
                answered = message.get("tool_call_id") or next(iter(waiting), None)
                message = {**message, "tool_call_id": answered}
                waiting = [call for call in waiting if call != answered]
        told.append(message)
    return told


def _adapted(adapter: Adapter, path: str, message: Any, is_question: bool) -> Any:
    """The message without what the model cannot read, and with its calls as `GivenCall` has them."""
    if not isinstance(message, dict):
        return message
    where, content = f"{path}.content", message.get("content")
    if message.get("role") == "tool":
        content = adapter.result(where, content, _CONTENT_TYPES, text_type="text")
    else:
        content = adapter.content(where, content, _CONTENT_TYPES, text_type="text", is_question=is_question)
    if message.get("role") in ("system", "developer"):
        content = adapter.system(where, content)
    message = {**message, "content": content}
    if isinstance(calls := message.get("tool_calls"), list):
        message["tool_calls"] = [
            _called(adapter, f"{path}.tool_calls[{number}]", call) for number, call in enumerate(calls)
        ]
    return message


def _called(adapter: Adapter, path: str, call: Any) -> Any:
    """The call of a function. That of a custom tool has one argument, its input."""
    if not isinstance(call, dict):
        return call
    if isinstance(custom := call.get("custom"), dict):
        function = {"name": custom.get("name"), "arguments": {"input": custom.get("input")}}
        call = {**call, "type": "function", "custom": None, "function": function}
    if not isinstance(function := call.get("function"), dict):
        return call
    arguments = adapter.arguments(f"{path}.function.arguments", function.get("arguments"))
    return {**call, "function": {**function, "arguments": arguments}}


DONE = b"data: [DONE]\n\n"
# Answers that were ended early are cut off, like those that reached their limit.
REASONS = {"stop": "stop", "length": "length", "cancelled": "length", "repetition": "length"}


class ChatWriter(Writer):
    """Writes one answer to `asked`, whose command is `generate`, by the model called `model`.

    `rules` say how its calls are read. `objects` are the names of a whole answer and of a chunk.
    """

    objects: ClassVar[tuple[str, str]] = ("chat.completion", "chat.completion.chunk")

    def __init__(self, asked: AnswerRequest, generate: Generate, model: str, rules: CallRules) -> None:
        self._asked = asked
        self._written = Written(rules, streams=asked.stream)
        self._head = {
            "id": generate.request,
            "object": self.objects[asked.stream],
            "created": int(time.time()),
            "model": model,
        }
        self._usage: dict[str, Any] = {"usage": None} if asked.includes_usage else {}
        self._logprobs: LogprobsShape = Logprobs()

    def opening(self) -> bytes:
        """The first chunk, with the role."""
        return self._chunk({"role": "assistant", "content": ""})

    def written(self, tokens: Sequence[Token]) -> bytes:
        """Chunks of the new tokens; empty without new text."""
        deltas = self._deltas(tokens)
        logprobs = self._logprobs.of(tokens)
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
        out = b"".join(self._chunk(self._delta(piece)) for piece in self._written.end())
        figures: dict[str, Any] = {"timings": timings(stats), "draftlight": self._effective(finished)}
        reason = self._reason(finished)
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
        own = self._effective(finished)
        if self._asked.draftlight.tokens:
            own["tokens"] = origins(tokens)
        return {
            **self._head,
            "choices": [
                {**choice, "logprobs": self._logprobs.of(tokens), "finish_reason": self._reason(finished)}
            ],
            "usage": self._figures(finished.stats),
            "timings": timings(finished.stats),
            "draftlight": own,
        }

    def _whole_choice(self, tokens: Sequence[Token]) -> dict[str, Any]:
        message = _gathered(map(_delta, [*self._written.add(tokens), *self._written.end()]))
        if self._asked.calls_functions and "tool_calls" in message:
            message["function_call"] = message.pop("tool_calls")[0]["function"]
        return {"index": 0, "message": message}

    def _deltas(self, tokens: Sequence[Token]) -> list[dict[str, Any]]:
        return list(map(self._delta, self._written.add(tokens)))

    def _choice(self, delta: dict[str, Any]) -> dict[str, Any]:
        return {"index": 0, "delta": delta}

    def _effective(self, finished: Finished) -> dict[str, Any]:
        return effective(
            finished,
            unlimited=self._asked.most_tokens is None,
            changes=(*self._asked.changes, *self._written.changes),
        )

    def _reason(self, finished: Finished) -> str:
        if self._written.calls and finished.reason == "stop":
            return "function_call" if self._asked.calls_functions else "tool_calls"
        return REASONS[finished.reason]

    def _delta(self, piece: Delta) -> dict[str, Any]:
        delta = _delta(piece)
        if self._asked.calls_functions and "tool_calls" in delta:
            return {"function_call": delta["tool_calls"][0]["function"]}
        return delta

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


def _delta(piece: Delta) -> dict[str, Any]:
    match piece:
        case Thought(text):
            # The name that local servers share; OpenAI shows no thoughts.
            return {"reasoning_content": text}
        case Text(text):
            return {"content": text}
        case CallBegun(index, name, call):
            function = {"name": name, "arguments": ""}
            return {"tool_calls": [{"index": index, "id": call, "type": "function", "function": function}]}
        case CallArguments(index, text):
            return {"tool_calls": [{"index": index, "function": {"arguments": text}}]}


def _gathered(deltas: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The message made of the deltas of a stream."""
    said, thought, calls = "", "", []
    for delta in deltas:
        said += delta.get("content", "")
        thought += delta.get("reasoning_content", "")
        for call in delta.get("tool_calls", ()):
            if "id" in call:
                calls.append({name: call[name] for name in ("id", "type", "function")})
            else:
                calls[call["index"]]["function"]["arguments"] += call["function"]["arguments"]
    message: dict[str, Any] = {"role": "assistant", "content": said, "refusal": None}
    if thought:
        message["reasoning_content"] = thought
    if calls:
        message |= {"content": said or None, "tool_calls": calls}
    return message
