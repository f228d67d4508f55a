"""WorkerLink: owns the worker's process for the window, one `WorkerClient` after the other.

What is heard goes to one callback, in order, on the loop. Commands given to `send()` are
written in order by one task, so callers never wait. A worker that is replaced is muted first:
of each life the callback hears a beginning, and an end only if it came by itself.
`close()` leaves no process and no task behind. Nothing here interprets anything.

Every method needs the running loop (a task made before qasync's loop runs fails, qasync #121).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence

from app.session.turn.intents import SpawnFailed
from core.errors import WorkerError
from core.events import Command
from core.events.codec import WorkerEvent, WorkerExited
from core.worker.client import WorkerClient

# A worker that is replaced because it hangs will not answer a polite request.
_REPLACE_TIMEOUT_S = 1.0
_CLOSE_TIMEOUT_S = 5.0
_Waiting = tuple[Command, Callable[[], Awaitable[None]] | None]


class WorkerLink:
    """`hear` gets all that is heard, and `SpawnFailed` if there is no process to hear.

    `started` is a client that was started already: the first `start()` takes it, or `close()` ends it.
    """

    def __init__(
        self,
        hear: Callable[[WorkerEvent | SpawnFailed], None],
        command: Sequence[str] | None = None,
        *,
        silence_s: float = 15.0,
        started: WorkerClient | None = None,
    ) -> None:
        self._hear = hear
        self._started = started
        self._command = command
        self._silence_s = silence_s
        self._life: asyncio.Task[None] | None = None
        self._client: WorkerClient | None = None
        self._outbox: asyncio.Queue[_Waiting] | None = None
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The worker's process id; None if there is none."""
        return self._client.pid if self._client else None

    def start(self) -> None:
        """Start a worker, after the end of the one that may be there."""
        if not self._closed:
            self._life = asyncio.ensure_future(self._live(self._life))

    # Replacing is starting: each life begins by seeing the one before it out.
    restart = start

    def send(self, command: Command, after: Callable[[], Awaitable[None]] | None = None) -> None:
        """Write `command` once all earlier ones are written, and `after` was waited for.

        Lost if the worker is gone.
        """
        if self._outbox is not None:
            self._outbox.put_nowait((command, after))

    @contextlib.contextmanager
    def heard_by(self, hear: Callable[[WorkerEvent | SpawnFailed], None]) -> Iterator[None]:
        """Meanwhile `hear` gets what is heard, and nobody else: for measuring."""
        usual, self._hear = self._hear, hear
        try:
            yield
        finally:
            self._hear = usual

    async def close(self) -> None:
        """End the worker in an orderly way and wait for everything. Safe to call twice."""
        self._closed = True
        life, self._life = self._life, None
        started, self._started = self._started, None
        if started is not None:
            await started.stop(_CLOSE_TIMEOUT_S)
        if life is not None:
            await self._end(life, _CLOSE_TIMEOUT_S)

    async def _live(self, previous: asyncio.Task[None] | None) -> None:
        """One worker from its start to its end."""
        if previous is not None:
            await self._end(previous, _REPLACE_TIMEOUT_S)
        if self._life is not asyncio.current_task():
            return  # replaced or closed before it began
        started, self._started = self._started, None
        client = started or WorkerClient(self._command, silence_s=self._silence_s)
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
            await client.stop(_REPLACE_TIMEOUT_S)  # replaced or closed while it was being started
            return
        writer = asyncio.ensure_future(_write(client, outbox))
        try:
            async for heard in client.events():
                if self._client is not client:
                    continue
                if isinstance(heard, WorkerExited):
                    self._client = self._outbox = None  # who hears of the end finds no process
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

    def _tell(self, heard: WorkerEvent | SpawnFailed) -> None:
        """A bug in the listener is the loop's to report; it must not end the listening."""
        try:
            self._hear(heard)
        except Exception as error:
            _report("The window failed on what it heard.", error)

    async def _end(self, life: asyncio.Task[None], timeout_s: float) -> None:
        """Mute the worker of `life`, stop it, and wait until its task is done."""
        client, self._client, self._outbox = self._client, None, None
        if client is not None:
            await client.stop(timeout_s)
        await life


async def _write(client: WorkerClient, outbox: asyncio.Queue[_Waiting]) -> None:
    """An exception of one command is reported; later commands, Cancel above all, are still written."""
    while True:
        command, after = await outbox.get()
        if after is not None:
            try:
                await after()
            except Exception as error:
                _report(f"{type(command).__name__} was sent without what it waits for.", error)
        try:
            await client.send(command)
        except WorkerError:
            pass  # the reader hears the end of the process, with its reason
        except Exception as error:
            _report(f"{type(command).__name__} could not be sent.", error)


def _report(message: str, error: Exception) -> None:
    context = {"message": message, "exception": error}
    asyncio.get_running_loop().call_exception_handler(context)
