"""ResponseWriter: an answer as OpenAI's response, in one piece or as its events.

Every event has a number, the next one. A stream begins as soon as the prompt is being read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import msgspec

from core.events import Finished, Generate, PrefillProgress, Stats, Token
from core.serve.answering import commented
from core.serve.answers.answer import Happening
from core.serve.errors import TOO_LONG, ApiError, FieldNames
from core.serve.http.responses import event
from core.serve.openai.figures import effective, origins, timings
from core.serve.openai.logprobs import Logprobs
from core.serve.responses.output import Output, Told
from core.serve.responses.response_request import ResponseRequest
from core.serve.written import CallRules, Written

_ALIVE_S = 30.0


class ResponseWriter:
    """Writes one answer to `asked`, which became `generate`, by the model called `model`.

    `rules` say how its calls are read. `keep` gets the output items before the end is sent.
    """

    streamed_errors: ClassVar[frozenset[str]] = frozenset({TOO_LONG})

    def __init__(
        self,
        asked: ResponseRequest,
        generate: Generate,
        model: str,
        rules: CallRules,
        keep: Callable[[Sequence[dict[str, Any]]], None] | None = None,
    ) -> None:
        self._asked = asked
        self._keep = keep
        self._written = Written(rules, asked.schema_check, streams=asked.stream)
        self._output = Output(asked.custom_tools)
        self._logprobs = Logprobs()
        self._events = 0
        self._begun = False
        self._alive_s = time.monotonic()
        sampling = generate.settings.sampling
        self._head: dict[str, Any] = {
            "id": generate.request,
            "object": "response",
            "created_at": int(time.time()),
            "status": "in_progress",
            "background": False,
            "error": None,
            "incomplete_details": None,
            "instructions": asked.instructions,
            "max_output_tokens": asked.max_output_tokens,
            "metadata": {},
            "model": model,
            "output": [],
            "parallel_tool_calls": asked.parallel_tool_calls,
            "previous_response_id": asked.previous_response_id,
            "reasoning": {"effort": asked.reasoning.effort, "summary": None},
            "store": False,
            "temperature": sampling.temperature,
            "text": {"format": msgspec.to_builtins(asked.text.format) or {"type": "text"}},
            "tool_choice": msgspec.to_builtins(asked.tool_choice),
            "tools": msgspec.to_builtins(asked.tools),
            "top_logprobs": asked.top_logprobs or 0,
            "top_p": sampling.top_p,
            "truncation": "disabled",
            "usage": None,
            "user": None,
        }

    @property
    def names(self) -> FieldNames:
        """What its fields are called."""
        return self._asked.names

    def alive(self, happening: Happening | None) -> bytes:
        """A comment that says how far it is; the first events stand before it while the prompt is read.

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
        """Events of what is new; nothing where nothing is."""
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
        """What went wrong, after the first events."""
        code = TOO_LONG if error.code == TOO_LONG else "server_error"
        told = {"code": code, "message": error.message}
        response = self._head | {"status": "failed", "output": self._output.items, "error": told}
        return self.opening() + self._event("failed", {"response": response})

    def whole(self, tokens: Sequence[Token], finished: Finished) -> dict[str, Any]:
        """All of it in one piece."""
        for _ in self._added(tokens):
            pass
        for _ in self._ended(finished):
            pass
        response = self._done(finished)
        if self._asked.draftlight.tokens:
            response["draftlight"]["tokens"] = origins(tokens)
        return response

    def _added(self, tokens: Sequence[Token]) -> Iterable[Told]:
        # One by one where they have logprobs, which stand with the text of their own.
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
        if self._keep is not None:
            self._keep(self._output.items)
        own = effective(
            finished,
            unlimited=self._asked.most_tokens is None,
            changes=(*self._asked.changes, *self._written.changes),
        )
        return self._head | {
            "status": status,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "output": self._output.items,
            "usage": _usage(finished.stats, self._written.thought_tokens),
            "timings": timings(finished.stats),
            "draftlight": own,
        }

    def _told(self, told: Iterable[Told]) -> bytes:
        return b"".join([self._event(name, fields) for name, fields in told])

    def _event(self, name: str, fields: dict[str, Any]) -> bytes:
        number, self._events = self._events, self._events + 1
        kind = f"response.{name}"
        return event({"type": kind, "sequence_number": number, **fields}, kind)


def _status(finished: Finished) -> str:
    # One that was cancelled was cut off, as one that was too long.
    return "completed" if finished.reason == "stop" else "incomplete"


def _usage(stats: Stats, thought_tokens: int) -> dict[str, Any]:
    return {
        "input_tokens": stats.prompt_tokens,
        "input_tokens_details": {"cached_tokens": stats.reused_tokens, "cache_write_tokens": 0},
        "output_tokens": stats.tokens,
        "output_tokens_details": {"reasoning_tokens": thought_tokens},
        "total_tokens": stats.prompt_tokens + stats.tokens,
    }
