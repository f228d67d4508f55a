"""WorkerTalk: the real client and worker for campaigns, without an event loop in the campaign.

Every wait has a limit; what does not come in time is a `Broken`, and so is an end that nobody wanted.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TypeVar

from core.events import Command, Generate, Message
from core.events.codec import WorkerEvent, WorkerExited
from core.settings import Settings, assign
from core.worker.client import WorkerClient
from tests import forks
from tests.attack.support.variables import variables

T = TypeVar("T")


class Broken(Exception):
    """What was promised did not happen; the message says what."""


class WorkerTalk:
    """One worker after the other; `start()` begins a new one. `heard` is what the present one said."""

    def __init__(self, runner: asyncio.Runner, new_client: Callable[[], WorkerClient]) -> None:
        self._runner = runner
        self._new_client = new_client
        self.client = new_client()
        self._events: AsyncIterator[WorkerEvent] = self.client.events()
        self.heard: list[WorkerEvent] = []

    def start(self, *, cold: bool = True) -> None:
        """Unless `cold`, the worker is a fork where the system allows it (see `tests.forks`)."""
        self.client = self._new_client()
        with forks.executing() if cold else contextlib.nullcontext():
            self._runner.run(self.client.start())
        self._events = self.client.events()
        self.heard = []

    def send(self, *commands: Command) -> None:
        for command in commands:
            self._runner.run(self.client.send(command))

    def send_raw(self, line: bytes) -> None:
        async def write() -> None:
            process = self.client._process
            assert process is not None
            assert process.stdin is not None
            process.stdin.write(line + b"\n")
            await asyncio.wait_for(process.stdin.drain(), 30)

        self._runner.run(write())

    def until(
        self, kind: type[T] | tuple[type[T], ...], timeout_s: float = 60.0, where: Callable[[T], bool] = bool
    ) -> T:
        """Listen until something of `kind` is heard. Raises `Broken`."""

        async def listen() -> T:
            async for heard in self._events:
                self.heard.append(heard)
                if isinstance(heard, kind) and (where is bool or where(heard)):
                    return heard
                if isinstance(heard, WorkerExited):
                    raise Broken(
                        f"the worker ended ({heard.returncode} {heard.signal_name}): {heard.log[-3:]}"
                    )
            raise Broken("the worker was silent and ended")

        try:
            return self._runner.run(asyncio.wait_for(listen(), timeout_s))
        except TimeoutError:
            name = getattr(kind, "__name__", str(kind))
            raise Broken(f"no {name} within {timeout_s:g} s; last heard: {self.heard[-2:]}") from None

    def pause(self, seconds: float) -> None:
        self._runner.run(asyncio.sleep(seconds))

    def stop(self) -> None:
        self._runner.run(self.client.stop())

    @property
    def rss_mb(self) -> float:
        """What the worker holds in memory; 0 where the system does not say."""
        try:
            pages = Path(f"/proc/{self.client.pid}/statm").read_text().split()[1]
        except OSError:
            return 0.0
        return int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextlib.contextmanager
def talking(new_client: Callable[[], WorkerClient] = WorkerClient) -> Iterator[tuple[WorkerTalk, Path]]:
    """A talk that has not begun, and a folder of its own with the toy model in `toy`."""
    from tests.core.toy import write_toy_model

    forks.install()
    with (
        tempfile.TemporaryDirectory(prefix="draftlight-attack-") as name,
        variables(DRAFTLIGHT_HOME=str(Path(name) / "home")),
        asyncio.Runner() as runner,
    ):
        folder = Path(name)
        write_toy_model(folder / "toy")
        talk = WorkerTalk(runner, new_client)
        try:
            yield talk, folder
        finally:
            talk.stop()


def ask(request: str, text: str, **values: object) -> Generate:
    """A question with these settings, dots in their names as two underscores."""
    settings = Settings()
    for key, value in values.items():
        settings = assign(settings, key.replace("__", "."), value)
    return Generate(request, (Message("user", text),), settings)
