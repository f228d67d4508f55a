"""`POST /v1/messages` and `/v1/messages/count_tokens`: Anthropic's requests, blocks and events.

One of their messages may be several of ours: the result of a call is a separate turn. A document in plain
text is an attachment, so that it can be read sparsely. The chat template decides which thoughts of earlier
answers the model reads. The rules for unsupported fields are those of chat completions; OpenAI's sampling
fields are accepted. A stream begins as soon as the prompt is being read, because its first event has the
prompt's length; then pings keep the connection alive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Literal, TypeVar

import msgspec
from msgspec import Struct, field

from core.answer_format import CallArguments, CallBegun, Delta, Text, Thought
from core.events import (
    Attachment,
    Change,
    Event,
    Finished,
    Generate,
    Grammar,
    Message,
    ModelInfo,
    PrefillProgress,
    Stats,
    Token,
    ToolCall,
)
from core.serve.answering import (
    Writer,
    commented,
    effective,
    origins,
    timings,
)
from core.serve.fields import Adapter, Kind, change, convert_fields, effort_changes, question_at, refused
from core.serve.http import ApiError, error_body, event, field_error
from core.serve.request import AnswerRequest, stops_of
from core.serve.tools import CallRules, Written
from core.settings.request import ThinkingMode


class TextBlock(Struct, tag_field="type", tag="text"):
    """Text; the citations of earlier answers are ignored."""

    text: str
    citations: Any = None


class PlainText(Struct, tag_field="type", tag="text"):
    """A document's plain text."""

    data: str
    media_type: Literal["text/plain"] = "text/plain"


class InBlocks(Struct, tag_field="type", tag="content"):
    """A document's text in blocks."""

    content: str | list[TextBlock]


class Citations(Struct):
    """Whether an answer is to say where in the document it found something."""

    enabled: bool = False


class DocumentBlock(Struct, tag_field="type", tag="document"):
    """A document attached to a message."""

    source: PlainText | InBlocks
    title: str | None = None
    context: str | None = None
    citations: Citations | None = None


class CallBlock(Struct, tag_field="type", tag="tool_use"):
    """A call of an earlier answer."""

    id: str
    name: str
    input: dict[str, Any]


class ResultBlock(Struct, tag_field="type", tag="tool_result"):
    """The result of a call."""

    tool_use_id: str
    content: str | list[TextBlock] | None = None
    is_error: bool | None = None


class ThoughtBlock(Struct, tag_field="type", tag="thinking"):
    """The thought before an earlier answer."""

    thinking: str
    signature: str = ""


class HiddenThoughtBlock(Struct, tag_field="type", tag="redacted_thinking"):
    """An encrypted thought before an earlier answer."""

    data: str


Block = TextBlock | DocumentBlock | CallBlock | ResultBlock | ThoughtBlock | HiddenThoughtBlock
BLOCKS = (TextBlock, DocumentBlock, CallBlock, ResultBlock, ThoughtBlock, HiddenThoughtBlock)


class GivenMessage(Struct):
    """A message."""

    role: Literal["user", "assistant", "system"]
    content: str | list[Block] = ""


def text_of(content: str | Sequence[TextBlock] | None) -> str:
    """The whole text; each block is a line."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(block.text for block in content)


def messages_of(system: str | list[TextBlock] | None, given: Sequence[GivenMessage]) -> tuple[Message, ...]:
    """The messages for the worker. Raises `ApiError` 400 that names the path of an unsupported part."""
    if not given:
        raise field_error("messages", "“messages” is empty; it accepts at least one message.")
    told = [Message("system", said)] if (said := text_of(system)) else []
    return (*told, *(one for place, each in enumerate(given) for one in _turns(f"messages[{place}]", each)))


def _turns(place: str, given: GivenMessage) -> Iterator[Message]:
    blocks: list[Block] = [TextBlock(given.content)] if isinstance(given.content, str) else given.content
    if not blocks and given.role != "assistant":
        raise field_error(f"{place}.content", f"“{place}.content” is empty.")
    allowed = {
        "system": (TextBlock,),
        "user": (TextBlock, DocumentBlock, ResultBlock),
        "assistant": (TextBlock, CallBlock, ThoughtBlock, HiddenThoughtBlock),
    }[given.role]
    texts: list[str] = []
    attachments: list[Attachment] = []
    calls: list[ToolCall] = []
    thoughts: list[str] = []
    for number, block in enumerate(blocks):
        where = f"{place}.content[{number}]"
        if not isinstance(block, allowed):
            raise field_error(
                where, f"“{where}” is of a type that a message of the role “{given.role}” cannot have."
            )
        match block:
            case TextBlock(text):
                texts.append(text)
            case DocumentBlock():
                attachments.append(_attachment(where, block, len(attachments) + 1))
            case CallBlock(call, name, arguments):
                calls.append(ToolCall(call, name, msgspec.json.encode(arguments).decode()))
            case ThoughtBlock(thought):
                thoughts.append(thought)
            case ResultBlock(call, content):
                if texts or attachments:
                    yield Message(given.role, "\n".join(texts), tuple(attachments))
                    texts, attachments = [], []
                said = text_of(content)
                yield Message("tool", f"Error: {said}" if block.is_error else said, tool_call_id=call)
    if texts or attachments or calls:
        thought = "\n\n".join(thoughts)
        yield Message(given.role, "\n".join(texts), tuple(attachments), tuple(calls), thought=thought)


def _attachment(where: str, block: DocumentBlock, number: int) -> Attachment:
    if block.citations is not None and block.citations.enabled:
        raise refused(f"{where}.citations", "answers do not cite; it accepts “enabled”: false")
    text = block.source.data if isinstance(block.source, PlainText) else text_of(block.source.content)
    head = f"{block.context}\n\n" if block.context else ""
    return Attachment(block.title or f"Document {number}", head + text)


# The user, location, billing, caching and how calls are streamed: these do not change the answer.
IGNORED = frozenset(
    {
        "betas",
        "billing_policy",
        "cache_control",
        "caller",
        "diagnostics",
        "eager_input_streaming",
        "fallback_credit_token",
        "fallbacks",
        "inference_geo",
        "metadata",
        "service_tier",
        "speed",
        "user_profile_id",
        "workspace_id",
    }
)
_THREAD = "this server stores no threads; send the whole conversation without it"
UNSUPPORTED = {
    "container": "no tool of the server runs",
    "mcp_servers": "the server connects to no other server; declare the tools in “tools”",
}
_TYPES = tuple(str(kind.__struct_config__.tag) for kind in BLOCKS)
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

    messages: list[GivenMessage]
    system: str | list[TextBlock] | None = None
    thinking: Disabled | Adaptive | Enabled | None = None
    output_config: OutputConfig = field(default_factory=OutputConfig)
    output_format: Format | None = None
    context_management: ContextManagement | None = None

    def conversation(self) -> tuple[Message, ...]:
        """`system` and the messages."""
        return messages_of(self.system, self.messages)

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
    adapter = Adapter()
    fields = adapter.tools(fields, typed=False)
    if "system" in fields:
        fields |= {"system": adapter.system("system", fields["system"])}
    if isinstance(messages := fields.get("messages"), list):
        question = question_at(messages, _kind)
        fields |= {
            "messages": [
                _adapted(adapter, f"messages[{number}].content", message, number == question)
                for number, message in enumerate(messages)
            ]
        }
    return convert_fields(fields, kind, IGNORED, UNSUPPORTED, adapter.changes)


def _kind(message: dict[str, Any]) -> Kind:
    content, role = message.get("content"), message.get("role")
    if role == "user" and isinstance(content, list):
        return "result" if any(map(_is_result, content)) else "user"
    return role if role in ("system", "user") else "other"


def _is_result(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_result"


def _adapted(adapter: Adapter, path: str, message: Any, is_question: bool) -> Any:
    """The message with texts in place of the blocks that the model cannot read, in results of calls, too."""
    if not isinstance(message, dict):
        return message
    if message.get("role") == "developer":
        message = {**message, "role": "system"}
    content = message.get("content")
    if isinstance(content, list):
        content = [
            _adapted_block(adapter, f"{path}[{number}]", block) for number, block in enumerate(content)
        ]
    content = adapter.content(path, content, _TYPES, text_type="text", is_question=is_question)
    if message.get("role") == "system":
        content = adapter.system(path, content)
    return {**message, "content": content}


def _adapted_block(adapter: Adapter, path: str, block: Any) -> Any:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "tool_result":
        content = block.get("content")
        if isinstance(content, list):
            content = [_text_of_document(one) for one in content]
        return {**block, "content": adapter.result(f"{path}.content", content, ("text",), text_type="text")}
    if kind == "tool_use" and not isinstance(block.get("input"), dict):
        arguments = adapter.arguments(f"{path}.input", block.get("input"))
        return {**block, "input": _object(arguments) if isinstance(arguments, str) else arguments}
    if kind == "document" and _source_type(block) not in ("text", "content", None):
        return {**block, "type": "file"}
    return _text_of_document(block) if kind in ("search_result", "compaction") else block


def _source_type(block: dict[str, Any]) -> Any:
    source = block.get("source")
    return source.get("type") if isinstance(source, dict) else None


def _text_of_document(block: Any) -> Any:
    """A search result, a document in a result, or the summary of earlier turns as text; others unchanged."""
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "search_result":
        content, head = block.get("content"), (block.get("title"), block.get("source"))
    elif kind == "document" and _source_type(block) in ("text", "content"):
        content = block["source"].get("data") or block["source"].get("content")
        head = (block.get("title"), block.get("context"))
    elif kind == "compaction":
        content, head = block.get("content"), (None, None)
    else:
        return block
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [*head, *(part.get("text") for part in parts if isinstance(part, dict))]
    return {"type": "text", "text": "\n".join(text for text in texts if isinstance(text, str) and text)}


class MessageWriter(Writer):
    """Writes one answer to `asked`, whose command is `generate`, by the model called `model`.

    `rules` say how its calls are read.
    """

    def __init__(self, asked: MessageRequest, generate: Generate, model: str, rules: CallRules) -> None:
        self._asked = asked
        self._written = Written(rules, streams=asked.stream)
        self._head: dict[str, Any] = {
            "id": generate.request,
            "type": "message",
            "role": "assistant",
            "model": model,
        }
        self._usage = _usage(Stats())
        self._begun = False
        self._content: list[dict[str, Any]] = []
        self._open = ""  # kind of the block that is being written
        self._arguments = ""  # of the open call

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
            **self._figures(finished),
        }
        return out + _named(delta) + _named({"type": "message_stop"})

    def failed(self, error: ApiError) -> bytes:
        """The event of an error after the opening."""
        return _named(error_body(error))

    def whole(self, tokens: Sequence[Token], finished: Finished) -> dict[str, Any]:
        """The body of an answer that is not streamed."""
        self._told([*self._written.add(tokens), *self._written.end()])
        self._closed()
        figures = self._figures(finished)
        if self._asked.draftlight.tokens:
            figures["draftlight"]["tokens"] = origins(tokens)
        return {
            **self._head,
            "content": self._content,
            **self._end(finished),
            "usage": _usage(finished.stats),
            **figures,
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

    def _figures(self, finished: Finished) -> dict[str, Any]:
        changes = (*self._asked.changes, *self._written.changes)
        own = effective(finished, unlimited=False, changes=changes)
        if isinstance(self._asked.thinking, Enabled) and self._asked.thinking.budget_tokens is not None:
            asked = str(self._asked.thinking.budget_tokens)
            why = "thoughts are not counted apart; “max_tokens” bounds both"
            change = {"setting": "thinking.budget_tokens", "asked": asked, "used": "none", "reason": why}
            own["changes"].append(change)
        return {"timings": timings(finished.stats), "draftlight": own}

    def _told(self, pieces: Iterable[Delta]) -> bytes:
        out = b""
        for piece in pieces:
            match piece:
                case Thought(text):
                    out += self._in({"type": "thinking", "thinking": "", "signature": ""})
                    if self._asked.shows_thoughts:
                        self._content[-1]["thinking"] += text
                        out += self._delta({"type": "thinking_delta", "thinking": text})
                case Text(text):
                    out += self._in({"type": "text", "text": ""})
                    self._content[-1]["text"] += text
                    out += self._delta({"type": "text_delta", "text": text})
                case CallBegun(_, name, call):
                    out += self._closed()
                    # The form of Anthropic's ids.
                    id = f"toolu_{call.removeprefix('call_')}"
                    out += self._in({"type": "tool_use", "id": id, "name": name, "input": {}})
                case CallArguments(_, text):
                    self._arguments += text
                    out += self._delta({"type": "input_json_delta", "partial_json": text})
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
        elif self._open == "tool_use":
            self._content[-1]["input"], self._arguments = _object(self._arguments), ""
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
