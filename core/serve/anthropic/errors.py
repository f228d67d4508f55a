"""Errors in Anthropic's shape. Its objects name no field, so the message does."""

from __future__ import annotations

from typing import Any

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}


def error_body(status: int, message: str) -> dict[str, Any]:
    """Of an error with the HTTP `status`; in a stream it is an event of its own."""
    kind = _TYPES.get(status) or ("invalid_request_error" if status < 500 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}}
