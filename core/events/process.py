"""The worker as a process: who it is, that it lives, what failed, how it ends."""

from __future__ import annotations

from typing import Literal

from core.errors import Kind
from core.events.wire import Wire

PROTOCOL = 1
Activity = Literal["empty", "loading", "ready", "prefilling", "decoding", "saving"]


class Shutdown(Wire, frozen=True):
    """End the process with status 0. Closing the worker's stdin does the same."""


class StandStill(Wire, frozen=True):
    """Do nothing but what is asked for, while something else is measured on this machine; or again
    whatever is worth doing while idle. Holds until the other is said."""

    wanted: bool


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
    """Sign of life of the process. `stalled_s`: seconds since the main thread last moved on.

    It goes on while the process ends; one that is `saving` then must not be killed yet.
    """

    activity: Activity
    stalled_s: float
    memory_bytes: int
    memory_limit_bytes: int


class Failed(Wire, frozen=True):
    """A command failed; the worker lives on. `request` is empty if it belongs to none.

    `command` names the command type that failed (`load_model`, `generate` …). `over_tokens` is
    by how much a prompt is too long; 0 for every other failure.
    """

    request: str
    command: str
    kind: Kind
    code: str
    message: str
    hint: str = ""
    over_tokens: int = 0


ProcessCommand = StandStill | Shutdown
ProcessEvent = Hello | Heartbeat | Failed
