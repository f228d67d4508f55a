"""Probe: whether machines reach each other where MLX will exchange tensors, tried before MLX joins them.

MLX's joining says of no machine in particular that it failed, or tries for ever. So each machine listens at
its address for tensors, then connects to those that MLX will have it connect to. No MLX.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence

from core.cluster.machine.addresses import host_and_port
from core.cluster.messages import Connected
from core.settings.cluster import FOLLOW_PORT

TENSOR_PORT = FOLLOW_PORT + 1
CONNECT_S = 5.0
# Another machine may be trying to connect for as long, and begin a moment later.
_ARRIVE_S = CONNECT_S + 1.0


def peers(backend: str, rank: int, size: int) -> tuple[int, ...]:
    """The ranks that MLX has `rank` connect to: in a ring the next one, with jaccl all but 0 to 0."""
    if backend == "jaccl":
        return (0,) if rank else ()
    return ((rank + 1) % size,)


class Probe:
    """Of machine `rank`; listens from now on. `addresses` are those for tensors, by rank.

    Raises `OSError` if it cannot listen at its own.
    """

    def __init__(self, backend: str, rank: int, addresses: Sequence[str]) -> None:
        size = len(addresses)
        self._addresses = addresses
        self._to = peers(backend, rank, size)
        self._expected = sum(rank in peers(backend, other, size) for other in range(size))
        self._listener: socket.socket | None = None
        if self._expected:
            self._listener = socket.create_server(
                host_and_port(addresses[rank], TENSOR_PORT), backlog=self._expected
            )

    def connect(self) -> Connected:
        """Once all listen: try it, then stop listening. Waits some seconds at most."""
        try:
            unreached = [(rank, why) for rank in self._to if (why := self._why_not(rank))]
            return Connected(tuple(unreached), self._missing())
        finally:
            self.close()

    def close(self) -> None:
        """Stop listening."""
        if self._listener is not None:
            self._listener.close()

    def _why_not(self, rank: int) -> str:
        try:
            address = host_and_port(self._addresses[rank], TENSOR_PORT)
            socket.create_connection(address, CONNECT_S).close()
        except OSError as error:
            return words_of(error)
        return ""

    def _missing(self) -> int:
        until = time.monotonic() + _ARRIVE_S
        for arrived in range(self._expected):
            assert self._listener is not None
            self._listener.settimeout(max(0.0, until - time.monotonic()))
            try:
                connection, _ = self._listener.accept()
            except (TimeoutError, BlockingIOError):
                return self._expected - arrived
            with connection:
                connection.settimeout(CONNECT_S)
                # The other side hangs up first: what is left of the connection then is not at this address.
                while connection.recv(64):
                    pass
        return 0


def words_of(error: BaseException) -> str:
    """Without the number that an `OSError` has."""
    return str(getattr(error, "strerror", "") or error)
