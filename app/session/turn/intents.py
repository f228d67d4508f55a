"""Intents: frozen records of requests to the worker by the user, or by the window for them.

A question is the command itself, `Generate`, with a new id.
"""

from __future__ import annotations

from typing import get_args

from msgspec import Struct

from core.events import Generate


class Stop(Struct, frozen=True):
    """End the running answer and keep its text."""


class Served(Struct, frozen=True):
    """The worker has `requests` of the local server that have not ended."""

    requests: int


class Restart(Struct, frozen=True):
    """Replace the worker, alive or not, by a new one."""


class Load(Struct, frozen=True):
    """Load `model`; the loaded one stays until then."""

    model: str


class Unload(Struct, frozen=True):
    """Free the loaded model."""


class SpawnFailed(Struct, frozen=True):
    """The worker's process could not be started."""

    message: str
    hint: str


class Close(Struct, frozen=True):
    """The window is closing."""


Intent = Generate | Stop | Served | Restart | Load | Unload | SpawnFailed | Close
INTENTS: tuple[type, ...] = get_args(Intent)
