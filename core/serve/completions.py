"""`POST /v1/completions`: the model continues a prompt, without a chat template."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, ClassVar

from core.events import Finished, Generate, Message, Token
from core.serve.answering import (
    Writer,
    effective,
    origins,
    timings,
    usage,
)
from core.serve.chat import DONE, IGNORED, REASONS, Sampled
from core.serve.fields import FORMS, change, convert_fields, refused, with_answer_form
from core.serve.http import ApiError, event, field_error
from core.serve.tools import CallRules

_MOST_LOGPROBS = 20
_UNSUPPORTED = {
    **FORMS,
    "messages": "use /v1/chat/completions",
    "suffix": "the model continues the prompt only",
}


class CompletionRequest(Sampled, kw_only=True):
    """A request for a completion."""

    prompt_field: ClassVar[str] = "prompt"
    raw: ClassVar[bool] = True

    prompt: str | list[str]
    logprobs: int | None = None
    echo: bool = False
    best_of: int = 1

    def check(self) -> None:
        """Refuse more than one answer, and the prompt's repetition."""
        super().check()
        if self.echo:
            raise refused("echo", "the prompt is not repeated; it accepts false")
        if self.best_of != 1:
            raise refused("best_of", "one answer a request; it accepts 1")
        if not isinstance(self.prompt, str) and len(self.prompt) != 1:
            raise refused("prompt", "one prompt a request")

    def conversation(self) -> tuple[Message, ...]:
        """The prompt as it is."""
        return (Message("user", self.prompt if isinstance(self.prompt, str) else self.prompt[0]),)

    def logprobs_count(self) -> int | None:
        """By `logprobs`."""
        if self.logprobs is not None and not 0 <= self.logprobs <= _MOST_LOGPROBS:
            raise field_error("logprobs", f"“logprobs” accepts 0 to {_MOST_LOGPROBS}.")
        return self.logprobs


def completion_request(fields: dict[str, Any]) -> CompletionRequest:
    """The request from a decoded body. Raises `ApiError` 400."""
    reason = "no chat template declares tools in a completion's prompt"
    tools = {name: fields.pop(name) for name in ("tools", "tool_choice") if fields.get(name)}
    changes = tuple(change(name, value, "left out", reason) for name, value in tools.items())
    return convert_fields(with_answer_form(fields), CompletionRequest, IGNORED, _UNSUPPORTED, changes)


class CompletionWriter(Writer):
    """An answer as OpenAI's text completion."""

    def __init__(self, asked: CompletionRequest, generate: Generate, model: str, rules: CallRules) -> None:
        self._asked = asked
        self._head = {
            "id": generate.request,
            "object": "text_completion",
            "created": int(time.time()),
            "model": model,
        }
        self._usage: dict[str, Any] = {"usage": None} if asked.includes_usage else {}
        self._told_characters = 0

    def opening(self) -> bytes:
        """Empty: completions have no opening."""
        return b""

    def written(self, tokens: Sequence[Token]) -> bytes:
        """A chunk of the new tokens; empty without new text."""
        text = "".join(token.text for token in tokens)
        told = self._asked.draftlight.tokens
        if not text and not told and self._asked.logprobs is None:
            return b""
        more: dict[str, Any] = {"draftlight": {"tokens": origins(tokens)}} if told else {}
        return self._chunk(text, self._logprobs(tokens), None, more)

    def finished(self, finished: Finished) -> bytes:
        """The last chunks and `[DONE]`."""
        figures = {"timings": timings(finished.stats), "draftlight": self._effective(finished)}
        reason = REASONS[finished.reason]
        if not self._asked.includes_usage:
            return self._chunk("", None, reason, figures) + DONE
        last = {**self._head, "choices": [], "usage": usage(finished.stats), **figures}
        return self._chunk("", None, reason, {}) + event(last) + DONE

    def failed(self, error: ApiError) -> bytes:
        """The event of an error after the opening."""
        return event(error.body())

    def whole(self, tokens: Sequence[Token], finished: Finished) -> dict[str, Any]:
        """The body of an answer that is not streamed."""
        own = self._effective(finished)
        if self._asked.draftlight.tokens:
            own["tokens"] = origins(tokens)
        choice = _choice(
            "".join(token.text for token in tokens), self._logprobs(tokens), REASONS[finished.reason]
        )
        return {
            **self._head,
            "choices": [choice],
            "usage": usage(finished.stats),
            "timings": timings(finished.stats),
            "draftlight": own,
        }

    def _effective(self, finished: Finished) -> dict[str, Any]:
        unlimited = self._asked.most_tokens is None
        return effective(finished, unlimited=unlimited, changes=self._asked.changes)

    def _chunk(
        self, text: str, logprobs: dict[str, Any] | None, reason: str | None, more: dict[str, Any]
    ) -> bytes:
        return event({**self._head, "choices": [_choice(text, logprobs, reason)], **self._usage, **more})

    def _logprobs(self, tokens: Sequence[Token]) -> dict[str, Any] | None:
        """Log probabilities in the older shape: parallel lists, with the offset in the text of each token."""
        told = [token for token in tokens if token.logprob is not None]
        if self._asked.logprobs is None or not told:
            return None
        offsets = []
        for token in told:
            offsets.append(self._told_characters)
            self._told_characters += len(token.text)
        return {
            "tokens": [token.text for token in told],
            "token_logprobs": [token.logprob for token in told],
            "top_logprobs": [{one.text: one.logprob for one in token.likely} for token in told],
            "text_offset": offsets,
        }


def _choice(text: str, logprobs: dict[str, Any] | None, reason: str | None) -> dict[str, Any]:
    return {"index": 0, "text": text, "logprobs": logprobs, "finish_reason": reason}
