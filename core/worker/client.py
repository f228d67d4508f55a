"""WorkerClient: one child process, spoken to in typed messages over its stdin and stdout.

Lives on an asyncio loop (qasync's in the window, plain asyncio elsewhere); every method is
called on that loop. It restarts nothing and interprets nothing: `events()` yields what the
worker said, and last of all one `WorkerExited`. A worker that falls silent for `silence_s`
seconds yields one `WorkerSilent`; whoever listens decides whether to kill it. Silence is counted
in short waits of this process: while it was asleep or stopped, it could have heard nothing.
The worker is heard whether or not somebody listens: `stop()` must know that it is saving.
Never imports mlx.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections import deque
from collections.abc import AsyncIterator, Sequence

from core.errors import ProtocolError, WorkerError
from core.events import Command, Heartbeat, Shutdown, decode_event, encode
from core.events.codec import LINE_LIMIT_BYTES, TOO_LONG, BadLine, WorkerEvent, WorkerExited, WorkerSilent
from core.system.children import CHILD_FOLDER, child_command, child_environment

_LOG_LINES = 200
# A pause of this process, however long, passes for one of these waits.
_WAITS_OF_A_SILENCE = 10
# A worker that is being stopped and saves says so once a second. This long after it last did, or this
# long after it was asked to end, it is killed all the same.
_SAVING_HEARD_S = 5.0
_SAVING_LIMIT_S = 30.0


def worker_command() -> list[str]:
    """How to start a worker."""
    return child_command("--worker")


class WorkerClient:
    """Start it, listen to `events()` in one task, `send()` from any, `stop()` at the end."""

    def __init__(self, command: Sequence[str] | None = None, *, silence_s: float = 15.0) -> None:
        self._command = list(command or worker_command())
        self._silence_s = silence_s
        self._process: asyncio.subprocess.Process | None = None
        self._heard: asyncio.Queue[WorkerEvent] = asyncio.Queue()
        self._event_task: asyncio.Task[None] | None = None
        self._stderr_task: asyncio.Task[None] | None = None
        # Since something was heard.
        self._waits = 0
        self._saving_at: float | None = None
        self._log: deque[str] = deque(maxlen=_LOG_LINES)
        self._stopping = False

    @property
    def pid(self) -> int | None:
        """The child's process id; None before `start()`."""
        return self._process.pid if self._process else None

    @property
    def log(self) -> tuple[str, ...]:
        """The last lines of the worker's stderr."""
        return tuple(self._log)

    async def start(self) -> None:
        """Spawn the process. Raises `WorkerError` if it cannot be spawned."""
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=LINE_LIMIT_BYTES,
                env=child_environment(PYTHONUNBUFFERED="1"),
                cwd=CHILD_FOLDER,
            )
        except OSError as error:
            raise WorkerError(
                f"The worker could not be started: {error}.", "Reinstall Draftlight."
            ) from error
        self._stderr_task = asyncio.ensure_future(self._read_stderr())
        self._event_task = asyncio.ensure_future(self._read_events())

    async def send(self, command: Command) -> None:
        """Write one command. Raises `WorkerError` if the process is gone."""
        process = self._process
        if process is None or process.stdin is None or process.returncode is not None:
            raise WorkerError("The worker is not running.", "Restart it.")
        try:
            process.stdin.write(encode(command))
            await process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError) as error:
            raise WorkerError("The worker is not running.", "Restart it.") from error

    async def events(self) -> AsyncIterator[WorkerEvent]:
        """All that is heard, in order, ending with `WorkerExited`. Iterate once."""
        if self._process is None:
            raise WorkerError("The worker was not started.", "Call start() first.")
        while True:
            heard = await self._heard.get()
            yield heard
            if isinstance(heard, WorkerExited):
                return

    async def stop(self, timeout_s: float = 5.0) -> None:
        """Ask for an orderly end; kill after `timeout_s`, but wait while the worker says that it saves.

        Safe to call twice or before `start()`.
        """
        process = self._process
        if process is None:
            return
        self._stopping = True
        if process.returncode is None:
            if process.stdin is not None:
                # Not drained: a worker that is stuck reads nothing.
                process.stdin.write(encode(Shutdown()))
            await self._wait(process, timeout_s)
        for task in (self._event_task, self._stderr_task):
            if task:
                await task

    async def _wait(self, process: asyncio.subprocess.Process, timeout_s: float) -> None:
        """Until the process has ended; it is killed when its time is up."""
        clock = asyncio.get_running_loop().time
        asked_at = clock()
        ending = asyncio.ensure_future(process.wait())
        while not ending.done():
            until = asked_at + timeout_s
            if self._saving_at is not None:
                until = max(until, min(self._saving_at + _SAVING_HEARD_S, asked_at + _SAVING_LIMIT_S))
            left_s = until - clock()
            if left_s <= 0:
                self.kill()
            await asyncio.wait({ending}, timeout=left_s if left_s > 0 else None)

    def kill(self) -> None:
        """End the process at once."""
        if self._process and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def _read_events(self) -> None:
        """Whatever is heard, for `events()`, to the end of the process."""
        process = self._process
        assert process is not None
        assert process.stdout is not None
        # Beside the reading, not around each line: an answer's lines come by the hundred a second.
        noticing = asyncio.ensure_future(self._notice_silence())
        try:
            while True:
                try:
                    line = await process.stdout.readline()
                except ValueError:  # longer than the limit: the stream has dropped what it held
                    self._heard.put_nowait(BadLine(TOO_LONG))
                else:
                    if not line:
                        break
                    self._heard.put_nowait(self._decoded(line))
                self._waits = 0
        finally:
            noticing.cancel()
            await asyncio.gather(noticing, return_exceptions=True)
        returncode = await process.wait()
        if self._stderr_task:
            await self._stderr_task
        self._heard.put_nowait(WorkerExited(returncode, _signal_name(returncode), self.log, self._stopping))

    async def _notice_silence(self) -> None:
        """Says once of each silence that it is one."""
        while True:
            await asyncio.sleep(self._silence_s / _WAITS_OF_A_SILENCE)
            self._waits += 1
            if self._waits == _WAITS_OF_A_SILENCE:
                self._heard.put_nowait(WorkerSilent(self._silence_s))

    def _decoded(self, line: bytes) -> WorkerEvent:
        try:
            event = decode_event(line)
        except ProtocolError as error:
            return BadLine(error.message)
        if isinstance(event, Heartbeat):
            saving = event.activity == "saving"
            self._saving_at = asyncio.get_running_loop().time() if saving else None
        return event

    async def _read_stderr(self) -> None:
        assert self._process is not None
        assert self._process.stderr is not None
        while True:
            try:
                line = await self._process.stderr.readline()
            except ValueError:
                self._log.append(TOO_LONG)
                continue
            if not line:
                return
            self._log.append(line.decode("utf-8", "replace").rstrip())


def _signal_name(returncode: int) -> str:
    if returncode >= 0:
        return ""
    try:
        return signal.Signals(-returncode).name
    except ValueError:
        return f"signal {-returncode}"
