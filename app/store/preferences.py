"""Preferences: the window's state and settings between runs, in one JSON file next to the chats.

The file is replaced atomically, on a thread, because an fsync can take longer than a frame. Failed
writes are retried. An unreadable file is renamed and the defaults are used; values that this
version does not support or allow are ignored.
"""

from __future__ import annotations

import contextlib
import errno
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from app.session.chats.presets import Override, Preset, apply, differences, find
from app.session.tools.permission import Allowance
from app.store import strings
from app.store.packing import forgiving
from core.errors import reason_of
from core.events.wire import well_formed_record
from core.settings import Settings, WindowSettings
from core.system.files import open_regular, set_aside, write_atomic
from core.system.private import make_folder
from core.tools.messages import ServerEntry

_FILE = "preferences.json"
_FLUSH_S = 5.0
_RETRY_S = 3.0

# Far beyond any desktop, and accepted by Qt without an error.
_FAR_PX = 1_000_000
_Place = Annotated[int, Meta(ge=-_FAR_PX, le=_FAR_PX)]
_Size = Annotated[int, Meta(ge=1, le=_FAR_PX)]


class WindowPlace(Struct, frozen=True):
    """The window's frame, in px of the desktop, and which panels were shown next to the chat."""

    x: _Place
    y: _Place
    width: _Size
    height: _Size
    maximized: bool = False
    sidebar: bool = True
    inspector: bool = True


class Preferences(Struct, frozen=True):
    """`defaults` are the settings that differ from Draftlight's own; chats start with them.

    `settings` are the app's own, for all chats.
    `model` is loaded at the start, empty for the starter model.
    `presets` are the person's own.
    `load_deaths`: as in `Link`, for the next start of the app.
    `model_offered`: the offer to download a larger model was answered.
    `tool_allowances` are the permissions of tool calls that last longer than one call.
    `tool_servers` are without the values of their secrets, `tool_servers_on` the names of those that are on.
    `erase_chats` and `erase_vectors` are still to be erased by the worker: ids of chats, digests of texts.
    """

    version: int = 1
    open_chat: str = ""
    defaults: tuple[Override, ...] = ()
    settings: WindowSettings = WindowSettings()
    window: WindowPlace | None = None
    model: str = ""
    load_deaths: int = 0
    presets: tuple[Preset, ...] = ()
    model_offered: bool = False
    tool_allowances: tuple[Allowance, ...] = ()
    tool_servers: tuple[ServerEntry, ...] = ()
    tool_servers_on: tuple[str, ...] = ()
    erase_chats: tuple[str, ...] = ()
    erase_vectors: tuple[str, ...] = ()


class PreferencesFile:
    """The preferences of `folder`; without one they last for this run only. For one thread.

    `problem` is the reason why the file could not be read or written; empty if both worked.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._path = folder / _FILE if folder else None
        self._now = Preferences()
        self.problem = ""
        self._unreadable = False  # the file could not be renamed
        self._wake = threading.Condition()
        self._waiting: Preferences | None = None
        self._thread: threading.Thread | None = None
        self._writing = self._failing = self._hurry = self._closing = False
        self._failed: Callable[[str], None] = lambda problem: None
        if self._path and self._path.exists():
            self._read(self._path)

    @property
    def now(self) -> Preferences:
        """The current values."""
        return self._now

    @property
    def defaults(self) -> Settings:
        """The settings of a chat without its own, unless its model has others."""
        return self.defaults_over(Settings())

    def defaults_over(self, base: Settings) -> Settings:
        """Returns `base`, a model's settings, with the person's defaults for all chats applied."""
        return apply(base, self._now.defaults)[0]

    def find_preset(self, name: str) -> Preset | None:
        """Returns the preset `name`, built in or the person's own; None if there is none."""
        return find(name, self._now.presets)

    def set_defaults(
        self,
        settings: Settings,
        base: Settings | None = None,
        chosen: Collection[str] = (),
    ) -> None:
        """Makes `settings` the defaults of new chats: differences from `base`, and the keys in `chosen`."""
        self.change(defaults=differences(settings, base or Settings(), chosen))

    def listen(self, failed: Callable[[str], None]) -> None:
        """Calls `failed` on the writing thread: with the reason when writing begins to fail, else empty."""
        self._failed = failed

    def change(self, **fields: Any) -> None:
        """Replaces the values of some fields; a thread writes them soon, if any differs."""
        changed = replace(self._now, **fields)
        if changed == self._now:
            return
        self._now = changed
        if self._path is None:
            return
        with self._wake:
            self._waiting = changed
            self._wake.notify_all()
            if not self._writing:
                self._writing = True
                self._thread = threading.Thread(target=self._write, args=(self._path,), daemon=True)
                self._thread.start()

    def flush(self, timeout_s: float = _FLUSH_S) -> bool:
        """Waits until everything is written; False if that fails or takes longer than `timeout_s`."""
        with self._wake:
            self._hurry = True
            self._wake.notify_all()
            self._wake.wait_for(lambda: not self._writing or not self._hurry, timeout_s)
            return not self._writing

    def close(self) -> bool:
        """Tries a last time to write what waits. False if that fails. Safe to call twice."""
        with self._wake:
            self._closing = True
            self._wake.notify_all()
        if self._thread:
            self._thread.join(_FLUSH_S)
        return self._waiting is None

    def _read(self, path: Path) -> None:
        try:
            with open_regular(path) as file:
                found: Preferences = forgiving(msgspec.json.decode(file.read()), Preferences)
            refused = apply(Settings(), found.defaults)[1]
            self._now = replace(found, defaults=tuple(each for each in found.defaults if each not in refused))
        except (OSError, ValueError, RecursionError) as error:
            self.problem = reason_of(error)
            self._unreadable = True
            with contextlib.suppress(OSError):
                self._set_aside(path)

    def _set_aside(self, path: Path) -> None:
        set_aside(path, "damaged")
        self._unreadable = False

    def _write(self, path: Path) -> None:
        """Writes until nothing waits, on the thread; later changes replace waiting ones."""
        while True:
            with self._wake:
                waiting, last = self._waiting, self._closing
            try:
                make_folder(path.parent)
                if self._unreadable:
                    self._set_aside(path)
                write_atomic(path, msgspec.json.format(msgspec.json.encode(well_formed_record(waiting))))
                error = ""
            except Exception as failed:  # any error: without the thread nothing would be written any more
                is_full = getattr(failed, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
                error = strings.DISK_FULL if is_full else f"{reason_of(failed)}."
            with self._wake:
                turned, self._failing = bool(error) != self._failing, bool(error)
                self.problem, self._hurry = error, self._hurry and not error
                if not error and self._waiting is waiting:
                    self._waiting = None
                done = last or self._waiting is None
                self._writing = not done
                self._wake.notify_all()
            if turned:
                self._failed(error)
            if done:
                return
            if error:
                with self._wake:
                    self._wake.wait_for(lambda: self._closing or self._hurry, _RETRY_S)
