"""Logprobs in OpenAI's shape.

A token whose bytes are finished by a later one has no text of its own; it is told with the one that
finishes it. The stop token is not told: it says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.events import Token


class Logprobs:
    """Of one answer, in order."""

    def __init__(self) -> None:
        self._waiting: list[Token] = []

    def of(self, tokens: Sequence[Token]) -> dict[str, Any] | None:
        """Those of a chunk; None if nothing was asked or nothing is to tell yet."""
        content: list[dict[str, Any]] = []
        for token in tokens:
            if token.logprob is None:
                continue
            self._waiting.append(token)
            if token.text:
                content += [_entry(one) for one in self._waiting]
                self._waiting.clear()
        return {"content": content, "refusal": None} if content else None


def _entry(token: Token) -> dict[str, Any]:
    assert token.logprob is not None
    return {
        **_one(token.text, token.logprob),
        "top_logprobs": [_one(likely.text, likely.logprob) for likely in token.likely],
    }


def _one(text: str, logprob: float) -> dict[str, Any]:
    return {"token": text, "logprob": logprob, "bytes": list(text.encode()) if text else None}
