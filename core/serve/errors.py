"""ApiError: what goes wrong, as a status and the error object of the API that was asked.

No path of this machine is in any.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from core.errors import DraftlightError
from core.events import Failed
from core.serve.anthropic.errors import error_body

_STATUSES = {"queue-full": 503, "no-model": 503, "server-ends": 503, "model-changed": 503, "cancelled": 499}
_PARAMS = {"bad-grammar": "response_format", "empty-prompt": "messages"}
# Absolute paths; of addresses (http://…) and of the API's own (/v1/…) nothing is cut.
_PATH = re.compile(r"(?<![\w:/.])(?:~|[A-Za-z]:)?/(?!v1\b)(?:[^\s/“”\"',:;]+/)+([^\s/“”\"',:;]*)")
OURS = "Draftlight hit an error of its own while it answered."


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
    "/v1/messages": lambda error: error_body(error.status, error.message),
}


def field_error(param: str, message: str, code: str = "invalid_value") -> ApiError:
    """A field of the request is wrong."""
    return ApiError(400, message, param=param, code=code)


def of_failure(failed: Failed) -> ApiError:
    """What the worker refused, or what became of it."""
    if failed.kind == "internal":
        return ApiError(500, OURS, code="internal")
    message = without_paths(f"{failed.message} {failed.hint}".strip())
    code = failed.code.replace("-", "_")
    if failed.kind == "worker":
        return ApiError(500, message, code=code)
    if failed.code == "prompt-too-long":
        return ApiError(400, message, param="messages", code="context_length_exceeded")
    status = _STATUSES.get(failed.code, 400)
    return ApiError(status, message, param=_PARAMS.get(failed.code), code=code, headers=_again(status))


def of_error(error: DraftlightError) -> ApiError:
    """An error that was raised before the worker was asked."""
    status = _STATUSES.get(error.code, 400)
    return ApiError(
        status, without_paths(str(error)), code=error.code.replace("-", "_"), headers=_again(status)
    )


def without_paths(text: str) -> str:
    """`text` with the last part alone of every path in it."""
    return _PATH.sub(lambda found: found[1] or "…", text)


def _again(status: int) -> dict[str, str]:
    return {"retry-after": "2"} if status == 503 else {}
