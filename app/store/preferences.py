"""Preferences: what the window remembers between runs, in one JSON file beside the chats.

Written whole to a temporary file and renamed, so it is the old one or the new one. A file that
cannot be read is set aside under another name and the defaults hold; what is in it that this
Draftlight does not know, or does not allow any more, is left out.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from app.session.chats.overrides import Override, apply, differences
from app.session.chats.presets import Preset, find
from app.store import strings
from app.store.packing import forgiving
from core.settings import Settings, WindowSettings
from core.settings.cluster import Cluster

_FILE = "preferences.json"


# Far beyond any desktop, and what Qt takes without an error.
_FAR_PX = 1_000_000
_Place = Annotated[int, Meta(ge=-_FAR_PX, le=_FAR_PX)]
_Size = Annotated[int, Meta(ge=1, le=_FAR_PX)]


class WindowPlace(Struct, frozen=True):
    """Where the window was, in px of the desktop, and which panels stood beside the chat."""

    x: _Place
    y: _Place
    width: _Size
    height: _Size
    maximized: bool = False
    sidebar: bool = True
    inspector: bool = True


class Preferences(Struct, frozen=True):
    """`defaults` are the settings that differ from Draftlight's own; chats start with them.

    `settings` are the app's own, for all chats. `rehearse` names the models that do so while idle.
    `model` is loaded at the start, empty for the starter model; over the machines of `cluster` if `together`.
    `presets` are the person's own, `preset` is the one that new chats start with, empty for none.
    `gauges_pinned`: all gauges are shown, also between answers.
    `model_offered`: the offer to download a larger model was answered.
    `cluster` are the machines that can run a model together with this one.
    """

    version: int = 1
    open_chat: str = ""
    defaults: tuple[Override, ...] = ()
    settings: WindowSettings = WindowSettings()
    looked_for_update_s: float = 0.0  # since 1970
    rehearse: tuple[str, ...] = ()
    window: WindowPlace | None = None
    model: str = ""
    together: bool = False
    presets: tuple[Preset, ...] = ()
    preset: str = ""
    cluster: Cluster = Cluster()
    model_offered: bool = False
    gauges_pinned: bool = False


class PreferencesFile:
    """The preferences of `folder`; without one they last for this run only.

    `problem` says why the file could not be read or written, empty if nothing is wrong.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._path = folder / _FILE if folder else None
        self._now = Preferences()
        self.problem = ""
        if self._path and self._path.exists():
            self._read(self._path)

    @property
    def now(self) -> Preferences:
        """As they stand."""
        return self._now

    @property
    def defaults(self) -> Settings:
        """The settings that a chat has unless it, or its model, says otherwise."""
        return self.defaults_over(Settings())

    def defaults_over(self, base: Settings) -> Settings:
        """What a person chose for all chats, over a model's `base`."""
        return apply(base, self._now.defaults)[0]

    def first_preset(self) -> Preset | None:
        """What new chats start with; None for the defaults alone."""
        return find(self._now.preset, self._now.presets)

    def set_defaults(
        self, settings: Settings, base: Settings | None = None, chosen: Collection[str] = ()
    ) -> None:
        """Let chats start with `settings`, as far as `base` is not that already; `chosen` in any case."""
        self.change(defaults=differences(settings, base or Settings(), chosen))

    def change(self, **fields: Any) -> None:
        """Take over other values of some fields and write them, if anything is different."""
        changed = replace(self._now, **fields)
        if changed != self._now:
            self._now = changed
            self._write()

    def _read(self, path: Path) -> None:
        try:
            found: Preferences = forgiving(msgspec.json.decode(path.read_bytes()), Preferences)
            refused = apply(Settings(), found.defaults)[1]
            self._now = replace(found, defaults=tuple(each for each in found.defaults if each not in refused))
        except (OSError, ValueError, RecursionError) as error:
            self.problem = _reason(error)
            with contextlib.suppress(OSError):
                os.replace(path, path.with_name("preferences-damaged.json"))

    def _write(self) -> None:
        if self._path is None:
            return
        fresh = self._path.with_name(f"{_FILE}.{os.getpid()}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with fresh.open("wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(self._now)))
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, self._path)
            self.problem = ""
        except OSError as error:
            self.problem = str(error)
            with contextlib.suppress(OSError):
                fresh.unlink(missing_ok=True)


def _reason(error: Exception) -> str:
    """Why the file could not be read, in words."""
    if isinstance(error, RecursionError):
        return strings.TOO_DEEP.rstrip(".")
    if isinstance(error, UnicodeDecodeError):
        return strings.NOT_TEXT
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)
