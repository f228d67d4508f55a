"""WorkerLink: owns the worker's process for the window, one `WorkerClient` after the other.

All events but the replies to `ask()` go to one callback, in order, on the loop. One task writes the commands
of `send()` in order, so callers never wait. A worker is muted before it is replaced: the callback receives
its start, and its exit only if it was unexpected. `close()` leaves no process and no task. Nothing here
interprets events.

Every method needs the running loop (a task created before qasync's loop runs fails, qasync #121).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from app.session.turn.intents import SpawnFailed
from core.errors import WorkerError
from core.events import Command
from core.events.codec import WorkerEvent, WorkerExited
from core.worker.client import WINDOW_NICENESS, CommandError, WorkerClient

# A worker that hangs does not answer a Shutdown command.
_REPLACE_TIMEOUT_S = 1.0
_CLOSE_TIMEOUT_S = 5.0
_Waiting = tuple[Command, Callable[[], Awaitable[None]] | None]
_Reply = TypeVar("_Reply")


class WorkerLink:
    """Set `hear` before `start()`: it receives all events, and `SpawnFailed` if no process can be started.

    `started` is a client that was started already: the first `start()` uses it, or `close()` ends it.
    """

    def __init__(
        self,
        command: Sequence[str] | None = None,
        *,
        silence_s: float = 15.0,
        started: WorkerClient | None = None,
    ) -> None:
        self.hear: Callable[[WorkerEvent | SpawnFailed], None] = lambda heard: None
        self._started = started
        self._command = command
        self._silence_s = silence_s
        self._life: asyncio.Task[None] | None = None
        self._client: WorkerClient | None = None
        self._outbox: asyncio.Queue[_Waiting] | None = None
        self._closed = False
        self._work: set[asyncio.Task[None]] = set()

    @property
    def pid(self) -> int | None:
        """The worker's process id; None if there is none."""
        return self._client.pid if self._client else None

    def start(self) -> None:
        """Start a worker, after the end of the current one if any, whose later events are dropped."""
        if not self._closed:
            # Muted at once: its hello would be taken for that of the next one.
            old, self._client, self._outbox = self._client, None, None
            # Each worker's task first ends the one before it.
            self._life = asyncio.ensure_future(self._live(self._life, old))

    def send(self, command: Command, after: Callable[[], Awaitable[None]] | None = None) -> None:
        """Write `command` after all earlier ones and after awaiting `after`.

        The command is lost if the worker has exited.
        """
        if self._outbox is not None:
            self._outbox.put_nowait((command, after))

    async def ask(
        self, command: Command, kind: type[_Reply], progress: Callable[[Any], None] = lambda event: None
    ) -> _Reply:
        """Send `command` and return its reply; see `WorkerClient.ask`."""
        if self._client is None:
            raise WorkerError("The worker is not running.", "Restart it.")
        return await self._client.ask(command, kind, progress)

    def begin(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run `work`, which sends commands to the worker. A failed command is passed to `hear`.

        It ends without a report if the worker exits or the task is cancelled.
        """
        task = asyncio.ensure_future(work)
        self._work.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._work.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, CommandError):
            self._tell(replace(error.failed, request=""))
        elif isinstance(error, Exception) and not isinstance(error, WorkerError):
            _report("The window failed to handle a reply of the worker.", error)

    async def close(self) -> None:
        """Shut the worker down and wait for everything. Safe to call twice."""
        self._closed = True
        life, self._life = self._life, None
        client, self._client, self._outbox = self._client, None, None
        started, self._started = self._started, None
        if started is not None:
            await started.stop(_CLOSE_TIMEOUT_S)
        if life is not None:
            await _end(life, client, _CLOSE_TIMEOUT_S)
        if self._work:
            await asyncio.wait(self._work)

    async def _live(self, previous: asyncio.Task[None] | None, old: WorkerClient | None) -> None:
        """Run one worker from its start to its exit, after the end of `previous` with its client."""
        if previous is not None:
            await _end(previous, old, _REPLACE_TIMEOUT_S)
        if self._life is not asyncio.current_task():
            return  # replaced or closed before it started
        started, self._started = self._started, None
        client = started or WorkerClient(self._command, silence_s=self._silence_s, niceness=WINDOW_NICENESS)
        outbox: asyncio.Queue[_Waiting] = asyncio.Queue()
        self._client, self._outbox = client, outbox
        try:
            if started is None:
                await client.start()
        except WorkerError as error:
            if self._client is client:
                self._client = self._outbox = None
                self._tell(SpawnFailed(error.message, error.hint))
            return
        if self._client is not client:
            await client.stop(_REPLACE_TIMEOUT_S)  # replaced or closed during its start
            return
        writer = asyncio.ensure_future(self._write(client, outbox))
        try:
            async for heard in client.events():
                if self._client is not client:
                    continue
                if isinstance(heard, WorkerExited):
                    self._client = self._outbox = None  # the receiver of the exit finds no process
                self._tell(heard)
        finally:
            writer.cancel()
            try:
                with contextlib.suppress(asyncio.CancelledError):
                    await writer
            finally:
                await client.stop()
                if self._client is client:
                    self._client = self._outbox = None

    async def _write(self, client: WorkerClient, outbox: asyncio.Queue[_Waiting]) -> None:
        """Write the queued commands; one that is too large is reported as failed. An exception is reported,
        and later commands, such as Cancel, are still written.
        """
        while True:
            command, after = await outbox.get()
            if after is not None:
                try:
                    await after()
                except Exception as error:
                    _report(f"{type(command).__name__} was sent although its precondition failed.", error)
            try:
                await client.send(command)
            except CommandError as error:
                self._tell(error.failed)
            except WorkerError:
                pass  # the reader reports the exit and its reason
            except Exception as error:
                _report(f"{type(command).__name__} could not be sent.", error)

    def _tell(self, heard: WorkerEvent | SpawnFailed) -> None:
        """Call the receiver. Its exception is reported to the loop and does not stop the link."""
        try:
            self.hear(heard)
        except Exception as error:
            _report("The window failed to handle an event of the worker.", error)


async def _end(life: asyncio.Task[None], client: WorkerClient | None, timeout_s: float) -> None:
    """Stop the worker of `life`, and wait for its task."""
    if client is not None:
        await client.stop(timeout_s)
    await life


def _report(message: str, error: Exception) -> None:
    context = {"message": message, "exception": error}
    asyncio.get_running_loop().call_exception_handler(context)
