"""ApiError: what goes wrong, as a status and the error object of the API that was asked.

No path of this machine is in any.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from core.errors import DraftlightError
from core.events import Failed
from core.serve.anthropic.errors import error_body

_STATUSES = {"queue-full": 503, "no-model": 503, "server-ends": 503, "model-changed": 503, "cancelled": 499}
# Absolute paths; of addresses (http://…) and of the API's own (/v1/…) nothing is cut.
_PATH = re.compile(r"(?<![\w:/.])(?:~|[A-Za-z]:)?/(?!v1\b)(?:[^\s/“”\"',:;]+/)+([^\s/“”\"',:;]*)")
_PROMPT_TOKENS = re.compile(r"The prompt has ([\d,]+) tokens")
TOO_LONG = "context_length_exceeded"
OURS = "Draftlight hit an error of its own while it answered."


class FieldNames(Struct, frozen=True):
    """What an API calls what the worker may refuse: the field of the prompt, and that of the grammar."""

    prompt: str = "messages"
    grammar: str = "response_format"


class ApiError(Exception):
    """`param` is the field that is wrong, `code` a short stable word for programs."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.code = code
        self.headers = headers or {}
        self.anthropic_message = message

    @property
    def type(self) -> str:
        """OpenAI's kind of it."""
        if self.status == 401:
            return "authentication_error"
        return "invalid_request_error" if self.status < 500 else "server_error"

    def body(self) -> dict[str, Any]:
        """OpenAI's."""
        return {
            "error": {
                "message": self.message,
                "type": self.type,
                "param": self.param,
                "code": self.code,
            }
        }

    def encoded(self, path: str = "") -> bytes:
        """The body as JSON, in the shape of the API at `path`; OpenAI's where no other is known."""
        shape = next((shape for start, shape in _SHAPES.items() if path.startswith(start)), ApiError.body)
        return msgspec.json.encode(shape(self))


_SHAPES: dict[str, Callable[[ApiError], dict[str, Any]]] = {
    "/v1/messages": lambda error: error_body(error.status, error.anthropic_message),
}


def field_error(param: str, message: str, code: str = "invalid_value") -> ApiError:
    """A field of the request is wrong."""
    return ApiError(400, message, param=param, code=code)


def of_failure(failed: Failed, names: FieldNames) -> ApiError:
    """What the worker refused, or what became of it; `names` are those of the request's fields."""
    if failed.kind == "internal":
        return ApiError(500, OURS, code="internal")
    message = without_paths(f"{failed.message} {failed.hint}".strip())
    code = failed.code.replace("-", "_")
    if failed.kind == "worker":
        return ApiError(500, message, code=code)
    match failed.code:
        case "prompt-too-long":
            return _too_long(failed, message, names)
        case "empty-prompt":
            return field_error(names.prompt, message, code)
        case "bad-grammar":
            # Not every API's error has a place for the field, so the message names it, too.
            return field_error(names.grammar, f"“{names.grammar}”: {message}", code)
    status = _STATUSES.get(failed.code, 400)
    return ApiError(status, message, code=code, headers=_again(status))


def _too_long(failed: Failed, message: str, names: FieldNames) -> ApiError:
    """Clients shorten the conversation by these words: Anthropic's have both figures in a fixed form."""
    found = _PROMPT_TOKENS.search(failed.message)
    if found is None:
        return field_error(names.prompt, message, TOO_LONG)
    tokens = int(found[1].replace(",", ""))
    most = tokens - failed.over_tokens
    error = field_error(
        names.prompt,
        f"The prompt has {tokens} tokens; this model's maximum context length is {most + 1} tokens,"
        f" so at most {most} can be read. {failed.hint}".strip(),
        TOO_LONG,
    )
    error.anthropic_message = f"prompt is too long: {tokens} tokens > {most} maximum"
    return error


def of_error(error: DraftlightError) -> ApiError:
    """An error that was raised before the worker was asked."""
    status = _STATUSES.get(error.code, 400)
    return ApiError(
        status,
        without_paths(str(error)),
        code=error.code.replace("-", "_"),
        headers=_again(status, getattr(error, "retry_after_s", 0)),
    )


def without_paths(text: str) -> str:
    """`text` with the last part alone of every path in it."""
    return _PATH.sub(lambda found: found[1] or "…", text)


def _again(status: int, after_s: int = 0) -> dict[str, str]:
    """`after_s` is 0 where the wait is unknown: while a model is loaded."""
    return {"retry-after": str(after_s or 2)} if status == 503 else {}


def too_large(most_bytes: int) -> ApiError:
    """A body has more than it may."""
    return ApiError(413, f"A request has {most_bytes:,} bytes at most.", code="request_too_large")
