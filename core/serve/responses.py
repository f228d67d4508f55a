"""`POST /v1/responses`: answers as OpenAI's responses, whole or as events, and the memory of recent ones.

An item begins, grows and is done before the next one begins. Text after a call is a separate message, and
so is a thought (`reasoning_text`).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, Literal

import msgspec
from msgspec import Struct
from starlette.types import Receive, Scope, Send

from core.answer_format import CallArguments, CallBegun, Delta, Text, Thought
from core.events import (
    Change,
    Event,
    Finished,
    Generate,
    PrefillProgress,
    Stats,
    Token,
)
from core.serve.answering import (
    Logprobs,
    Writer,
    WriterOf,
    commented,
    effective,
    origins,
    timings,
)
from core.serve.conversation import completed
from core.serve.fields import change
from core.serve.http import TOO_LONG, ApiError, event, field_error, send_json
from core.serve.request import AnswerRequest
from core.serve.response_request import ResponseRequest, response_request
from core.serve.tools import CallRules, Choice, GivenTool, Written

Told = tuple[str, dict[str, Any]]


class Output:
    """`items`: all items until now. Events are pairs (name without `response.`, fields).

    `summarizes`: a thought is its item's summary, which clients that request summaries show instead of the
    text of reasoning; the text is the same.
    """

    def __init__(self, custom_tools: Collection[str] = (), *, summarizes: bool = False) -> None:
        self._custom_tools = custom_tools
        self._summarizes = summarizes
        self._arguments = ""  # of the custom tool's call that is open
        self.items: list[dict[str, Any]] = []
        self._logprobs: list[dict[str, Any]] = []
        self._open = False

    def add(self, pieces: Iterable[Delta], logprobs: list[dict[str, Any]]) -> Iterator[Told]:
        """Add pieces. `logprobs` of their tokens are sent with the next text of the answer."""
        self._logprobs += logprobs
        piece: Delta | None = None
        for piece in pieces:
            match piece:
                case Thought(text):
                    yield from self._text("reasoning")
                    if self._summarizes:
                        self.items[-1]["summary"][0]["text"] += text
                        yield self._of("reasoning_summary_text.delta", summary_index=0, delta=text)
                    else:
                        self.items[-1]["content"][0]["text"] += text
                        yield self._of("reasoning_text.delta", content_index=0, delta=text)
                case Text(text):
                    yield from self._text("message")
                    part = self.items[-1]["content"][0]
                    part["text"] += text
                    told, self._logprobs = self._logprobs, []
                    part["logprobs"] += told
                    yield self._of("output_text.delta", content_index=0, delta=text, logprobs=told)
                case CallBegun(_, name, call) if name in self._custom_tools:
                    yield from self.close()
                    item = {"id": _id("ctc"), "type": "custom_tool_call", "status": "in_progress"}
                    yield from self._begin(item | {"call_id": call, "name": name, "input": ""})
                case CallArguments(_, text) if self.items[-1]["type"] == "custom_tool_call":
                    self._arguments += text
                case CallBegun(_, name, call):
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
                case CallArguments(_, text):
                    self.items[-1]["arguments"] += text
                    yield self._of("function_call_arguments.delta", delta=text)
        if piece is not None:
            # Thoughts and calls have no logprobs.
            self._logprobs = []

    def close(self, status: str = "completed") -> Iterator[Told]:
        """Finish the open item, if there is one."""
        if not self._open:
            return
        self._open = False
        item = self.items[-1]
        item["status"] = status
        if item["type"] == "custom_tool_call":
            text, self._arguments = _input_of(self._arguments), ""
            item["input"] = text
            yield self._of("custom_tool_call_input.delta", delta=text)
            yield self._of("custom_tool_call_input.done", input=text)
        elif item["type"] == "function_call":
            arguments, name = item["arguments"], item["name"]
            yield self._of("function_call_arguments.done", arguments=arguments, name=name)
        elif item.get("summary"):
            part = item["summary"][0]
            yield self._of("reasoning_summary_text.done", summary_index=0, text=part["text"])
            yield self._of("reasoning_summary_part.done", summary_index=0, part=part)
        else:
            part = item["content"][0]
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


class ResponseWriter(Writer):
    """Writes one answer to `asked`, which became `generate`, by the model called `model`.

    `rules` say how its calls are read. `keep` gets the response before its end is sent.
    """

    streamed_errors: ClassVar[frozenset[str]] = frozenset({TOO_LONG})

    def __init__(
        self,
        asked: ResponseRequest,
        generate: Generate,
        model: str,
        rules: CallRules,
        keep: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        self._asked = asked
        self._keep = keep
        self._written = Written(rules)
        self._output = Output(asked.custom_tools, summarizes=asked.summarizes)
        self._logprobs = Logprobs()
        self._events = 0
        self._begun = False
        self._alive_s = time.monotonic()
        sampling = generate.settings.sampling
        self._head: dict[str, Any] = {
            "id": generate.request,
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
            "model": model,
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
            found = self._logprobs.of(some)
            told = found["content"] if found else []
            logprobs = [entry | {"bytes": entry["bytes"] or []} for entry in told]
            yield from self._output.add(self._written.add(some), logprobs)

    def _ended(self, finished: Finished) -> Iterable[Told]:
        yield from self._output.add(self._written.end(), [])
        yield from self._output.close(_status(finished))

    def _done(self, finished: Finished) -> dict[str, Any]:
        status = _status(finished)
        own = effective(
            finished,
            unlimited=self._asked.most_tokens is None,
            changes=(*self._asked.changes, *self._written.changes),
        )
        response = self._head | {
            "status": status,
            "completed_at": int(time.time()) if status == "completed" else None,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "output": self._output.items,
            "usage": _usage(finished.stats, self._written.thought_tokens),
            "timings": timings(finished.stats),
            "draftlight": own,
        }
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


_MOST_RESPONSES = 64
_MOST_BYTES = 32 * 2**20


class _Kept(Struct, frozen=True):
    items: tuple[Any, ...]
    body: bytes
    size: int


class ResponseMemory:
    """Up to `most` responses, their items and input, and `most_bytes`; the oldest are dropped first."""

    def __init__(self, most: int = _MOST_RESPONSES, most_bytes: int = _MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._kept: dict[str, _Kept] = {}
        self._bytes = 0

    def keep(self, given: Any, response: dict[str, Any]) -> None:
        """Keep a response and its `input`."""
        encoded = msgspec.json.encode((*_items(given), *response["output"]))
        body = msgspec.json.encode(response)
        self._kept[response["id"]] = _Kept(
            tuple(msgspec.json.decode(encoded)), body, len(encoded) + len(body)
        )
        self._bytes += len(encoded) + len(body)
        while self._kept and (len(self._kept) > self._most or self._bytes > self._most_bytes):
            self.forget(next(iter(self._kept)))

    def body(self, response: str) -> bytes | None:
        """The response as it was sent, as JSON."""
        kept = self._kept.get(response)
        return kept.body if kept else None

    def forget(self, response: str) -> None:
        """Drop a response."""
        self._bytes -= self._kept.pop(response).size

    def requested(self, fields: dict[str, Any]) -> ResponseRequest:
        """The request with the items that it refers to. Raises `ApiError` 400."""
        changes: list[Change] = []
        asked = response_request(self.resolved(fields, changes))
        asked.changes.extend(changes)
        return asked

    def read(self, fields: dict[str, Any]) -> tuple[AnswerRequest, WriterOf]:
        """The request, and the writer of its answer, which is kept. Raises `ApiError` 400."""
        asked = self.requested(fields)

        def keep(response: dict[str, Any]) -> None:
            if asked.store:
                self.keep(self.resolved(fields, [])["input"], response)

        return asked, partial(ResponseWriter, asked, keep=keep)

    def resolved(self, fields: dict[str, Any], changes: list[Change]) -> dict[str, Any]:
        """`fields` with the items that they refer to in `input`.

        References to unknown items are left out and appended to `changes`: AI SDK refers to every earlier
        answer, so that a restart of the server would end all conversations. Raises `ApiError` 400 for an
        unknown response, without which the conversation is missing.
        """
        before = fields.get("previous_response_id")
        given = fields.get("input")
        if before is None and not _refers(given):
            return fields
        earlier: tuple[Any, ...] = ()
        if before is not None:
            if not isinstance(before, str) or before not in self._kept:
                raise self._unknown("previous_response_id", "previous_response_not_found")
            earlier = self._kept[before].items
        items = []
        for number, item in enumerate(_items(given)):
            if not _is_reference(item):
                items.append(item)
            elif (found := self._item(item)) is None:
                reason = f"it is not among the last {self._most} responses that this server has in memory"
                changes.append(change(f"input[{number}]", str(item.get("id")), "left out", reason))
            else:
                items.append(found)
        return fields | {"input": [*earlier, *items]}

    def _item(self, reference: Any) -> Any:
        wanted = reference.get("id")
        for kept in reversed(self._kept.values()):
            for one in kept.items:
                if wanted and isinstance(one, dict) and one.get("id") == wanted:
                    return one
        return None

    def _unknown(self, name: str, code: str) -> Exception:
        return field_error(
            name,
            f"“{name}” is not in this server's memory, which has the last {self._most} responses since its "
            "start. Send the items themselves.",
            code,
        )


def _items(given: Any) -> list[Any]:
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    if not isinstance(given, list | None):
        raise field_error("input", "“input” accepts a text or a list of items.")
    return given or []


def _is_reference(item: Any) -> bool:
    # OpenAI's clients may leave the type out.
    return isinstance(item, dict) and (item.get("type") == "item_reference" or set(item) == {"id"})


def _refers(given: Any) -> bool:
    return isinstance(given, list) and any(map(_is_reference, given))


async def kept_response(memory: ResponseMemory, scope: Scope, receive: Receive, send: Send) -> None:
    """One response of the memory: `GET` sends it, `DELETE` drops it. Raises `ApiError` 404."""
    response = scope["path_params"]["id"]
    body = memory.body(response)
    if body is None:
        raise ApiError(404, f"No response “{response[:80]}” is in this server's memory.", code="not_found")
    if scope["method"] == "DELETE":
        memory.forget(response)
        await send_json(send, {"id": response, "object": "response", "deleted": True})
    else:
        await send_json(send, body)
