"""The items of recent responses, for requests that refer to them by id. Lost when the server stops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from core.events import Change
from core.serve.errors import field_error
from core.serve.fields import change

_MOST_RESPONSES = 64
_MOST_BYTES = 32 * 2**20


class _Kept(Struct, frozen=True):
    items: tuple[Any, ...]
    size: int


class ResponseMemory:
    """Input and output items of up to `most` responses and `most_bytes`; the oldest are dropped first."""

    def __init__(self, most: int = _MOST_RESPONSES, most_bytes: int = _MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._kept: dict[str, _Kept] = {}
        self._bytes = 0

    def keep(self, response: str, given: Any, output: Sequence[Any]) -> None:
        """Keep the `input` and the output items of a response."""
        encoded = msgspec.json.encode((*_items(given), *output))
        items = tuple(msgspec.json.decode(encoded))
        self._kept[response] = _Kept(items, len(encoded))
        self._bytes += len(encoded)
        while self._kept and (len(self._kept) > self._most or self._bytes > self._most_bytes):
            self._bytes -= self._kept.pop(next(iter(self._kept))).size

    def resolved(self, fields: dict[str, Any], changes: list[Change]) -> dict[str, Any]:
        """`fields` with the items that they refer to in `input`.

        References to unknown items are left out and appended to `changes`: AI SDK refers to every earlier
        answer, so that a restart of the server would end all conversations. Raises `ApiError` 400 for an
        unknown response, without which the conversation is missing.
        """
        before = fields.get("previous_response_id")
        given = fields.get("input")
        if before is None and not _refers(given):
            return fields
        earlier: tuple[Any, ...] = ()
        if before is not None:
            if not isinstance(before, str) or before not in self._kept:
                raise self._unknown("previous_response_id", "previous_response_not_found")
            earlier = self._kept[before].items
        items = []
        for number, item in enumerate(_items(given)):
            found = self._item(item) if _is_reference(item) else item
            if found is None:
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
    return given if isinstance(given, list) else []


def _is_reference(item: Any) -> bool:
    # OpenAI's clients may leave the type out.
    return isinstance(item, dict) and (item.get("type") == "item_reference" or set(item) == {"id"})


def _refers(given: Any) -> bool:
    return isinstance(given, list) and any(map(_is_reference, given))
