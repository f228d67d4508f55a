"""Output: a response's items as they are written, and the events that tell of them.

An item is begun, grows and is done before the next is begun. Text after a call is a message of its own.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from typing import Any

from core.serve.tools.pieces import CallArguments, CallBegun, Piece, Said

Told = tuple[str, dict[str, Any]]


class Output:
    """`items` are all so far. Events come as (name without `response.`, fields)."""

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []
        self._open = False

    def add(self, pieces: Iterable[Piece], logprobs: list[dict[str, Any]]) -> Iterator[Told]:
        """More of it. `logprobs` of the tokens that gave `pieces` stand with the first text."""
        for piece in pieces:
            match piece:
                case Said(text):
                    yield from self._message()
                    part = self.items[-1]["content"][0]
                    part["text"] += text
                    part["logprobs"] += logprobs
                    yield self._of("output_text.delta", content_index=0, delta=text, logprobs=logprobs)
                    logprobs = []
                case CallBegun(_, call, name):
                    yield from self.close()
                    yield from self._begin(
                        {
                            "id": _id("fc"),
                            "type": "function_call",
                            "status": "in_progress",
                            "call_id": call,
                            "name": name,
                            "arguments": "",
                        }
                    )
                case CallArguments(_, text):
                    self.items[-1]["arguments"] += text
                    yield self._of("function_call_arguments.delta", delta=text)

    def close(self, status: str = "completed") -> Iterator[Told]:
        """The item that is open, if one is, is done."""
        if not self._open:
            return
        self._open = False
        item = self.items[-1]
        item["status"] = status
        if item["type"] == "function_call":
            arguments, name = item["arguments"], item["name"]
            yield self._of("function_call_arguments.done", arguments=arguments, name=name)
        else:
            part = item["content"][0]
            text, logprobs = part["text"], part["logprobs"]
            yield self._of("output_text.done", content_index=0, text=text, logprobs=logprobs)
            yield self._of("content_part.done", content_index=0, part=part)
        yield "output_item.done", {"output_index": len(self.items) - 1, "item": item}

    def _message(self) -> Iterator[Told]:
        if self._open and self.items[-1]["type"] == "message":
            return
        yield from self.close()
        yield from self._begin(
            {
                "id": _id("msg"),
                "type": "message",
                "status": "in_progress",
                "role": "assistant",
                "content": [],
            }
        )
        part: dict[str, Any] = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        self.items[-1]["content"].append(part)
        yield self._of("content_part.added", content_index=0, part=part)

    def _begin(self, item: dict[str, Any]) -> Iterator[Told]:
        self._open = True
        self.items.append(item)
        yield "output_item.added", {"output_index": len(self.items) - 1, "item": item}

    def _of(self, event: str, **fields: Any) -> Told:
        place = {"item_id": self.items[-1]["id"], "output_index": len(self.items) - 1}
        return event, place | fields


def _id(kind: str) -> str:
    return f"{kind}_{secrets.token_hex(14)}"
