"""Stdio: a server's process, its messages as the SDK's streams, its log, and how its group is ended.

The SDK's own transport buffers a line of any length and hides the process, so it is not used.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types
from mcp.shared.message import SessionMessage

from core.errors import reason_of
from core.events.wire import well_formed_json
from core.system.children import CHILD_FOLDER
from core.tools.host.programs import find_program, server_environment
from core.tools.messages import ServerEntry, ToolsError

_PIECE_BYTES = 64 * 1024
# Limit of one message. A result may have 8 MB of images as base64.
_MESSAGE_BYTES = 16 * 1024 * 1024
# Timeout of one write that the server does not read.
_WRITE_S = 30.0
_LINE_CHARACTERS = 2000
_LINES_PER_SECOND = 50
# Seconds to wait for the end after closing stdin, after SIGTERM, after SIGKILL.
_ENDS = ((1.5, signal.SIGTERM), (1.0, signal.SIGKILL), (1.0, None))
_LOOK_S = 0.01
_EXIT_S = 0.5


class ServerProcess:
    """A server that communicates by stdin and stdout, in a separate session and process group.

    `log` gets lines of its stderr, and those of its stdout that are not messages; `too_long` gets the size of
    a message above the limit, which was dropped. `ended` is set when nothing more can be read. Call
    everything on one loop.
    """

    def __init__(
        self, process: asyncio.subprocess.Process, log: Callable[[str], None], too_long: Callable[[int], None]
    ) -> None:
        self._process = process
        self._log = LogLines(log)
        self._too_long = too_long
        self._reading_log = asyncio.ensure_future(self._read_log())
        self.pid = process.pid
        self.ended = asyncio.Event()

    @property
    def status(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        return self._process.returncode

    @classmethod
    async def start(
        cls, entry: ServerEntry, log: Callable[[str], None], too_long: Callable[[int], None]
    ) -> ServerProcess:
        """Starts the process. Raises `ToolsError` if the program is missing or cannot be started."""
        environment = server_environment(entry)
        program = find_program(entry, environment)
        try:
            process = await asyncio.create_subprocess_exec(
                program,
                *entry.args,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment,
                cwd=CHILD_FOLDER,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise ToolsError(
                f"“{entry.command}” could not be started: {reason_of(error)}.", "Check the command."
            ) from error
        return cls(process, log, too_long)

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[Any, Any]]:
        """The SDK's pair of streams. The end of the process's output ends the read stream."""
        received_in, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        sent, sent_out = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read_messages, received_in)
            tasks.start_soon(self._write_messages, sent_out, received_in)
            tasks.start_soon(self._watch_exit, received_in)
            try:
                yield received, sent
            finally:
                tasks.cancel_scope.cancel()
                for stream in (received, received_in, sent, sent_out):
                    stream.close()

    async def exited(self) -> None:
        """Waits a moment for the exit status of a process whose output ended."""
        until = time.monotonic() + _EXIT_S
        while self.status is None and time.monotonic() < until:
            await asyncio.sleep(_LOOK_S)

    async def end(self) -> None:
        """Ends the process and its group: closes stdin, then SIGTERM, then SIGKILL."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        # Output that nobody reads must not keep it from ending.
        draining = asyncio.ensure_future(self._drain())
        for wait_s, how in _ENDS:
            until = time.monotonic() + wait_s
            while self._is_alive() and time.monotonic() < until:
                await asyncio.sleep(_LOOK_S)
            if not self._is_alive():
                break
            if how is not None:
                self.kill(how)
        # A process that left the group may keep the pipes open for ever.
        for task in (draining, self._reading_log):
            task.cancel()
        await asyncio.gather(draining, self._reading_log, return_exceptions=True)
        self._process._transport.close()  # type: ignore[attr-defined]  # nothing public closes the pipes

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Sends a signal to the whole group."""
        with contextlib.suppress(OSError):
            os.killpg(self.pid, how)

    def _is_alive(self) -> bool:
        """Whether the process or another one of its group runs."""
        if self._process.returncode is None:
            return True
        try:
            os.killpg(self.pid, 0)
        except OSError:
            return False
        return True

    async def _drain(self) -> None:
        assert self._process.stdout is not None
        while await self._process.stdout.read(_PIECE_BYTES):
            pass

    async def _read_messages(self, stream: Any) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async with stream:
                async for line in _lines(self._process.stdout, _MESSAGE_BYTES, self._too_long):
                    if not line.strip():
                        continue
                    if message := _message(line):
                        await stream.send(SessionMessage(message))
                    else:
                        self._log.add(line)
        self.ended.set()

    async def _write_messages(self, stream: Any, received: Any) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        try:
            async with stream:
                async for sent in stream:
                    data = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                    stdin.write(data.encode("utf-8", "replace") + b"\n")
                    with anyio.fail_after(_WRITE_S):
                        await stdin.drain()
        except (OSError, TimeoutError):
            received.close()  # otherwise requests would wait for ever

    async def _watch_exit(self, received: Any) -> None:
        """Ends the read stream when the process ends, as its children may keep its pipes open."""
        while self.status is None:
            await asyncio.sleep(_EXIT_S)
        await asyncio.sleep(_EXIT_S)  # for its last messages
        received.close()
        self.ended.set()

    async def _read_log(self) -> None:
        assert self._process.stderr is not None
        async for line in _lines(self._process.stderr, _PIECE_BYTES, lambda size: None):
            self._log.add(line)
        self._log.end()


def _message(line: bytes) -> mcp_types.JSONRPCMessage | None:
    """The message of a line; None if it is none. Lone surrogates, as written by JavaScript, are replaced."""
    for each in (line, well_formed_json(line)):
        with contextlib.suppress(ValueError):
            return mcp_types.jsonrpc_message_adapter.validate_json(each, by_name=False)
    return None


class LogLines:
    """Passes on lines of a log: printable, at most 2,000 characters each, at most 50 a second."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._since = 0.0
        self._count = self._left_out = 0

    def add(self, line: bytes) -> None:
        now = time.monotonic()
        if now - self._since >= 1:
            self.end()
            self._since, self._count = now, 0
        self._count += 1
        if self._count > _LINES_PER_SECOND:
            self._left_out += 1
            return
        text = line[: _LINE_CHARACTERS * 4].decode("utf-8", "replace").rstrip()
        text = "".join(
            letter if letter.isprintable() or letter == "\t" else "\N{REPLACEMENT CHARACTER}"
            for letter in text
        )
        self._log(text if len(text) <= _LINE_CHARACTERS else f"{text[:_LINE_CHARACTERS]}…")

    def end(self) -> None:
        """Logs how many lines were left out."""
        if self._left_out:
            self._log(f"[{self._left_out:,} lines left out]")
            self._left_out = 0


async def _lines(
    source: asyncio.StreamReader, most_bytes: int, too_long: Callable[[int], None]
) -> AsyncIterator[bytes]:
    """Lines of `source`. One above `most_bytes` is dropped; `too_long` gets its size at its end."""
    held: list[bytes] = []
    size = 0
    while True:
        piece = await source.read(_PIECE_BYTES)
        *whole, rest = piece.split(b"\n")
        for line in whole:
            size += len(line)
            if size <= most_bytes:
                yield b"".join((*held, line))
            else:
                too_long(size)
            held.clear()
            size = 0
        size += len(rest)
        if size <= most_bytes:
            held.append(rest)
        else:
            held.clear()
        if not piece:
            if held and size:
                yield b"".join(held)
            return
