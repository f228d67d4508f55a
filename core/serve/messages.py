"""`POST /v1/messages` and `/v1/messages/count_tokens`: Anthropic's requests, blocks and events.

The rules for unsupported fields are those of chat completions; OpenAI's sampling
fields are accepted. A stream begins as soon as the prompt is being read, because its first event has the
prompt's length; then pings keep the connection alive.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, ClassVar, Literal, TypeVar

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
from core.serve.answering import AnswerWriter, Prepared, WriterOf, commented, origins
from core.serve.conversation import ConversationReader
from core.serve.fields import change, convert_fields, effort_changes, refused, with_tools
from core.serve.http import ApiError, error_body, event
from core.serve.request import AnswerRequest, stops_of
from core.settings.request import ThinkingMode
from core.tools.calls import Piece, TextDelta, ThoughtDelta

_THREAD = "this server stores no threads; send the whole conversation without it"
UNSUPPORTED = {
    "container": "no tool of the server runs",
    "mcp_servers": "the server connects to no other server; declare the tools in “tools”",
}
_CLEARS_THOUGHTS = "clear_thinking_"


Display = Literal["summarized", "omitted"]


class Disabled(Struct, tag_field="type", tag="disabled"):
    """The model does not think first."""


class Adaptive(Struct, tag_field="type", tag="adaptive"):
    """The model decides whether to think. Thoughts are shown whole or omitted."""

    display: Display | None = None


class Enabled(Struct, tag_field="type", tag="enabled"):
    """The model thinks first, within a number of tokens."""

    budget_tokens: int | None = None
    display: Display | None = None


class Format(Struct):
    """The form of the answer."""

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


class PromptRequest(AnswerRequest, kw_only=True):
    """The fields that a message and a count of its tokens share."""

    schema_field: ClassVar[str] = "input_schema"

    messages: tuple[Message, ...]
    thinking: Disabled | Adaptive | Enabled | None = None
    output_config: OutputConfig = field(default_factory=OutputConfig)
    output_format: Format | None = None
    context_management: ContextManagement | None = None

    def conversation(self) -> tuple[Message, ...]:
        """`system` and the messages."""
        return self.messages

    @property
    def shows_thoughts(self) -> bool:
        """Whether thinking blocks have their text; otherwise they are empty."""
        return not isinstance(self.thinking, Adaptive | Enabled) or self.thinking.display != "omitted"

    def _values(self, context_tokens: int) -> Iterable[tuple[str, str, Any]]:
        if self.thinking is not None:
            kinds: dict[type, ThinkingMode] = {Disabled: "off", Adaptive: "auto", Enabled: "on"}
            yield "thinking", "chat.thinking", kinds[type(self.thinking)]
        yield from super()._values(context_tokens)

    def unsupported(self, model: ModelInfo) -> Iterable[Change]:
        """Thinking, effort, and edits of the conversation."""
        if isinstance(self.thinking, Enabled):
            yield from effort_changes("thinking", "enabled", model)
        if self.output_config.effort not in (None, "high"):
            reason = "the loaded model has no levels of effort"
            yield change("output_config.effort", self.output_config.effort, "high", reason)
        for number, edit in enumerate(self.context_management.edits if self.context_management else ()):
            if not edit.type.startswith(_CLEARS_THOUGHTS):
                reason = "the model reads the whole conversation"
                yield change(f"context_management.edits[{number}]", edit.type, "none", reason)

    def answer_grammar(self) -> tuple[str, Grammar] | None:
        """By `output_config.format`, or `output_format`, its older name."""
        asked = self.output_config.format or self.output_format
        if asked is None:
            return None
        name = "output_config.format" if self.output_config.format else "output_format"
        return name, Grammar("json_schema", msgspec.json.encode(asked.schema).decode())


_T = TypeVar("_T", bound=PromptRequest)


class MessageRequest(PromptRequest, kw_only=True):
    """A request for a message."""

    max_tokens: int
    stop_sequences: list[str] = field(default_factory=list)

    @property
    def most_tokens(self) -> tuple[str, int]:
        """The required field `max_tokens`."""
        return "max_tokens", self.max_tokens

    def given_stops(self) -> tuple[str, ...]:
        """Raises `ApiError` 400."""
        return (*stops_of("stop_sequences", tuple(self.stop_sequences)), *super().given_stops())


def read_message(fields: dict[str, Any]) -> tuple[AnswerRequest, WriterOf]:
    """The request from a decoded body, and the writer of its answer. Raises `ApiError` 400."""
    asked = message_request(fields)
    return asked, partial(MessageWriter, asked)


def message_request(fields: dict[str, Any]) -> MessageRequest:
    """The request from a decoded body. Raises `ApiError` 400."""
    return _converted(fields, MessageRequest)


def count_request(fields: dict[str, Any]) -> PromptRequest:
    """The request from a decoded body. Raises `ApiError` 400."""
    return _converted(fields, PromptRequest)


def _converted(fields: dict[str, Any], kind: type[_T]) -> _T:
    if fields.get("thread") is not None:
        error = refused("thread", _THREAD)
        # With these details the SDKs send the whole conversation.
        error.details = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
        raise error
    conversation = ConversationReader("messages")
    fields = with_tools(fields, conversation.changes, typed=False)
    conversation.system("system", fields.pop("system", None))
    fields = fields | {"messages": conversation.read(fields.get("messages"))}
    asked = convert_fields(fields, kind, UNSUPPORTED, conversation.changes, conversation.unknown)
    asked.images.extend(conversation.images)
    return asked


class MessageWriter(AnswerWriter):
    """Writes an answer as Anthropic's message."""

    _asked: MessageRequest

    def __init__(self, asked: MessageRequest, made: Prepared) -> None:
        super().__init__(asked, made)
        self._head: dict[str, Any] = {
            "id": made.generate.request,
            "type": "message",
            "role": "assistant",
            "model": made.model,
        }
        self._usage = _usage(Stats())
        self._begun = False
        self._content: list[dict[str, Any]] = []
        self._open = ""  # kind of the block that is being written

    def alive(self, happening: Event | None) -> bytes:
        """A comment with the progress; pings too once the prompt is being read."""
        said = commented(happening)
        if isinstance(happening, PrefillProgress) and not self._begun:
            self._usage = _usage(_begun(happening))
            said += self.opening()
        return said + (_named({"type": "ping"}) if self._begun else b"")

    def opening(self) -> bytes:
        """The first event; nothing if it was sent while the prompt was read."""
        if self._begun:
            return b""
        self._begun = True
        empty: dict[str, Any] = {
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": self._usage,
        }
        return _named({"type": "message_start", "message": self._head | empty})

    def written(self, tokens: Sequence[Token]) -> bytes:
        """Events of the new tokens; empty without new text."""
        out = self._told(self._written.add(tokens))
        if self._asked.draftlight.tokens:
            # Clients of Anthropic's skip events that they do not know.
            out += _named({"type": "draftlight", "tokens": origins(tokens)})
        return out

    def finished(self, finished: Finished) -> bytes:
        """The last events."""
        out = self._told(self._written.end()) + self._closed()
        delta = {
            "type": "message_delta",
            "delta": self._end(finished),
            "usage": _usage(finished.stats),
            **self.figures(finished),
        }
        return out + _named(delta) + _named({"type": "message_stop"})

    def failed(self, error: ApiError) -> bytes:
        """The event of an error after the opening."""
        return _named(error_body(error))

    def whole(self, tokens: Sequence[Token], finished: Finished) -> dict[str, Any]:
        """The body of an answer that is not streamed."""
        self._told([*self._written.add(tokens), *self._written.end()])
        self._closed()
        return {
            **self._head,
            "content": self._content,
            **self._end(finished),
            "usage": _usage(finished.stats),
            **self.figures(finished, tokens),
        }

    def _end(self, finished: Finished) -> dict[str, Any]:
        """The reason why the answer ended."""
        given = finished.stopped_by in self._asked.stop_sequences
        if finished.reason != "stop":
            reason = "max_tokens"
        elif given and finished.stopped_by:
            reason = "stop_sequence"
        else:
            reason = "tool_use" if self._written.calls else "end_turn"
        return {
            "stop_reason": reason,
            "stop_sequence": finished.stopped_by if reason == "stop_sequence" else None,
        }

    def figures(self, finished: Finished, tokens: Sequence[Token] | None = None) -> dict[str, Any]:
        """With the budget of thoughts, which is a bound of both."""
        told = super().figures(finished, tokens)
        if isinstance(self._asked.thinking, Enabled) and self._asked.thinking.budget_tokens is not None:
            asked = str(self._asked.thinking.budget_tokens)
            why = "thoughts are not counted apart; “max_tokens” bounds both"
            change = {"setting": "thinking.budget_tokens", "asked": asked, "used": "none", "reason": why}
            told["draftlight"]["changes"].append(change)
        return told

    def _told(self, pieces: Iterable[Piece]) -> bytes:
        out = b""
        for piece in pieces:
            match piece:
                case ThoughtDelta(text):
                    out += self._in({"type": "thinking", "thinking": "", "signature": ""})
                    if self._asked.shows_thoughts:
                        self._content[-1]["thinking"] += text
                        out += self._delta({"type": "thinking_delta", "thinking": text})
                case TextDelta(text):
                    out += self._in({"type": "text", "text": ""})
                    self._content[-1]["text"] += text
                    out += self._delta({"type": "text_delta", "text": text})
                case ToolCall(call, name, arguments):
                    out += self._closed()
                    # The form of Anthropic's ids.
                    id = f"toolu_{call.removeprefix('call_')}"
                    out += self._in({"type": "tool_use", "id": id, "name": name, "input": {}})
                    out += self._delta({"type": "input_json_delta", "partial_json": arguments})
                    self._content[-1]["input"] = _object(arguments)
        return out

    def _in(self, block: dict[str, Any]) -> bytes:
        """Begins `block`, unless one of its kind is open."""
        if self._open == block["type"]:
            return b""
        out = self._closed()
        self._open = block["type"]
        self._content.append(block)
        return out + self._of_block("start", content_block=block)

    def _delta(self, delta: dict[str, Any]) -> bytes:
        return self._of_block("delta", delta=delta)

    def _of_block(self, event: str, **fields: Any) -> bytes:
        return _named({"type": f"content_block_{event}", "index": len(self._content) - 1, **fields})

    def _closed(self) -> bytes:
        if not self._open:
            return b""
        out = b""
        if self._open == "thinking":
            # Clients expect it at the end of a thought. Nothing is signed here.
            out = self._delta({"type": "signature_delta", "signature": ""})
        self._open = ""
        return out + self._of_block("stop")


def _named(data: dict[str, Any]) -> bytes:
    return event(data, data["type"])


def _begun(reading: PrefillProgress) -> Stats:
    """The prompt's figures at its first progress; the last event has the final ones."""
    reused = reading.reused_tokens
    scored = reused if reading.phase == "scoring" else 0
    # The last token is read by the first step of the answer.
    return Stats(prompt_tokens=reading.total_tokens + scored + 1, reused_tokens=reused)


def _usage(stats: Stats) -> dict[str, int]:
    """Anthropic's usage object, which counts cached and read tokens separately."""
    return {
        "input_tokens": stats.prompt_tokens - stats.reused_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": stats.reused_tokens,
        "output_tokens": stats.tokens,
    }


def _object(text: str) -> dict[str, Any]:
    """The arguments as an object; empty if they are no object or were cut off."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError:
        return {}
