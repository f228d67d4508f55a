"""The entry point of the tools' process: reads commands from stdin, writes events to stdout.

The process ends, with all servers, at the end of its stdin, so that it does not outlive the window.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import stat
import sys

from core.errors import ProtocolError
from core.system.child_bounds import held_bytes
from core.tools.messages import (
    LINE_LIMIT_BYTES,
    CallEnded,
    CallTool,
    CancelCall,
    HostCommand,
    HostEvent,
    StartServer,
    StopServer,
    decode_host_command,
    encode_line,
)

# Limit of this process's peak memory; the SDK uses 70 MB.
_MOST_BYTES = 1024 * 1024 * 1024
_LOOK_S = 2.0


def main() -> int:
    """Runs until stdin ends. Returns the exit status."""
    # Only protocol messages may go to the original stdout.
    out = os.dup(1)
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The SDK's messages quote what servers send, which may be a secret.
    logging.disable(logging.CRITICAL)
    asyncio.run(Host(out).run())
    return 0


class Host:
    """All servers by run. `out` is the descriptor of the protocol's stream."""

    def __init__(self, out: int) -> None:
        from core.tools.host.server import Server  # imports the SDK

        self._make = Server
        self._out = out
        self._servers: dict[int, Server] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}  # by server, the task of its last run
        self._ending = asyncio.Event()

    async def run(self) -> None:
        """Handles commands until stdin ends or SIGTERM, then ends all servers."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._ending.set)
        working = [
            asyncio.ensure_future(work()) for work in (self._read, self._watch_memory, self._ending.wait)
        ]
        await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
        for server in self._servers.values():
            server.stop()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        for task in working:
            task.cancel()

    async def _read(self) -> None:
        kind = os.fstat(0).st_mode
        if not stat.S_ISFIFO(kind) and not stat.S_ISSOCK(kind):
            return  # not started by a window; the loop cannot wait for a file or a device
        reader = asyncio.StreamReader(limit=LINE_LIMIT_BYTES)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while True:
            try:
                line = await reader.readline()
                if not line:
                    return
                self._do(decode_host_command(line))
            except (ValueError, ProtocolError) as error:  # too long, or from another version
                print(error, file=sys.stderr)

    def _do(self, command: HostCommand) -> None:
        match command:
            case StartServer():
                before = self._tasks.get(command.entry.name)
                server = self._servers[command.run] = self._make(command, self._emit, before)
                task = self._tasks[command.entry.name] = asyncio.ensure_future(server.own())
                task.add_done_callback(lambda task: self._forget(command, task))
            case StopServer():
                if command.run in self._servers:
                    self._servers[command.run].stop()
            case CallTool():
                if command.run in self._servers:
                    self._servers[command.run].call(command)
                else:
                    self._emit(CallEnded(command.call, None, "The server is not running.", ran=False))
            case CancelCall():
                for each in self._servers.values():
                    each.cancel(command.call)

    def _forget(self, command: StartServer, task: asyncio.Task[None]) -> None:
        self._servers.pop(command.run, None)
        if self._tasks.get(command.entry.name) is task:
            del self._tasks[command.entry.name]
        if not task.cancelled() and (error := task.exception()):
            print(f"A server's task failed: {error!r}", file=sys.stderr)

    def _emit(self, event: HostEvent) -> None:
        data = memoryview(encode_line(event))
        try:
            while data:
                data = data[os.write(self._out, data) :]
        except OSError:  # the window has closed it
            self._ending.set()

    async def _watch_memory(self) -> None:
        """Kills all servers and this process above the limit; no system limit, because servers would inherit
        it."""
        while held_bytes() <= _MOST_BYTES:
            await asyncio.sleep(_LOOK_S)
        print(f"More than {_MOST_BYTES:,} bytes are in use.", file=sys.stderr)
        for server in self._servers.values():
            server.kill()
        with contextlib.suppress(OSError):
            sys.stderr.flush()
        os._exit(1)
