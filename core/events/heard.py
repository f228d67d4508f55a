"""What is heard of a worker: its events, and what its client finds out about the process itself."""

from __future__ import annotations

from msgspec import Struct

from core.events import Event


class WorkerExited(Struct, frozen=True):
    """The process is gone. `signal_name` is set if a signal ended it; `log` is its last stderr lines."""

    returncode: int
    signal_name: str
    log: tuple[str, ...]
    expected: bool


class WorkerSilent(Struct, frozen=True):
    """Nothing, not even a heartbeat, was heard for `seconds`."""

    seconds: float


class BadLine(Struct, frozen=True):
    """The worker wrote a line that is not an event."""

    message: str


Heard = Event | WorkerExited | WorkerSilent | BadLine
