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
from typing import Literal, get_args

import msgspec
from msgspec import Struct

from app.session.chats.chats import Chats
from app.store.copies import Backups
from app.store.faults import is_damage
from app.store.library import Home, Library
from core.errors import RequestError
from tests.app.store.chats import chat_of

Mode = Literal["off", "kill", "full-from", "full-until", "read-only-from"]
_MODES: tuple[Mode, ...] = get_args(Mode)


class Step(Struct, frozen=True):
    """Actions on `home`, in order, with the clock `ahead_s`; the failure is at the call with the number `at`.

    Actions: `save N`, `delete N`, `purge N`, `prefer NAME`, `load`, `remedy`, `backup`, `backup-if-due`,
    `beside`.
    """

    home: str
    actions: tuple[str, ...]
    mode: Mode = "off"
    at: int = 0
    ahead_s: int = 0


class Ended(Struct, frozen=True):
    """`calls` counts the system calls that changed files, of a child that was not killed.

    `read`: the chats that could be read at the start and at the end.
    """

    killed: bool
    calls: int = 0
    error: str = ""
    saved: bool = False
    read: tuple[str, ...] = ()


def run(step: Step) -> Ended:
    """Carries out the actions as a window does."""
    home = Home(Path(step.home))
    library = home.library
    chats = Chats(library, open_id=home.preferences.now.open_chat, steady_now=library.now)
    chats.purge_old()
    read = _read(library)
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
            _read(library)
        elif name == "remedy":
            remedy(library)
        elif name == "beside":
            library.keep_beside()
        elif name == "backup" or Backups(Path(step.home) / "chats.db").is_due(library.clock.read()[0]):
            library.flush()
            with contextlib.suppress(Exception):  # a full disk
                Backups(Path(step.home) / "chats.db").make()
    saved = library.flush()
    read &= _read(library) | {
        f"c{action.split()[1]}" for action in step.actions if action.startswith("purge")
    }
    return Ended(False, saved=home.close() and saved, read=tuple(read))


def _read(library: Library) -> set[str]:
    """Returns the chats that can be read."""
    found = set()
    for summary in library.summaries():
        with contextlib.suppress(KeyError, RequestError):
            found.add(library.load(summary.id).id)
    return found


def remedy(library: Library) -> None:
    """Presses the buttons of the banner, if it has some. Damage may be found by the writer."""
    if not library.flush() and library.failure and is_damage(library.failure):
        library.take_damage(library.failure)
    problem = library.problem
    if problem and problem.remedy == "restore":
        library.restore()
    elif problem and problem.remedy == "repair":
        for incomplete in (False, True):  # the second does nothing after a success
            with contextlib.suppress(RequestError):
                library.repair(incomplete=incomplete)


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
                ended = run(step)
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
