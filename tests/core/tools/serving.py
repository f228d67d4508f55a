"""A ToolsClient with its real process for tests, and servers to start with it."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from core.tools.client import ToolsClient
from core.tools.messages import ServerEntry, ServerLog, ServerState

HERE = Path(__file__).parent
WAIT_S = 60
_T = TypeVar("_T")


class Serving:
    """`client`, all events that it had, and `run` for work on its loop."""

    def __init__(self) -> None:
        self.events: list[ServerState | ServerLog] = []
        self.runner = asyncio.Runner()
        self.client = ToolsClient(self.events.append)

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        return self.runner.run(asyncio.wait_for(work, WAIT_S))

    def phases(self, server: str) -> list[str]:
        """The phases of a server without repetitions."""
        found: list[str] = []
        for event in self.events:
            if isinstance(event, ServerState) and event.server == server and found[-1:] != [event.phase]:
                found.append(event.phase)
        return found

    def lines(self, server: str) -> list[str]:
        return [
            event.line for event in self.events if isinstance(event, ServerLog) and event.server == server
        ]

    def close(self) -> None:
        self.run(self.client.close())
        self.runner.close()


def plain(folder: Path, *words: str, name: str = "plain", **env: str) -> ServerEntry:
    """The entry of a `plain_server.py` that writes into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    return ServerEntry(name, sys.executable, (str(HERE / "plain_server.py"), str(folder), *words), env)


def noted(folder: Path, name: str) -> list[str]:
    """The lines that a server wrote into a file."""
    path = folder / name
    return path.read_text("utf-8").splitlines() if path.exists() else []


async def until(holds: Callable[[], object]) -> None:
    """Waits until `holds()`."""
    while not holds():
        await asyncio.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not collected does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z" if stat.parent.parent.exists() else True
    except OSError:  # it has ended meanwhile
        return False


def wait_until(holds: Callable[[], object]) -> None:
    """Waits until `holds()`, without a loop."""
    ends_at = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < ends_at, "it did not happen"
        time.sleep(0.02)


async def outcome(work: Awaitable[Any]) -> Any:
    """What `work` returns or raises."""
    try:
        return await work
    except Exception as error:
        return error
