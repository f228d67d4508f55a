"""Kills a process at each system call of a save, and looks at what the next start finds.

    python -m tests.core.tables.crashing FOLDER

Prints one JSON line a killed save: the call, whether it died before, in the middle of or after it,
and what was found. A process of its own, with one thread, so that it may fork.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from core.system import files as system_files
from tests.core.tables.support import FILE, Home, content, files

CALLS = ("open", "write", "fsync", "close", "replace", "rename", "unlink", "listdir", "stat")
MOMENTS = ("before", "within", "after")


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


class Unbuffered:
    """A file whose writes are calls of `os.write`, so that one of them can be the last."""

    def __init__(self, path: Path, _mode: str, opener: Callable[[str, int], int]) -> None:
        self._descriptor = opener(str(path), os.O_WRONLY)

    def __enter__(self) -> Unbuffered:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def fileno(self) -> int:
        return self._descriptor

    def write(self, data: bytes) -> int:
        return os.write(self._descriptor, data)

    def flush(self) -> None:
        pass


def sabotage(number: int, moment: str, report: int) -> None:
    """Make the `number`-th system call of this process its last; its name goes to `report`."""
    count = 0
    write = os.write

    def deadly(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            nonlocal count
            count += 1
            if count != number:
                return call(*arguments, **named)
            write(report, name.encode())
            if moment == "within" and name == "write":
                write(arguments[0], memoryview(arguments[1])[: len(arguments[1]) // 2])
            if moment == "after":
                call(*arguments, **named)
            die()

        return wrapped

    vars(system_files)["open"] = Unbuffered
    for name in CALLS:
        setattr(os, name, deadly(name, getattr(os, name)))


def two_generations(folder: Path) -> None:
    home = Home(folder).open().learn(20)
    home.memory.save()
    home.learn(20, seed=1).memory.close()


def killed_save(folder: Path, number: int, moment: str) -> str:
    """The name of the call that was the last; empty if the save came to its end."""
    end, start = os.pipe()
    child = os.fork()
    if child == 0:
        home = Home(folder).open().learn(20, seed=2)
        sabotage(number, moment, start)
        home.memory.close()
        os._exit(0)
    os.close(start)
    _, status = os.waitpid(child, 0)
    name = os.read(end, 100).decode()
    os.close(end)
    assert os.WIFSIGNALED(status) == bool(name), status
    return name


def main(root: Path) -> None:
    two_generations(root / "old")
    old = content(Home(root / "old").open().table)
    shutil.copytree(root / "old", root / "whole")
    killed_save(root / "whole", 0, "never")
    new = content(Home(root / "whole").open().table)
    number = 0
    while True:
        number += 1
        for moment in MOMENTS:
            folder = root / f"{number}-{moment}"
            shutil.copytree(root / "old", folder)
            name = killed_save(folder, number, moment)
            if not name:
                return
            home = Home(folder).open()
            found = content(home.table)
            home.learn(5, seed=3).memory.close()
            again = content(Home(folder).open().table)
            print(
                json.dumps(
                    {
                        "call": name,
                        "moment": moment,
                        "found": "old" if found == old else "new" if found == new else "neither",
                        "notes": home.notes,
                        "went_on": len(again) > len(found) and files(folder) == [FILE, f"{FILE}.previous"],
                    }
                )
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
