"""WorkerClient: one worker process and its typed messages over stdin and stdout.

Call all methods on one asyncio loop (qasync's in the window). The client neither restarts the worker nor
interprets events: `events()` yields them and ends with one `WorkerExited`. A worker without an event for
`silence_s` seconds, or `starting_s` before its first one, yields one `WorkerSilent`; the caller decides
whether to kill it. Silence is measured in short waits of this process, so that its own suspension does not
count. Events are read even if nothing iterates `events()`, because `stop()` depends on heartbeats. Never
imports mlx.

`ask()` sends a command and returns its reply. `events()` yields what belongs to no `ask()`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import count
from typing import Any, TypeVar

from msgspec.structs import replace

from core.errors import DraftlightError, ProtocolError, RequestError, WorkerError, reason_of
from core.events import (
    Cancel,
    Command,
    DocumentEmbedded,
    Event,
    Failed,
    Gauges,
    Heartbeat,
    PrefillProgress,
    Queued,
    ReadingMap,
    Shutdown,
    Token,
    decode_event,
    encode,
    failure,
)
from core.events.codec import LINE_LIMIT_BYTES, TOO_LONG, BadLine, WorkerEvent, WorkerExited, WorkerSilent
from core.system.children import CHILD_FOLDER, child_command, child_environment

_LOG_LINES = 200
# Until its first event a worker imports its libraries: 4 to 12 s on a busy machine, longer without bytecode.
_STARTING_S = 180.0
# Priority of the window's worker. The window's frames go first: 99% of a scroll's within 15 ms, not 25, while
# two cores read. On macOS the quality of service of each thread says so.
WINDOW_NICENESS = 0 if sys.platform == "darwin" else 5
# A suspension of this process counts as one of these waits.
_WAITS_OF_A_SILENCE = 10
# A stopping worker that saves sends heartbeats once per second. It is killed this long after the last one, or
# this long after the request to stop.
_SAVING_HEARD_S = 5.0
_SAVING_LIMIT_S = 30.0
_PROGRESS = (Queued, PrefillProgress, ReadingMap, Token, Gauges)
_Reply = TypeVar("_Reply")


class CommandError(DraftlightError):
    """A command failed in the worker, which reports it as `failed`."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.message, failed.hint)
        self.failed = failed


class _Asked:
    """A command without a reply yet."""

    def __init__(self, progress: Callable[[Any], None]) -> None:
        self.progress = progress
        self.reply: asyncio.Future[Event] = asyncio.get_running_loop().create_future()

    def end(self, reply: Event | Exception) -> None:
        if self.reply.done():
            return
        if isinstance(reply, Exception):
            self.reply.set_exception(reply)
        else:
            self.reply.set_result(reply)


def _too_large(size_bytes: int) -> RequestError:
    return RequestError(
        f"The request has {size_bytes:,} bytes with its conversation and documents, more than the"
        f" {LINE_LIMIT_BYTES:,} that can be read.",
        "Use fewer or shorter documents, or start a new chat.",
        code="request-too-large",
    )


def worker_command() -> list[str]:
    return child_command("--worker")


class WorkerClient:
    """Call `start()`, iterate `events()` in one task, `send()` from any task, and `stop()` at the end.

    `niceness` is added to this process's.
    """

    def __init__(
        self,
        command: Sequence[str] | None = None,
        *,
        silence_s: float = 15.0,
        starting_s: float = _STARTING_S,
        niceness: int = 0,
    ) -> None:
        self._command = list(command or worker_command())
        self._limit_s, self._silence_s = starting_s, silence_s  # the former until the first event
        self._niceness = niceness
        self._process: asyncio.subprocess.Process | None = None
        self._heard: asyncio.Queue[WorkerEvent] = asyncio.Queue()
        self._event_task: asyncio.Task[None] | None = None
        self._stderr_task: asyncio.Task[None] | None = None
        # Since the last event.
        self._waits = 0
        self._saving_at: float | None = None
        self._log: deque[str] = deque(maxlen=_LOG_LINES)
        self._stopping = False
        self._asked: dict[str, _Asked] = {}  # by request id
        self._numbers = count(1)

    @property
    def pid(self) -> int | None:
        """The child's process id; None before `start()`."""
        return self._process.pid if self._process else None

    @property
    def log(self) -> tuple[str, ...]:
        """The last lines of the worker's stderr."""
        return tuple(self._log)

    async def start(self) -> None:
        """Starts the process. Raises `WorkerError` on failure."""
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
                f"The worker could not be started: {reason_of(error)}.", "Reinstall Draftlight."
            ) from error
        if self._niceness:
            with contextlib.suppress(OSError):  # it has ended
                # Before it starts threads, which inherit it.
                os.setpriority(os.PRIO_PROCESS, self._process.pid, os.nice(0) + self._niceness)
        self._stderr_task = asyncio.ensure_future(self._read_stderr())
        self._event_task = asyncio.ensure_future(self._read_events())

    def post(self, command: Command) -> None:
        """Sends one short command without waiting; it is lost if the process has ended."""
        process = self._process
        if process is not None and process.stdin is not None and process.returncode is None:
            process.stdin.write(encode(command))

    async def send(self, command: Command) -> None:
        """Sends one command. Raises `WorkerError` if the process ended, `CommandError` above the limit."""
        process = self._process
        if process is None or process.stdin is None or process.returncode is not None:
            raise WorkerError("The worker is not running.", "Restart it.")
        line = encode(command)
        if len(line) > LINE_LIMIT_BYTES:
            name, request = str(type(command).__struct_config__.tag), getattr(command, "request", "")
            raise CommandError(failure(_too_large(len(line)), command=name, request=request))
        try:
            process.stdin.write(line)
            await process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError) as error:
            raise WorkerError("The worker is not running.", "Restart it.") from error

    async def ask(
        self, command: Command, kind: type[_Reply], progress: Callable[[Any], None] = lambda event: None
    ) -> _Reply:
        """Sends `command` and returns its last event, which is a `kind`; `progress` gets those before it.

        A command without a request id gets one. Cancelling the task cancels the command. Raises
        `CommandError` if it fails, `WorkerError` if the process ends before.
        """
        request: str = command.request or f"ask-{next(self._numbers)}"  # type: ignore[union-attr]
        asked = self._asked[request] = _Asked(progress)
        try:
            await self.send(replace(command, request=request))
            reply = await asked.reply
        except asyncio.CancelledError:
            asked.progress = lambda event: None  # stays, for the events until its end
            self.post(Cancel(request))
            raise
        except (CommandError, WorkerError):
            self._asked.pop(request, None)
            raise
        if isinstance(reply, Failed):
            raise CommandError(reply)
        if not isinstance(reply, kind):
            raise ProtocolError(f"{type(command).__name__} was answered by {type(reply).__name__}.")
        return reply

    async def events(self) -> AsyncIterator[WorkerEvent]:
        """Yields all other events in order, `WorkerExited` last. Iterate once."""
        if self._process is None:
            raise WorkerError("The worker was not started.", "Call start() first.")
        while True:
            heard = await self._heard.get()
            yield heard
            if isinstance(heard, WorkerExited):
                self._end_asked()  # after the exit was handled
                return

    async def stop(self, timeout_s: float = 5.0) -> None:
        """Requests shutdown and kills the process after `timeout_s`, or later while it saves.

        May be called twice or before `start()`.
        """
        process = self._process
        if process is None:
            return
        self._stopping = True
        if process.returncode is None:
            self.post(Shutdown())  # not drained, because a blocked worker reads nothing
            await self._wait(process, timeout_s)
        for task in (self._event_task, self._stderr_task):
            if task:
                await task
        self._end_asked()

    async def _wait(self, process: asyncio.subprocess.Process, timeout_s: float) -> None:
        """Waits for the end of the process; kills it at the time limit."""
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
        if self._process and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def _read_events(self) -> None:
        """Reads events for `events()` until the process ends."""
        process = self._process
        assert process is not None
        assert process.stdout is not None
        # A separate task instead of a timeout per line, because an answer has hundreds of lines per second.
        noticing = asyncio.ensure_future(self._notice_silence())
        try:
            while True:
                try:
                    line = await process.stdout.readline()
                except ValueError:  # above the limit; the stream has discarded the line
                    self._heard.put_nowait(BadLine(TOO_LONG))
                else:
                    if not line:
                        break
                    self._hear(self._decoded(line))
                self._waits, self._limit_s = 0, self._silence_s
        finally:
            noticing.cancel()
            await asyncio.gather(noticing, return_exceptions=True)
        returncode = await process.wait()
        if self._stderr_task:
            await self._stderr_task
        self._heard.put_nowait(WorkerExited(returncode, _signal_name(returncode), self.log, self._stopping))

    def _hear(self, event: Event | BadLine) -> None:
        """Passes an event to its `ask()`, or else to `events()`."""
        request = getattr(event, "request", "")
        asked = self._asked.get(request)
        if isinstance(event, BadLine) or asked is None:
            self._heard.put_nowait(event)
        elif isinstance(event, _PROGRESS) or (
            isinstance(event, DocumentEmbedded) and event.state == "running"
        ):
            asyncio.get_running_loop().call_soon(asked.progress, event)  # its exceptions are the loop's
        else:
            del self._asked[request]
            asked.end(event)

    def _end_asked(self) -> None:
        ended, self._asked = self._asked, {}
        for asked in ended.values():
            asked.end(WorkerError("The worker ended before it replied.", "Try again."))

    async def _notice_silence(self) -> None:
        """Reports each silence once."""
        while True:
            await asyncio.sleep(self._silence_s / _WAITS_OF_A_SILENCE)
            self._waits += 1
            if self._waits == round(_WAITS_OF_A_SILENCE * self._limit_s / self._silence_s):
                self._heard.put_nowait(WorkerSilent(self._limit_s))

    def _decoded(self, line: bytes) -> Event | BadLine:
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
