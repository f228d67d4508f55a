"""ChatWriter: an answer as OpenAI's chat completion, in one piece or in chunks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from core.events import Finished, Token
from core.serve.errors import ApiError
from core.serve.http.responses import event
from core.serve.openai.chat_request import ChatRequest
from core.serve.openai.figures import effective, origins, timings, usage
from core.serve.openai.logprobs import Logprobs

DONE = b"data: [DONE]\n\n"
# One that was cancelled was cut off, as one that was too long.
REASONS = {"stop": "stop", "length": "length", "cancelled": "length"}


class ChatWriter:
    """Of one answer to `asked`, under the id `request`, by the model called `model`."""

    def __init__(self, asked: ChatRequest, request: str, model: str) -> None:
        self._asked = asked
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
        """A chunk of what is new; nothing where nothing is."""
        text = "".join(token.text for token in tokens)
        logprobs = self._logprobs.of(tokens)
        told = self._asked.draftlight.tokens
        if not text and not logprobs and not told:
            return b""
        more: dict[str, Any] = {"draftlight": {"tokens": origins(tokens)}} if told else {}
        return self._chunk({"content": text} if text else {}, None, logprobs, more)

    def finished(self, finished: Finished) -> bytes:
        """The last chunks, and the end."""
        stats = finished.stats
        figures: dict[str, Any] = {"timings": timings(stats), "draftlight": self._effective(finished)}
        if not self._asked.includes_usage:
            return self._chunk({}, REASONS[finished.reason], more=figures) + DONE
        last: dict[str, Any] = {**self._head, "choices": [], "usage": usage(stats), **figures}
        return self._chunk({}, REASONS[finished.reason]) + event(last) + DONE

    def failed(self, error: ApiError) -> bytes:
        """What went wrong in the middle of it."""
        return event(error.body())

    def whole(self, tokens: Sequence[Token], finished: Finished) -> dict[str, Any]:
        """All of it in one piece."""
        message = {
            "role": "assistant",
            "content": "".join(token.text for token in tokens),
            "refusal": None,
        }
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
                    "finish_reason": REASONS[finished.reason],
                }
            ],
            "usage": usage(finished.stats),
            "timings": timings(finished.stats),
            "draftlight": own,
        }

    def _effective(self, finished: Finished) -> dict[str, Any]:
        return effective(finished, unlimited=self._asked.most_tokens is None)

    def _chunk(
        self,
        delta: dict[str, Any],
        reason: str | None = None,
        logprobs: dict[str, Any] | None = None,
        more: dict[str, Any] | None = None,
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
        return event({**self._head, "choices": [choice], **self._usage, **(more or {})})
