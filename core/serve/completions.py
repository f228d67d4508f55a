"""`POST /v1/completions`: the model continues a prompt, without a chat template."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

from core.events import Message, Token
from core.serve.answering import Prepared, WriterOf
from core.serve.chat import ChatWriter, Sampled
from core.serve.fields import FORMS, change, convert_fields, refused, with_answer_form
from core.serve.http import field_error
from core.serve.request import AnswerRequest

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


def read_completion(fields: dict[str, Any]) -> tuple[AnswerRequest, WriterOf]:
    """The request from a decoded body, and the writer of its answer. Raises `ApiError` 400."""
    asked = completion_request(fields)
    return asked, partial(CompletionWriter, asked)


def completion_request(fields: dict[str, Any]) -> CompletionRequest:
    """The request from a decoded body. Raises `ApiError` 400."""
    reason = "no chat template declares tools in a completion's prompt"
    tools = {name: fields.pop(name) for name in ("tools", "tool_choice") if fields.get(name)}
    changes = tuple(change(name, value, "left out", reason) for name, value in tools.items())
    return convert_fields(with_answer_form(fields), CompletionRequest, _UNSUPPORTED, changes)


class CompletionWriter(ChatWriter):
    """An answer as OpenAI's text completion: chunks without an opening, and text that is not parsed."""

    objects: ClassVar[tuple[str, str]] = ("text_completion", "text_completion")
    annotates: ClassVar[bool] = False

    def __init__(self, asked: CompletionRequest, made: Prepared) -> None:
        super().__init__(asked, made)
        self._told_characters = 0

    def opening(self) -> bytes:
        """Empty."""
        return b""

    def _deltas(self, tokens: Sequence[Token]) -> list[dict[str, Any]]:
        text = "".join(token.text for token in tokens)
        return [{"text": text}] if text else []

    def _choice(self, delta: dict[str, Any]) -> dict[str, Any]:
        return {"index": 0, "text": delta.get("text", "")}

    def _whole_choice(self, tokens: Sequence[Token]) -> dict[str, Any]:
        return self._choice({"text": "".join(token.text for token in tokens)})

    def _logprobs(self, tokens: Sequence[Token]) -> dict[str, Any] | None:
        """The older shape: parallel lists, with the offset in the text of each token."""
        told = [token for token in tokens if token.logprob is not None]
        if not told:
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
