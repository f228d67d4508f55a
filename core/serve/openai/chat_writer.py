"""ChatWriter: an answer as OpenAI's chat completion, in one piece or in chunks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

from core.events import Finished, Token
from core.serve.errors import ApiError
from core.serve.http.responses import event
from core.serve.openai.chat_request import ChatRequest
from core.serve.openai.figures import effective, origins, timings, usage
from core.serve.openai.logprobs import Logprobs
from core.serve.tools.pieces import CallArguments, CallBegun, Piece, Pieces, Said

DONE = b"data: [DONE]\n\n"
# One that was cancelled was cut off, as one that was too long.
REASONS = {"stop": "stop", "length": "length", "cancelled": "length"}


class ChatWriter:
    """Of one answer to `asked`, under the id `request`, by the model called `model`, in `pieces`."""

    def __init__(self, asked: ChatRequest, request: str, model: str, pieces: Pieces) -> None:
        self._asked = asked
        self._pieces = pieces
        self._head = {
            "id": request,
            "object": "chat.completion.chunk" if asked.stream else "chat.completion",
            "created": int(time.time()),
            "model": model,
        }
        self._usage: dict[str, Any] = {"usage": None} if asked.includes_usage else {}
        self._logprobs = Logprobs()

    def opening(self) -> bytes:
        """The first chunk: who speaks."""
        return self._chunk({"role": "assistant", "content": ""})

    def written(self, tokens: Sequence[Token]) -> bytes:
        """Chunks of what is new; nothing where nothing is."""
        deltas = self._deltas(self._pieces.add("".join(token.text for token in tokens)))
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
        out = b"".join(self._chunk(delta) for delta in self._deltas(self._pieces.end()))
        figures: dict[str, Any] = {"timings": timings(stats), "draftlight": self._effective(finished)}
        reason = self._reason(finished)
        if not self._asked.includes_usage:
            return out + self._chunk({}, reason, more=figures) + DONE
        last: dict[str, Any] = {**self._head, "choices": [], "usage": usage(stats), **figures}
        return out + self._chunk({}, reason) + event(last) + DONE

    def failed(self, error: ApiError) -> bytes:
        """What went wrong in the middle of it."""
        return event(error.body())

    def whole(self, tokens: Sequence[Token], finished: Finished) -> dict[str, Any]:
        """All of it in one piece."""
        text = "".join(token.text for token in tokens)
        said, calls = gathered([*self._pieces.add(text), *self._pieces.end()])
        message: dict[str, Any] = {"role": "assistant", "content": said, "refusal": None}
        if calls:
            message |= {"content": said or None, "tool_calls": calls}
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
            "usage": usage(finished.stats),
            "timings": timings(finished.stats),
            "draftlight": own,
        }

    def _effective(self, finished: Finished) -> dict[str, Any]:
        return effective(
            finished,
            unlimited=self._asked.most_tokens is None,
            loose_tools=self._asked.tool_use.is_loose,
        )

    def _reason(self, finished: Finished) -> str:
        if self._pieces.calls and finished.reason == "stop":
            return "tool_calls"
        return REASONS[finished.reason]

    @staticmethod
    def _deltas(pieces: Iterable[Piece]) -> list[dict[str, Any]]:
        return [_delta(piece) for piece in pieces]

    def _chunk(
        self,
        delta: dict[str, Any],
        reason: str | None = None,
        logprobs: dict[str, Any] | None = None,
        more: dict[str, Any] | None = None,
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
        return event({**self._head, "choices": [choice], **self._usage, **(more or {})})


def _delta(piece: Piece) -> dict[str, Any]:
    match piece:
        case Said(text):
            return {"content": text}
        case CallBegun(index, call, name):
            function = {"name": name, "arguments": ""}
            return {"tool_calls": [{"index": index, "id": call, "type": "function", "function": function}]}
        case CallArguments(index, text):
            return {"tool_calls": [{"index": index, "function": {"arguments": text}}]}


def gathered(pieces: Iterable[Piece]) -> tuple[str, list[dict[str, Any]]]:
    """All that was said, and all that was called, as a whole answer has them."""
    said, calls = "", []
    for piece in pieces:
        match piece:
            case Said(text):
                said += text
            case CallBegun(_, call, name):
                function = {"name": name, "arguments": ""}
                calls.append({"id": call, "type": "function", "function": function})
            case CallArguments(index, text):
                calls[index]["function"]["arguments"] += text  # type: ignore[index]
    return said, calls
