"""Runs steps of the chat store in forked processes whose system calls fail: `python -m … LIBRARY`.

Reads one JSON line a step, forks, and writes how the child ended. The parent has imported everything, so that
a step takes milliseconds, and its calls are those of the store alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import traceback
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from app.session.chats.chats import Chats
from app.store.copies import Backups
from app.store.library import Home
from core.errors import RequestError
from tests.app.store.chats import chat_of

Mode = Literal["off", "kill", "full-from", "full-until"]
_MODES: tuple[Mode, ...] = ("off", "kill", "full-from", "full-until")


class Step(Struct, frozen=True):
    """Actions on `home`, in order, with the clock `ahead_s`; the failure is at the call with the number `at`.

    Actions: `save N`, `delete N`, `purge N`, `prefer NAME`, `load`, `remedy`, `backup`, `backup-if-due`.
    """

    home: str
    actions: tuple[str, ...]
    mode: Mode = "off"
    at: int = 0
    ahead_s: int = 0


class Ended(Struct, frozen=True):
    """`calls` counts the system calls that changed files, of a child that was not killed."""

    killed: bool
    calls: int = 0
    error: str = ""
    saved: bool = False


def run(step: Step) -> bool:
    """Carries out the actions as a window does. Returns whether everything was saved."""
    home = Home(Path(step.home))
    library = home.library
    chats = Chats(library, open_id=home.preferences.now.open_chat, steady_now=library.now)
    chats.purge_old()
    for action in step.actions:
        name, _, rest = action.partition(" ")
        if name == "save":
            chats.keep(chat_of(int(rest), turns=3, tokens=60))
        elif name == "delete":
            chats.delete(f"c{rest}")
        elif name == "purge":
            chats.purge(f"c{rest}")
        elif name == "prefer":
            home.preferences.change(model=rest)
        elif name == "load":
            for summary in library.summaries():
                with contextlib.suppress(KeyError, RequestError):
                    library.load(summary.id)
        elif name == "remedy":
            remedy(library)
        elif name == "backup" or Backups(Path(step.home) / "chats.db").is_due(library.clock.read()[0]):
            library.flush()
            with contextlib.suppress(Exception):  # a full disk
                Backups(Path(step.home) / "chats.db").make()
    saved = library.flush()
    return home.close() and saved


def remedy(library) -> None:  # type: ignore[no-untyped-def]
    """Presses the buttons of the banner, if it has some."""
    problem = library.problem
    if problem and problem.remedy == "restore":
        library.restore()
    elif problem and problem.remedy == "repair":
        try:
            library.repair()
        except RequestError:
            with contextlib.suppress(RequestError):
                library.repair(incomplete=True)


def main() -> None:
    calls = ctypes.CDLL(sys.argv[1])
    for line in sys.stdin:
        step = msgspec.json.decode(line, type=Step)
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            calls.failing_calls_shift(step.ahead_s)
            calls.failing_calls_set(_MODES.index(step.mode), step.at)
            try:
                ended = Ended(False, saved=run(step))
            except BaseException:
                ended = Ended(False, error=traceback.format_exc())
            count = calls.failing_calls_count()
            calls.failing_calls_set(0, 0)
            os.write(writing, msgspec.json.encode(msgspec.structs.replace(ended, calls=count)))
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            answer = pipe.read()
        os.waitpid(pid, 0)
        sys.stdout.buffer.write((answer or msgspec.json.encode(Ended(True))) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
