"""The memory of recent responses, which later requests refer to, and its endpoint."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
from msgspec import Struct
from starlette.datastructures import QueryParams
from starlette.types import Receive, Scope, Send

from core.events import Change
from core.serve.answering import WriterOf, new_id
from core.serve.fields import change
from core.serve.http import ApiError, field_error, send_json, short
from core.serve.request import AnswerRequest
from core.serve.responses import ResponseRequest, ResponseWriter, response_request

_MOST_RESPONSES = 64
_MOST_BYTES = 32 * 2**20


# Default and most items of a page of input items, as OpenAI's.
_PAGE_ITEMS, _MOST_PAGE_ITEMS = 20, 100


class _Kept(Struct, frozen=True):
    """`items`: the items of input, each with an id, and of output."""

    items: tuple[Any, ...]
    input_items: int
    body: bytes
    size: int


class ResponseMemory:
    """Up to `most` responses, their items and input, and `most_bytes`; the oldest are dropped first."""

    def __init__(self, most: int = _MOST_RESPONSES, most_bytes: int = _MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._kept: dict[str, _Kept] = {}
        self._bytes = 0

    def keep(self, given: Any, response: dict[str, Any]) -> None:
        """Keep a response and its `input`."""
        inputs = [_with_id(item) for item in _items(given)]
        encoded = msgspec.json.encode((*inputs, *response["output"]))
        body = msgspec.json.encode(response)
        self._kept[response["id"]] = _Kept(
            tuple(msgspec.json.decode(encoded)), len(inputs), body, len(encoded) + len(body)
        )
        self._bytes += len(encoded) + len(body)
        while self._kept and (len(self._kept) > self._most or self._bytes > self._most_bytes):
            self.forget(next(iter(self._kept)))

    def body(self, response: str) -> bytes | None:
        """The response as it was sent, as JSON."""
        kept = self._kept.get(response)
        return kept.body if kept else None

    def input_items(self, response: str) -> tuple[Any, ...] | None:
        """The items that the response answers, earlier responses' included, oldest first."""
        kept = self._kept.get(response)
        return kept.items[: kept.input_items] if kept else None

    def forget(self, response: str) -> None:
        """Drop a response."""
        self._bytes -= self._kept.pop(response).size

    def requested(self, fields: dict[str, Any]) -> ResponseRequest:
        """The request with the items that it refers to. Raises `ApiError` 400."""
        return self._requested(fields)[0]

    def read(self, fields: dict[str, Any]) -> tuple[AnswerRequest, WriterOf]:
        """The request, and the writer of its answer, which is kept. Raises `ApiError` 400."""
        asked, given = self._requested(fields)

        def keep(response: dict[str, Any]) -> None:
            if asked.store:
                self.keep(given, response)

        return asked, partial(ResponseWriter, asked, keep=keep)

    def _requested(self, fields: dict[str, Any]) -> tuple[ResponseRequest, Any]:
        """The request, and its resolved input: items that it refers to may be dropped during the answer."""
        changes: list[Change] = []
        fields = self.resolved(fields, changes)
        asked = response_request(fields)
        asked.changes.extend(changes)
        return asked, fields["input"]

    def resolved(self, fields: dict[str, Any], changes: list[Change]) -> dict[str, Any]:
        """`fields` with the items that they refer to in `input`.

        References to unknown items are left out and appended to `changes`: AI SDK refers to every earlier
        answer, so that a restart of the server would end all conversations. Raises `ApiError` 400 for an
        unknown response, without which the conversation is missing.
        """
        before = fields.get("previous_response_id")
        given = fields.get("input")
        if before is None and not (isinstance(given, list) and any(map(_is_reference, given))):
            return fields
        earlier: tuple[Any, ...] = ()
        if before is not None:
            if not isinstance(before, str) or before not in self._kept:
                raise self._unknown("previous_response_id", "previous_response_not_found")
            earlier = self._kept[before].items
        items = []
        for number, item in enumerate(_items(given)):
            if not _is_reference(item):
                items.append(item)
            elif (found := self._item(item)) is None:
                reason = f"it is not among the last {self._most} responses that this server has in memory"
                changes.append(change(f"input[{number}]", str(item.get("id")), "left out", reason))
            else:
                items.append(found)
        return fields | {"input": [*earlier, *items]}

    def _item(self, reference: Any) -> Any:
        wanted = reference.get("id")
        for kept in reversed(self._kept.values()):
            for one in kept.items:
                if wanted and isinstance(one, dict) and one.get("id") == wanted:
                    return one
        return None

    def _unknown(self, name: str, code: str) -> Exception:
        return field_error(
            name,
            f"“{name}” is not in this server's memory, which has the last {self._most} responses since its "
            "start. Send the items themselves.",
            code,
        )


def _items(given: Any) -> list[Any]:
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    if not isinstance(given, list | None):
        raise field_error("input", "“input” accepts a text or a list of items.")
    return given or []


def _with_id(item: Any) -> Any:
    """`item` as an item of a list: with its type, an id, and content as parts."""
    if not isinstance(item, dict):
        return item
    item = {"type": "message"} | item
    if item["type"] == "message" and isinstance(item.get("content"), str):
        kind = "output_text" if item.get("role") == "assistant" else "input_text"
        item["content"] = [{"type": kind, "text": item["content"]}]
    return item if item.get("id") else item | {"id": new_id("item_")}


def _is_reference(item: Any) -> bool:
    # OpenAI's clients may leave the type out.
    return isinstance(item, dict) and (item.get("type") == "item_reference" or set(item) == {"id"})


async def kept_response(memory: ResponseMemory, scope: Scope, receive: Receive, send: Send) -> None:
    """One response of the memory: `GET` sends it, `DELETE` drops it. Raises `ApiError` 404."""
    response = scope["path_params"]["id"]
    body = memory.body(response)
    if body is None:
        raise _not_found(response)
    if scope["method"] == "DELETE":
        memory.forget(response)
        await send_json(send, {"id": response, "object": "response", "deleted": True})
    else:
        await send_json(send, body)


async def kept_input(memory: ResponseMemory, scope: Scope, receive: Receive, send: Send) -> None:
    """`GET /v1/responses/ID/input_items`: a page of a response's input, the newest item first.

    `order=asc` begins with the oldest, `after` names the item before the page, `limit` is 1 to 100. Raises
    `ApiError` 404 or 400.
    """
    response = scope["path_params"]["id"]
    items = memory.input_items(response)
    if items is None:
        raise _not_found(response)
    asked = QueryParams(scope["query_string"])
    order, after, limit = asked.get("order", "desc"), asked.get("after"), asked.get("limit", str(_PAGE_ITEMS))
    if order not in ("asc", "desc"):
        raise field_error("order", f"“{short(order)}” is not allowed for “order”: asc or desc.")
    if not (limit.isascii() and limit.isdigit() and 1 <= int(limit[:9]) <= _MOST_PAGE_ITEMS):
        raise field_error("limit", f"“{short(limit)}” is not allowed for “limit”: 1 to {_MOST_PAGE_ITEMS}.")
    found = list(items) if order == "asc" else list(reversed(items))
    if after is not None:
        ids = [item.get("id") for item in found]
        if after not in ids:
            raise field_error("after", f"“{short(after)}” is not an input item of this response.")
        found = found[ids.index(after) + 1 :]
    page = found[: int(limit)]
    await send_json(
        send,
        {
            "object": "list",
            "data": page,
            "first_id": page[0]["id"] if page else None,
            "last_id": page[-1]["id"] if page else None,
            "has_more": len(page) < len(found),
        },
    )


def _not_found(response: str) -> ApiError:
    return ApiError(404, f"No response “{response[:80]}” is in this server's memory.", code="not_found")
