"""`POST /v1/responses`: OpenAI's requests, and answers as responses, whole or as events.

An item begins, grows and is done before the next one begins. Text after a call is a separate message, and
so is a thought (`reasoning_text`). In a request an answer's text and its calls are separate items, and one
turn here. The rules for unsupported fields are those of chat completions.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Literal

import msgspec
from msgspec import Struct, field

from core.events import (
    Change,
    Event,
    Finished,
    Grammar,
    Message,
    ModelInfo,
    PrefillProgress,
    Stats,
    Token,
    ToolCall,
)
from core.serve.annotations import Annotations
from core.serve.answering import AnswerWriter, Prepared, commented, logprobs_of, origins
from core.serve.conversation import ConversationReader, completed
from core.serve.fields import (
    FORMS,
    change,
    convert_fields,
    effort_changes,
    refused,
    thinking_at,
    with_answer_form,
    with_tools,
)
from core.serve.http import TOO_LONG, ApiError, event, field_error
from core.serve.request import AnswerRequest, Choice, GivenTool, limit
from core.tools.calls import Piece, TextDelta, ThoughtDelta

UNSUPPORTED = {
    **FORMS,
    "conversation": "the server stores no conversations; send the items themselves",
    "prompt": "the server stores no prompts; send “instructions” and “input”",
}
_LOGPROBS = "message.output_text.logprobs"
# Thoughts are never encrypted, so this adds nothing to the answer.
_ENCRYPTED = "reasoning.encrypted_content"
_MOST_TOP = 20


class PlainText(Struct, tag_field="type", tag="text"):
    """The answer is text."""


class JsonObject(Struct, tag_field="type", tag="json_object"):
    """The answer is a JSON object."""


class JsonSchema(Struct, tag_field="type", tag="json_schema"):
    """The answer is JSON by a schema, which is always kept."""

    schema: dict[str, Any]
    name: str = ""
    description: str | None = None
    strict: bool | None = None


class TextConfig(Struct):
    """The form of the answer, and how long it is."""

    format: PlainText | JsonObject | JsonSchema | None = None
    verbosity: str | None = None


class Reasoning(Struct):
    """How long the model thinks, and whether its thoughts are shown as summaries, whole all the same."""

    effort: str | None = None
    summary: Any = None
    generate_summary: Any = None


class ResponseRequest(AnswerRequest, kw_only=True):
    """A response's request."""

    prompt_field: ClassVar[str] = "input"

    input: tuple[Message, ...]
    instructions: str | None = None
    text: TextConfig = field(default_factory=TextConfig)
    reasoning: Reasoning = field(default_factory=Reasoning)
    include: list[str] = field(default_factory=list)
    max_output_tokens: int | None = None
    previous_response_id: str | None = None
    store: bool = True
    top_logprobs: int | None = None
    # Returned as sent.
    metadata: Any = None
    max_tool_calls: Any = None
    prompt_cache_key: Any = None
    safety_identifier: Any = None
    user: Any = None
    background: bool = False

    @property
    def most_tokens(self) -> tuple[str, int] | None:
        """The field that limits the answer's length, and its value in tokens."""
        return limit("max_output_tokens", self.max_output_tokens)

    @property
    def summarizes(self) -> bool:
        """Whether thoughts are summaries in the answer."""
        return bool(self.reasoning.summary or self.reasoning.generate_summary)

    @property
    def wants_logprobs(self) -> bool:
        """Whether log probabilities are returned with the text."""
        return _LOGPROBS in self.include

    def conversation(self) -> tuple[Message, ...]:
        """`instructions` and `input`."""
        return self.input

    @property
    def custom_tools(self) -> frozenset[str]:
        """Names of the tools whose input is any text."""
        return frozenset(tool.name for tool in self.tools if tool.type == "custom")

    def _values(self, context_tokens: int) -> Iterable[tuple[str, str, Any]]:
        if self.reasoning.effort is not None:
            yield "reasoning.effort", "chat.thinking", thinking_at(self.reasoning.effort)
        yield from super()._values(context_tokens)

    def check(self) -> None:
        """Refuse answers in the background."""
        if self.background:
            raise refused("background", "answers are not stored for later; it accepts false")

    def unsupported(self, model: ModelInfo) -> Iterable[Change]:
        """Effort, verbosity, grammars of custom tools, and other values of `include`."""
        yield from effort_changes("reasoning.effort", self.reasoning.effort, model)
        if self.text.verbosity not in (None, "medium"):
            reason = "the loaded model has no levels of verbosity"
            yield change("text.verbosity", self.text.verbosity, "medium", reason)
        for number, tool in enumerate(self.tools):
            if isinstance(tool.format, dict) and "definition" in tool.format:
                reason = "the input of a custom tool is any text"
                yield change(f"tools[{number}].format", tool.format, "in the tool's description", reason)
        for name in sorted(set(self.include) - {_ENCRYPTED, _LOGPROBS}):
            yield change("include", name, "", "answers do not have this")

    def logprobs_count(self) -> int | None:
        """By `include` and `top_logprobs`."""
        if not self.wants_logprobs:
            if self.top_logprobs:
                raise field_error("top_logprobs", f"“top_logprobs” needs “include”: [“{_LOGPROBS}”].")
            return None
        top = self.top_logprobs or 0
        if not 0 <= top <= _MOST_TOP:
            raise field_error("top_logprobs", f"“top_logprobs” accepts 0 to {_MOST_TOP}.")
        return top

    def answer_grammar(self) -> tuple[str, Grammar] | None:
        """By `text.format`."""
        match self.text.format:
            case JsonObject():
                return "text.format", Grammar("json_object")
            case JsonSchema(schema):
                return "text.format", Grammar("json_schema", msgspec.json.encode(schema).decode())
            case _:
                return None


def response_request(fields: dict[str, Any]) -> ResponseRequest:
    """The request from a decoded body. Raises `ApiError` 400."""
    conversation = ConversationReader("input")
    fields = with_answer_form(with_tools(fields, conversation.changes, custom=True))
    if isinstance(fields.get("instructions"), str):
        fields["instructions"] = conversation.system("instructions", fields["instructions"])
    given = fields.get("input")
    given = [{"role": "user", "content": given}] if isinstance(given, str) else given
    fields["input"] = conversation.read(given)
    if form := fields.pop("response_format", None):
        # Chat completions have the schema's fields one level deeper.
        schema = form.get("json_schema") or {} if isinstance(form, dict) else None
        if not isinstance(schema, dict):
            raise field_error("response_format", "“response_format” is not the form of an answer.")
        fields["text"] = {"format": {"type": form["type"], **schema} if "type" in form else schema}
    asked = convert_fields(fields, ResponseRequest, UNSUPPORTED, conversation.changes, conversation.unknown)
    asked.images.extend(conversation.images)
    return asked


# ---- answers


Told = tuple[str, dict[str, Any]]


class Output:
    """`items`: all items until now. Events are pairs (name without `response.`, fields).

    `summarizes`: a thought is its item's summary, which clients that request summaries show instead of the
    text of reasoning; the text is the same.
    """

    def __init__(
        self,
        custom_tools: Collection[str] = (),
        *,
        summarizes: bool = False,
        annotations: Annotations | None = None,
    ) -> None:
        self._custom_tools = custom_tools
        self._annotations = annotations
        self.facts: list[dict[str, Any]] = []
        self._summarizes = summarizes
        self.items: list[dict[str, Any]] = []
        self._logprobs: list[dict[str, Any]] = []
        self._open = False

    def add(self, pieces: Iterable[Piece], logprobs: list[dict[str, Any]]) -> Iterator[Told]:
        """Add pieces. `logprobs` of their tokens are sent with the next text of the answer."""
        self._logprobs += logprobs
        piece: Piece | None = None
        for piece in pieces:
            match piece:
                case ThoughtDelta(text):
                    yield from self._text("reasoning")
                    if self._summarizes:
                        self.items[-1]["summary"][0]["text"] += text
                        yield self._of("reasoning_summary_text.delta", summary_index=0, delta=text)
                    else:
                        self.items[-1]["content"][0]["text"] += text
                        yield self._of("reasoning_text.delta", content_index=0, delta=text)
                case TextDelta(text):
                    yield from self._text("message")
                    part = self.items[-1]["content"][0]
                    part["text"] += text
                    told, self._logprobs = self._logprobs, []
                    part["logprobs"] += told
                    yield self._of("output_text.delta", content_index=0, delta=text, logprobs=told)
                case ToolCall(call, name, arguments) if name in self._custom_tools:
                    yield from self.close()
                    item = {"id": _id("ctc"), "type": "custom_tool_call", "status": "in_progress"}
                    yield from self._begin(item | {"call_id": call, "name": name, "input": ""})
                    self.items[-1]["input"] = _input_of(arguments)
                case ToolCall(call, name, arguments):
                    yield from self.close()
                    yield from self._begin(
                        {
                            "id": _id("fc"),
                            "type": "function_call",
                            "status": "in_progress",
                            "call_id": call,
                            "name": name,
                            "arguments": "",
                        }
                    )
                    self.items[-1]["arguments"] = arguments
                    yield self._of("function_call_arguments.delta", delta=arguments)
        if piece is not None:
            # Thoughts and calls have no logprobs.
            self._logprobs = []

    def end(self, status: str) -> Iterator[Told]:
        """Finish the last item. Logprobs after the last text of the answer are sent with an empty one."""
        if self._logprobs and self._open and self.items[-1]["type"] == "message":
            yield from self.add([TextDelta("")], [])
        yield from self.close(status)

    def close(self, status: str = "completed") -> Iterator[Told]:
        """Finish the open item, if there is one."""
        if not self._open:
            return
        self._open = False
        item = self.items[-1]
        item["status"] = status
        if item["type"] == "custom_tool_call":
            yield self._of("custom_tool_call_input.delta", delta=item["input"])
            yield self._of("custom_tool_call_input.done", input=item["input"])
        elif item["type"] == "function_call":
            arguments, name = item["arguments"], item["name"]
            yield self._of("function_call_arguments.done", arguments=arguments, name=name)
        elif item.get("summary"):
            part = item["summary"][0]
            yield self._of("reasoning_summary_text.done", summary_index=0, text=part["text"])
            yield self._of("reasoning_summary_part.done", summary_index=0, part=part)
        else:
            part = item["content"][0]
            if self._annotations is not None and "annotations" in part:
                part["annotations"], facts = self._annotations.of_response(part["text"])
                self.facts += [{"output_index": len(self.items) - 1, **fact} for fact in facts]
                for number, annotation in enumerate(part["annotations"]):
                    about = {"annotation_index": number, "annotation": annotation}
                    yield self._of("output_text.annotation.added", content_index=0, **about)
            more = {"logprobs": part["logprobs"]} if "logprobs" in part else {}
            yield self._of(f"{part['type']}.done", content_index=0, text=part["text"], **more)
            yield self._of("content_part.done", content_index=0, part=part)
        yield "output_item.done", {"output_index": len(self.items) - 1, "item": item}

    def _text(self, kind: Literal["message", "reasoning"]) -> Iterator[Told]:
        """Open an item with text of this kind, unless one is open."""
        if self._open and self.items[-1]["type"] == kind:
            return
        yield from self.close()
        part: dict[str, Any]
        if kind == "message":
            item: dict[str, Any] = {"id": _id("msg"), "role": "assistant"}
            part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        elif self._summarizes:
            part = {"type": "summary_text", "text": ""}
            yield from self._begin({"id": _id("rs"), "type": kind, "status": "in_progress", "summary": []})
            self.items[-1]["summary"].append(part)
            yield self._of("reasoning_summary_part.added", summary_index=0, part=part)
            return
        else:
            item = {"id": _id("rs"), "summary": []}
            part = {"type": "reasoning_text", "text": ""}
        yield from self._begin({**item, "type": kind, "status": "in_progress", "content": []})
        self.items[-1]["content"].append(part)
        yield self._of("content_part.added", content_index=0, part=part)

    def _begin(self, item: dict[str, Any]) -> Iterator[Told]:
        self._open = True
        self.items.append(item)
        yield "output_item.added", {"output_index": len(self.items) - 1, "item": item}

    def _of(self, event: str, **fields: Any) -> Told:
        place = {"item_id": self.items[-1]["id"], "output_index": len(self.items) - 1}
        return event, place | fields


def _shown_choice(choice: Choice) -> Any:
    """`tool_choice` as OpenAI's responses have it."""
    if not choice.names:
        return choice.type
    if choice.type == "required" and len(choice.names) == 1:
        return {"type": "function", "name": choice.names[0]}
    tools = [{"type": "function", "name": name} for name in choice.names]
    return {"type": "allowed_tools", "mode": choice.type, "tools": tools}


def _shown_tool(tool: GivenTool) -> dict[str, Any]:
    shown = {"type": tool.type, "name": tool.name, "description": tool.description or None}
    if tool.type == "custom":
        return {**shown, "format": tool.format}
    return {**shown, "parameters": tool.parameters, "strict": tool.strict}


def _input_of(arguments: str) -> str:
    """The text of a custom tool's call; `arguments` as written if they are no object with it."""
    try:
        given = msgspec.json.decode(completed(arguments))["input"]
    except (msgspec.DecodeError, KeyError):
        return arguments
    return given if isinstance(given, str) else arguments


def _id(kind: str) -> str:
    return f"{kind}_{secrets.token_hex(14)}"


_ALIVE_S = 30.0


class ResponseWriter(AnswerWriter):
    """Writes an answer as OpenAI's response.

    `keep` gets the response before its end is sent.
    """

    _asked: ResponseRequest
    annotates: ClassVar[bool] = True
    streamed_errors: ClassVar[frozenset[str]] = frozenset({TOO_LONG})

    def __init__(
        self,
        asked: ResponseRequest,
        made: Prepared,
        keep: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        super().__init__(asked, made)
        self._keep = keep
        self._output = Output(asked.custom_tools, summarizes=asked.summarizes, annotations=self.annotations)
        self._events = 0
        self._begun = False
        self._alive_s = time.monotonic()
        sampling = made.generate.settings.sampling
        self._head: dict[str, Any] = {
            "id": made.generate.request,
            "object": "response",
            "created_at": int(time.time()),
            "completed_at": None,
            "status": "in_progress",
            "background": False,
            "error": None,
            "frequency_penalty": sampling.frequency_penalty,
            "incomplete_details": None,
            "instructions": asked.instructions,
            "max_output_tokens": asked.max_output_tokens,
            "max_tool_calls": asked.max_tool_calls,
            "metadata": asked.metadata or {},
            "model": made.model,
            "output": [],
            "parallel_tool_calls": asked.parallel_tool_calls,
            "presence_penalty": sampling.presence_penalty,
            "previous_response_id": asked.previous_response_id,
            "prompt_cache_key": asked.prompt_cache_key,
            "reasoning": {"effort": asked.reasoning.effort, "summary": asked.reasoning.summary},
            "safety_identifier": asked.safety_identifier,
            "service_tier": "default",
            "store": asked.store,
            "temperature": sampling.temperature,
            "text": {"format": msgspec.to_builtins(asked.text.format) or {"type": "text"}},
            "tool_choice": _shown_choice(asked.tool_choice),
            "tools": list(map(_shown_tool, asked.tools)),
            "top_logprobs": asked.top_logprobs or 0,
            "top_p": sampling.top_p,
            "truncation": "disabled",
            "usage": None,
            "user": asked.user,
        }

    def alive(self, happening: Event | None) -> bytes:
        """A progress comment, after the first events once the prompt is being read.

        Codex counts events alone as signs of life, so one of them is sent again every half a minute.
        """
        first = self.opening() if isinstance(happening, PrefillProgress) else b""
        if first or not self._begun:
            self._alive_s = time.monotonic()
        elif time.monotonic() - self._alive_s >= _ALIVE_S:
            self._alive_s = time.monotonic()
            first = self._event("in_progress", {"response": self._head})
        return first + commented(happening)

    def opening(self) -> bytes:
        """The first events; nothing if they were sent while the prompt was read."""
        if self._begun:
            return b""
        self._begun = True
        return self._event("created", {"response": self._head}) + self._event(
            "in_progress", {"response": self._head}
        )

    def written(self, tokens: Sequence[Token]) -> bytes:
        """Events of the new tokens; empty without new text."""
        out = self._told(self._added(tokens))
        if self._asked.draftlight.tokens:
            # Clients skip events that they do not know.
            out += self._event("draftlight", {"tokens": origins(tokens)})
        return out

    def finished(self, finished: Finished) -> bytes:
        """The last events."""
        out = self._told(self._ended(finished))
        response = self._done(finished)
        return out + self._event(response["status"], {"response": response})

    def failed(self, error: ApiError) -> bytes:
        """The event of an error, after the first events."""
        code = TOO_LONG if error.code == TOO_LONG else "server_error"
        told = {"code": code, "message": error.message}
        response = self._head | {"status": "failed", "output": self._output.items, "error": told}
        return self.opening() + self._event("failed", {"response": response})

    def whole(self, tokens: Sequence[Token], finished: Finished) -> dict[str, Any]:
        """The body of an answer that is not streamed."""
        for _ in self._added(tokens):
            pass
        for _ in self._ended(finished):
            pass
        response = self._done(finished)
        if self._asked.draftlight.tokens:
            response["draftlight"]["tokens"] = origins(tokens)
        return response

    def _added(self, tokens: Sequence[Token]) -> Iterable[Told]:
        # One by one with logprobs, which are sent with their token's text.
        for some in [[token] for token in tokens] if self._asked.wants_logprobs else [tokens]:
            logprobs = [entry | {"bytes": entry["bytes"] or []} for entry in logprobs_of(some)]
            yield from self._output.add(self._written.add(some), logprobs)

    def _ended(self, finished: Finished) -> Iterable[Told]:
        yield from self._output.add(self._written.end(), [])
        yield from self._output.end(_status(finished))

    def _done(self, finished: Finished) -> dict[str, Any]:
        status = _status(finished)
        response = self._head | {
            "status": status,
            "completed_at": int(time.time()) if status == "completed" else None,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "output": self._output.items,
            "usage": _usage(finished.stats, self._written.thought_tokens),
            **self.figures(finished),
        }
        if self.annotations is not None:
            response["draftlight"]["facts"] = self._output.facts
        if self._keep is not None:
            self._keep(response)
        return response

    def _told(self, told: Iterable[Told]) -> bytes:
        return b"".join([self._event(name, fields) for name, fields in told])

    def _event(self, name: str, fields: dict[str, Any]) -> bytes:
        number, self._events = self._events, self._events + 1
        kind = f"response.{name}"
        return event({"type": kind, "sequence_number": number, **fields}, kind)


def _status(finished: Finished) -> str:
    # A cancelled answer is cut off, like one that reached its limit.
    return "completed" if finished.reason == "stop" else "incomplete"


def _usage(stats: Stats, thought_tokens: int) -> dict[str, Any]:
    return {
        "input_tokens": stats.prompt_tokens,
        "input_tokens_details": {"cached_tokens": stats.reused_tokens, "cache_write_tokens": 0},
        "output_tokens": stats.tokens,
        "output_tokens_details": {"reasoning_tokens": thought_tokens},
        "total_tokens": stats.prompt_tokens + stats.tokens,
    }
