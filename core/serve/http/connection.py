"""Connection: uvicorn's HTTP/1.1 on h11, with an end to what a client may leave undone.

uvicorn waits for ever for a request's head, for the rest of a body and for a client that does not read.
Here each has its time (a body's is `bodies.read_body`'s), and connections are counted: an idle one costs a
descriptor, of which a window has 256 on a Mac. A request that comes while the one before is being
answered (pipelining, which no client of these APIs does) would hide that the client went away, so it ends
the connection.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S = 15.0
STUCK_S = 60.0
# Of all kinds, answered or waiting or idle.
MOST_CONNECTIONS = 120


class Connection(H11Protocol):
    """One client's line."""

    _head_timer: asyncio.TimerHandle | None = None
    _stuck_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client; one too many is let go."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
            return
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """More of a request."""
        if self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body:
            if data.strip(b"\r\n"):
                self.transport.abort()
            return
        before = self.cycle
        if self._head_timer is None and (before is None or before.response_complete):
            self._await_head()
        super().data_received(data)
        if self.cycle is not before:
            self._stop(self._head_timer)
            self._head_timer = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Gone."""
        self._stop(self._head_timer)
        self._stop(self._stuck_timer)
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client does not read what it is sent."""
        super().pause_writing()
        self._stuck_timer = self.loop.call_later(STUCK_S, self.transport.abort)

    def resume_writing(self) -> None:
        """It does."""
        self._stop(self._stuck_timer)
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """What came is not HTTP. In the middle of an answer nothing can be said about it."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.abort()
        else:
            super().send_400_response(msg)

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_S, self.transport.abort)

    @staticmethod
    def _stop(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()
