"""ServedRequests: records of requests and of their outcomes, for display and storage.

The newest records are kept in memory, with their tokens where that is configured; listeners may store them.
A record is frozen: each change is a new one. Listeners are called on the loop, once for each event.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import astuple, replace

from core.events import Event, Failed, Finished, Gauges, Generate, PrefillProgress, Token

ServedState = Literal["waiting", "reading", "writing", "finished", "failed", "cancelled"]
_OVER = ("finished", "failed", "cancelled")


class ServedRequest(Struct, frozen=True):
    """State of one request.

    `client` is the name in its user agent, `path` the endpoint, `came_s` the Unix time.
    `position` counts those before it while it is `waiting`. `tokens_per_s`, `acceptance` (0 to 1 of the
    tested drafts) and `ttft_s` are 0 until they are known; `ttft_s` counts from the moment the worker took it
    up, `waited_s` is the time before that. `problem` says why it failed.
    """

    id: str
    path: str
    client: str
    model: str
    came_s: float
    streams: bool
    state: ServedState = "waiting"
    position: int = 0
    waited_s: float = 0.0
    prompt_tokens: int = 0
    read_tokens: int = 0
    cached_tokens: int = 0
    tokens: int = 0
    tokens_per_s: float = 0.0
    accepted: int = 0
    tested: int = 0
    ttft_s: float = 0.0
    total_s: float = 0.0
    problem: str = ""

    @property
    def is_over(self) -> bool:
        """Whether the request has ended."""
        return self.state in _OVER

    @property
    def embeds(self) -> bool:
        """Whether vectors are requested, not an answer; it does not wait in the queue."""
        return self.path.endswith("/embeddings")

    @property
    def acceptance(self) -> float:
        """Share of the tested drafted tokens that were accepted."""
        return self.accepted / self.tested if self.tested else 0.0


class RequestListener(Protocol):
    """Listener: `request_changed` after each change, `request_heard` for each event before it."""

    def request_changed(self, request: ServedRequest) -> None: ...

    def request_heard(self, request: str, event: Event) -> None: ...


class _Kept:
    def __init__(self, record: ServedRequest, generate: Generate | None) -> None:
        self.record = record
        self.generate = generate
        self.events: list[Event] = []
        self.size_bytes = _size_of(generate)

    def hear(self, event: Event) -> None:
        self.events.append(event)
        self.size_bytes += _size_of(event)

    def empty(self) -> None:
        """Drop everything but the record."""
        self.generate, self.events, self.size_bytes = None, [], 0


class ServedRequests:
    """All running requests, and the newest `kept` finished ones.

    `whole`: the command and each event of the answer are kept as long as the record is, within about
    `most_bytes` in all; above that the oldest finished requests keep only their record.
    """

    def __init__(self, kept: int = 100, *, whole: bool = False, most_bytes: int = 128_000_000) -> None:
        self._most_bytes = most_bytes
        self._most = kept
        self._whole = whole
        self._kept: dict[str, _Kept] = {}
        self._listeners: list[RequestListener] = []

    def listen(self, listener: RequestListener) -> Callable[[], None]:
        """Call `listener` on every change; returns a function that ends this."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    @property
    def all(self) -> tuple[ServedRequest, ...]:
        """All records, the oldest first."""
        return tuple(kept.record for kept in self._kept.values())

    def of(self, request: str) -> ServedRequest | None:
        """The record of `request`; None if it is not kept."""
        kept = self._kept.get(request)
        return kept.record if kept else None

    def asked(self, request: str) -> Generate | None:
        """The request's command; None if it is not kept."""
        kept = self._kept.get(request)
        return kept.generate if kept else None

    def events(self, request: str) -> tuple[Event, ...]:
        """The request's events; empty if they are not kept."""
        kept = self._kept.get(request)
        return tuple(kept.events) if kept else ()

    def clear(self) -> None:
        """Forget all finished requests."""
        self._kept = {name: kept for name, kept in self._kept.items() if not kept.record.is_over}

    # ---- for the server

    def add(self, record: ServedRequest, generate: Generate | None = None) -> None:
        """Add a request; one for vectors has no command."""
        self._kept[record.id] = _Kept(record, generate if self._whole else None)
        self._drop_words()
        self._tell(record)

    def refuse(self, record: ServedRequest) -> None:
        """Add a request that was refused before it reached the worker; `record` has the reason.

        It replaces an earlier one with its id.
        """
        self._kept.pop(record.id, None)
        self._kept[record.id] = _Kept(record, None)
        self._drop_old()
        self._tell(record)

    def change(self, request: str, **values: object) -> None:
        """Change fields of a record, unless the request is over."""
        kept = self._kept.get(request)
        if kept is None or kept.record.is_over:
            return
        record = replace(kept.record, **values)
        if record == kept.record:
            return
        kept.record = record
        if record.is_over:
            self._drop_old()
        self._tell(record)

    def hear(self, request: str, event: Event) -> None:
        """Record an event of an answer."""
        kept = self._kept.get(request)
        if kept is None or kept.record.is_over:
            return
        if self._whole:
            kept.hear(event)
        for listener in tuple(self._listeners):
            listener.request_heard(request, event)
        self.change(request, **_changes(kept.record, event))

    def _tell(self, record: ServedRequest) -> None:
        for listener in tuple(self._listeners):
            listener.request_changed(record)

    def _drop_old(self) -> None:
        over = [name for name, kept in self._kept.items() if kept.record.is_over]
        for name in over[: max(0, len(over) - self._most)]:
            del self._kept[name]
        self._drop_words()

    def _drop_words(self) -> None:
        size_bytes = sum(kept.size_bytes for kept in self._kept.values())
        for kept in self._kept.values():
            if size_bytes <= self._most_bytes:
                return
            if kept.record.is_over:
                size_bytes -= kept.size_bytes
                kept.empty()


def _size_of(value: object) -> int:
    """Bytes in memory of `value` and all that it holds; shared parts count each time."""
    inner: Iterable[object] = ()
    if isinstance(value, Struct):
        inner = astuple(value)
    elif isinstance(value, dict):
        inner = chain(value, value.values())
    elif isinstance(value, tuple | list):
        inner = value
    return sys.getsizeof(value) + sum(map(_size_of, inner))


def _changes(record: ServedRequest, event: Event) -> dict[str, object]:
    match event:
        case PrefillProgress():
            # With a draft model, reading continues after the first token.
            return {
                "state": "reading",
                "prompt_tokens": event.total_tokens,
                "read_tokens": event.done_tokens,
                "cached_tokens": event.reused_tokens,
            }
        case Token():
            first = {} if record.tokens else {"ttft_s": event.time_s}
            return {"state": "writing", "tokens": record.tokens + 1, **first}
        case Gauges():
            return {
                "tokens_per_s": event.tokens_per_s,
                "accepted": event.accepted,
                "tested": event.tested,
                "ttft_s": event.ttft_s,
            }
        case Finished(_, reason, stats):
            return {
                "state": "cancelled" if reason == "cancelled" else "finished",
                "prompt_tokens": stats.prompt_tokens,
                "read_tokens": stats.read_tokens,
                "cached_tokens": stats.reused_tokens,
                "tokens": stats.tokens,
                "tokens_per_s": stats.tokens_per_s,
                "accepted": stats.accepted,
                "tested": stats.tested,
                "ttft_s": stats.ttft_s,
                "total_s": stats.total_s,
            }
        case Failed():
            return {"state": "failed", "problem": event.message}
        case _:
            return {}
