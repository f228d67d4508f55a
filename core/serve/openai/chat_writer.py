"""ChatWriter: an answer as OpenAI's chat completion, in one piece or in chunks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from core.answer_format import CallArguments, CallBegun, Delta, Text, Thought
from core.events import Finished, Stats, Token
from core.serve.errors import ApiError, FieldNames
from core.serve.http.responses import event
from core.serve.openai.chat_request import ChatRequest
from core.serve.openai.figures import effective, origins, timings, usage
from core.serve.openai.logprobs import Logprobs
from core.serve.written import CallRules, Written

DONE = b"data: [DONE]\n\n"
# One that was cancelled was cut off, as one that was too long.
REASONS = {"stop": "stop", "length": "length", "cancelled": "length"}


class ChatWriter:
    """Writes one answer to `asked`, under the id `request`, by the model called `model`.

    `rules` say how its calls are read.
    """

    streamed_errors: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, asked: ChatRequest, request: str, model: str, rules: CallRules) -> None:
        self._asked = asked
        self._written = Written(rules, asked.schema_check, streams=asked.stream)
        self._head = {
            "id": request,
            "object": "chat.completion.chunk" if asked.stream else "chat.completion",
            "created": int(time.time()),
            "model": model,
        }
        self._usage: dict[str, Any] = {"usage": None} if asked.includes_usage else {}
        self._logprobs = Logprobs()

    @property
    def names(self) -> FieldNames:
        """What its fields are called."""
        return self._asked.names

    def opening(self) -> bytes:
        """The first chunk: who speaks."""
        return self._chunk({"role": "assistant", "content": ""})

    def written(self, tokens: Sequence[Token]) -> bytes:
        """Chunks of what is new; nothing where nothing is."""
        deltas = list(map(_delta, self._written.add(tokens)))
        logprobs = self._logprobs.of(tokens)
        told = self._asked.draftlight.tokens
        if not deltas and (logprobs or told):
            deltas = [{}]
        out = b""
        for delta in deltas:
            # What is about the tokens stands once, in the first chunk of what they gave.
            more: dict[str, Any] = {"draftlight": {"tokens": origins(tokens)}} if told else {}
            out += self._chunk(delta, None, logprobs, more)
            told, logprobs = False, None
        return out

    def finished(self, finished: Finished) -> bytes:
        """The last chunks, and the end."""
        stats = finished.stats
        out = b"".join(self._chunk(_delta(piece)) for piece in self._written.end())
        figures: dict[str, Any] = {"timings": timings(stats), "draftlight": self._effective(finished)}
        reason = self._reason(finished)
        if not self._asked.includes_usage:
            return out + self._chunk({}, reason, more=figures) + DONE
        last: dict[str, Any] = {**self._head, "choices": [], "usage": self._figures(stats), **figures}
        return out + self._chunk({}, reason) + event(last) + DONE

    def failed(self, error: ApiError) -> bytes:
        """What went wrong in the middle of it."""
        return event(error.body())

    def whole(self, tokens: Sequence[Token], finished: Finished) -> dict[str, Any]:
        """All of it in one piece."""
        message = _gathered(map(_delta, [*self._written.add(tokens), *self._written.end()]))
        own = self._effective(finished)
        if self._asked.draftlight.tokens:
            own["tokens"] = origins(tokens)
        return {
            **self._head,
            "choices": [
                {
                    "index": 0,
                    "message": message,
                    "logprobs": self._logprobs.of(tokens),
                    "finish_reason": self._reason(finished),
                }
            ],
            "usage": self._figures(finished.stats),
            "timings": timings(finished.stats),
            "draftlight": own,
        }

    def _effective(self, finished: Finished) -> dict[str, Any]:
        return effective(
            finished,
            unlimited=self._asked.most_tokens is None,
            changes=(*self._asked.changes, *self._written.changes),
        )

    def _reason(self, finished: Finished) -> str:
        if self._written.calls and finished.reason == "stop":
            return "tool_calls"
        return REASONS[finished.reason]

    def _figures(self, stats: Stats) -> dict[str, Any]:
        return usage(stats, self._written.thought_tokens)

    def _chunk(
        self,
        delta: dict[str, Any],
        reason: str | None = None,
        logprobs: dict[str, Any] | None = None,
        more: dict[str, Any] | None = None,
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
        return event({**self._head, "choices": [choice], **self._usage, **(more or {})})


def _delta(piece: Delta) -> dict[str, Any]:
    match piece:
        case Thought(text):
            # The name that local servers share; OpenAI tells no thoughts.
            return {"reasoning_content": text}
        case Text(text):
            return {"content": text}
        case CallBegun(index, name, call):
            function = {"name": name, "arguments": ""}
            return {"tool_calls": [{"index": index, "id": call, "type": "function", "function": function}]}
        case CallArguments(index, text):
            return {"tool_calls": [{"index": index, "function": {"arguments": text}}]}


def _gathered(deltas: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The message that a stream's deltas come to."""
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
