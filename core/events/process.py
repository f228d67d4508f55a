"""The worker process: version, heartbeat, failures, end."""

from __future__ import annotations

from typing import Literal

from core.errors import Kind
from core.events.wire import Wire

PROTOCOL = 1
Activity = Literal["empty", "loading", "ready", "prefilling", "decoding", "saving"]


class Shutdown(Wire, frozen=True):
    """Ends the process with status 0, like closing its stdin."""


class StandStill(Wire, frozen=True):
    """Stops idle work (`wanted`) while something is measured on this machine, or allows it again."""

    wanted: bool


class UnloadIdle(Wire, frozen=True):
    """Releases the model after `after_s` seconds without a request, from now on; 0: never.

    A `model_released` follows then, and the next request loads the model again. Not for a model on several
    machines, and not while it rehearses.
    """

    after_s: float


class Hello(Wire, frozen=True):
    """The first line of a worker."""

    pid: int
    protocol: int
    version: str
    mlx: str
    mlx_lm: str
    device: str
    blas: str


class Heartbeat(Wire, frozen=True):
    """The process is alive. `stalled_s`: seconds since the last progress of the main thread.

    Heartbeats continue during shutdown; do not kill a process that is `saving`.
    """

    activity: Activity
    stalled_s: float
    memory_bytes: int
    memory_limit_bytes: int


class Failed(Wire, frozen=True):
    """A command failed; the worker continues.

    `request`: empty if the command has none. `command`: its type (`load_model`, `generate` …).
    `over_tokens`: tokens above the context limit, 0 for other failures.
    """

    request: str
    command: str
    kind: Kind
    code: str
    message: str
    hint: str = ""
    over_tokens: int = 0


ProcessCommand = StandStill | UnloadIdle | Shutdown
ProcessEvent = Hello | Heartbeat | Failed
