"""Output: a response's items as they are written, and the events that tell of them.

An item is begun, grows and is done before the next is begun. Text after a call is a message of its own,
and so is a thought an item of its own, with its words as open models' are told (`reasoning_text`).
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Literal

import msgspec

from core.answer_format import CallArguments, CallBegun, Delta, Text, Thought
from core.serve.left_out import completed

Told = tuple[str, dict[str, Any]]


class Output:
    """`items` are all so far. Events come as (name without `response.`, fields)."""

    def __init__(self, custom_tools: Collection[str] = ()) -> None:
        self._custom_tools = custom_tools
        self._arguments = ""  # of the custom tool's call that is open
        self.items: list[dict[str, Any]] = []
        self._logprobs: list[dict[str, Any]] = []
        self._open = False

    def add(self, pieces: Iterable[Delta], logprobs: list[dict[str, Any]]) -> Iterator[Told]:
        """More of it. `logprobs` of the tokens that gave `pieces` stand with their first text; of tokens
        that give nothing yet they wait for it.
        """
        self._logprobs += logprobs
        piece: Delta | None = None
        for piece in pieces:
            match piece:
                case Thought(text):
                    yield from self._text("reasoning")
                    self.items[-1]["content"][0]["text"] += text
                    yield self._of("reasoning_text.delta", content_index=0, delta=text)
                case Text(text):
                    yield from self._text("message")
                    part = self.items[-1]["content"][0]
                    part["text"] += text
                    told, self._logprobs = self._logprobs, []
                    part["logprobs"] += told
                    yield self._of("output_text.delta", content_index=0, delta=text, logprobs=told)
                case CallBegun(_, name, call) if name in self._custom_tools:
                    yield from self.close()
                    item = {"id": _id("ctc"), "type": "custom_tool_call", "status": "in_progress"}
                    yield from self._begin(item | {"call_id": call, "name": name, "input": ""})
                case CallArguments(_, text) if self.items[-1]["type"] == "custom_tool_call":
                    self._arguments += text
                case CallBegun(_, name, call):
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
        if piece is not None:
            # Thoughts and calls have none.
            self._logprobs = []

    def close(self, status: str = "completed") -> Iterator[Told]:
        """The item that is open, if one is, is done."""
        if not self._open:
            return
        self._open = False
        item = self.items[-1]
        item["status"] = status
        if item["type"] == "custom_tool_call":
            text, self._arguments = _input_of(self._arguments), ""
            item["input"] = text
            yield self._of("custom_tool_call_input.delta", delta=text)
            yield self._of("custom_tool_call_input.done", input=text)
        elif item["type"] == "function_call":
            arguments, name = item["arguments"], item["name"]
            yield self._of("function_call_arguments.done", arguments=arguments, name=name)
        else:
            part = item["content"][0]
            more = {"logprobs": part["logprobs"]} if "logprobs" in part else {}
            yield self._of(f"{part['type']}.done", content_index=0, text=part["text"], **more)
            yield self._of("content_part.done", content_index=0, part=part)
        yield "output_item.done", {"output_index": len(self.items) - 1, "item": item}

    def _text(self, kind: Literal["message", "reasoning"]) -> Iterator[Told]:
        """An item that has text is open after this."""
        if self._open and self.items[-1]["type"] == kind:
            return
        yield from self.close()
        part: dict[str, Any]
        if kind == "message":
            item: dict[str, Any] = {"id": _id("msg"), "role": "assistant"}
            part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        else:
            item = {"id": _id("rs"), "summary": []}
            part = {"type": "reasoning_text", "text": ""}
        yield from self._begin({**item, "type": kind, "status": "in_progress", "content": []})
        self.items[-1]["content"].append(part)
        yield self._of("content_part.added", content_index=0, part=part)

    def _begin(self, item: dict[str, Any]) -> Iterator[Told]:
        self._open = True
        self.items.append(item)
        yield "output_item.added", {"output_index": len(self.items) - 1, "item": item}

    def _of(self, event: str, **fields: Any) -> Told:
        place = {"item_id": self.items[-1]["id"], "output_index": len(self.items) - 1}
        return event, place | fields


def _input_of(arguments: str) -> str:
    """The text of a custom tool's call; what the model wrote instead of an object with it, as it is."""
    try:
        given = msgspec.json.decode(completed(arguments))["input"]
    except (msgspec.DecodeError, KeyError):
        return arguments
    return given if isinstance(given, str) else arguments


def _id(kind: str) -> str:
    return f"{kind}_{secrets.token_hex(14)}"
