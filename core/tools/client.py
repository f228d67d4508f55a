"""ToolsClient: the window's interface to the tools' process, its servers and their calls.

Call all methods on one asyncio loop. The process starts with the first `start()`; before, nothing runs. It
ends with `close()`, and when this process ends, because it reads the end of its stdin.

A call is written to the process once. A server that dies, or the tools' process itself, is started again
once; its calls are not repeated, but end with a `ToolsError` whose `ran` is None.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import Callable, Sequence
from itertools import count

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.errors import ProtocolError, reason_of
from core.system.children import CHILD_FOLDER, child_command, child_environment
from core.tools.messages import (
    CALL_TIMEOUT_S,
    LINE_LIMIT_BYTES,
    CallEnded,
    CallResult,
    CallTool,
    CancelCall,
    HostCommand,
    HostEvent,
    ServerEntry,
    ServerLog,
    ServerState,
    StartServer,
    StopServer,
    ToolsError,
    check_entry,
    decode_host_event,
    encode_line,
)
from core.tools.secrets import filled

_MOST_RESTARTS = 1
_LOG_LINES = 200
# The process ends its servers within this time, and is killed afterwards.
_CLOSE_S = 8.0
_RESTART_HINT = "Restart the server in Window > Tools."


class _Call(Struct):
    """A call that was sent and has no result yet."""

    run: int
    result: asyncio.Future[CallResult]


class ToolsClient:
    """`on_event` is called on the loop with each `ServerState` and `ServerLog`.

    `states`: the last state of each server that was started, by name. `log`: the last lines that the tools'
    process wrote itself.
    """

    def __init__(
        self,
        on_event: Callable[[ServerState | ServerLog], None] = lambda event: None,
        *,
        command: Sequence[str] | None = None,
        with_secrets: Callable[[ServerEntry], ServerEntry] = filled,
    ) -> None:
        self.on_event = on_event
        self.states: dict[str, ServerState] = {}
        self.log: deque[str] = deque(maxlen=_LOG_LINES)
        self._command = command
        self._with_secrets = with_secrets
        self._process: asyncio.subprocess.Process | None = None
        self._starting = asyncio.Lock()  # of the process
        self._reading: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._entries: dict[str, ServerEntry] = {}  # by name, as passed to start()
        self._servers: dict[int, str] = {}  # the name of each run that is not retired
        self._groups: dict[int, int] = {}  # the process of each run that has not ended
        self._calls: dict[int, _Call] = {}
        self._changed = asyncio.Event()  # replaced at each new state
        self._numbers = count(1)
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The tools' process; None while it does not run."""
        process = self._process
        return process.pid if process and process.returncode is None else None

    async def start(self, entry: ServerEntry) -> ServerState:
        """Starts a server and returns its state once it is “ready” or “failed”.

        A server that runs with an equal entry continues; one with another entry is ended first. Cancelling
        the task does not stop the server. Raises `ToolsError` for an invalid entry.
        """
        check_entry(entry)
        state = self.states.get(entry.name)
        if state and state.phase in ("starting", "ready"):
            if self._entries[entry.name] == entry:
                return await self._settled(entry.name)
            self._retire(state)
        self._entries[entry.name] = entry
        await self._begin(entry, restarts=0)
        return await self._settled(entry.name)

    async def stop(self, server: str) -> None:
        """Ends a server. Its running calls end with `ran` None. Unknown names are ignored."""
        state = self.states.get(server)
        if state is None or state.phase == "off":
            return
        self._retire(state)
        self._set(ServerState(server, "off"))

    async def restart(self, server: str) -> ServerState:
        """Ends a server if it runs, and starts it with the same entry. Raises `ToolsError`."""
        entry = self._entries.get(server)
        if entry is None:
            raise ToolsError(f"“{server}” was not started.", "Switch it on in Window > Tools.")
        await self.stop(server)
        return await self.start(entry)

    async def call(
        self, server: str, tool: str, arguments: str, *, timeout_s: float = CALL_TIMEOUT_S
    ) -> CallResult:
        """Calls a tool once and returns its result. `arguments`: a JSON object as text.

        Waits while the server starts. Cancelling the task cancels the call. Raises `ToolsError`, whose `ran`
        says whether the call may have been carried out.
        """
        state = await self._settled(server)
        if state.phase != "ready":
            raise ToolsError(state.problem or f"“{server}” is not running.", state.hint or _RESTART_HINT)
        if all(each.name != tool for each in state.tools):
            raise ToolsError(f"“{server}” has no tool “{tool}”.", "Its tools may have changed.")
        _check_arguments(arguments)
        number = next(self._numbers)
        line = encode_line(CallTool(number, state.run, tool, arguments))
        if len(line) > LINE_LIMIT_BYTES:
            raise ToolsError(
                f"The arguments have {len(line):,} bytes, more than can be sent.", "Shorten them."
            )
        call = _Call(state.run, asyncio.get_running_loop().create_future())
        self._calls[number] = call
        try:
            self._write(line)
            async with asyncio.timeout(timeout_s):
                return await call.result
        except TimeoutError:
            self._post(CancelCall(number))
            raise ToolsError(
                f"“{tool}” did not return within {timeout_s:g} s and was cancelled.",
                "It may have been carried out.",
                ran=None,
            ) from None
        except asyncio.CancelledError:
            self._post(CancelCall(number))
            raise
        finally:
            self._calls.pop(number, None)

    async def close(self) -> None:
        """Ends all servers and the process. May be called twice, or before `start()`."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        process, reading = self._process, self._reading
        if process is None or reading is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        await asyncio.wait({reading}, timeout=_CLOSE_S)
        if not reading.done():
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await reading

    # ---- servers

    async def _begin(self, entry: ServerEntry, restarts: int) -> None:
        """Sends the command that starts a server, and starts the process before, if it does not run."""
        run = next(self._numbers)
        self._servers[run] = entry.name
        self._set(ServerState(entry.name, "starting", restarts=restarts, run=run))
        try:
            # The keychain may ask the person, which must not stop the loop.
            whole = await asyncio.to_thread(self._with_secrets, entry)
            await self._ensure_process()
            if self.states[entry.name].run == run:  # it may have been stopped meanwhile
                self._write(encode_line(StartServer(run, whole)))
        except ToolsError as error:
            self._fail(run, error.message, error.hint)

    def _retire(self, state: ServerState) -> None:
        """Ends a run: its later events are ignored, its calls end."""
        self._post(StopServer(state.run))
        self._end_calls(state.run, f"“{state.server}” was stopped during the call.")
        self._servers.pop(state.run, None)

    def _fail(self, run: int, problem: str, hint: str) -> None:
        name = self._servers.get(run)
        if name is not None:
            del self._servers[run]
            self._set(replace(self.states[name], phase="failed", tools=(), problem=problem, hint=hint, pid=0))

    async def _settled(self, server: str) -> ServerState:
        """The state of a server once it is not “starting” or about to be started again."""
        while True:
            state = self.states.get(server) or ServerState(server, "off")
            if state.phase not in ("starting", "ended"):
                return state
            await self._changed.wait()

    def _set(self, state: ServerState) -> None:
        self.states[state.server] = state
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        self._emit(state)

    def _emit(self, event: ServerState | ServerLog) -> None:
        # Called by the loop, which handles its exceptions, and because it may call this client.
        asyncio.get_running_loop().call_soon(lambda: self.on_event(event))

    def _on_died(self, state: ServerState) -> None:
        """Restarts a server that died, once; the second time it is “failed”."""
        self._end_calls(state.run, f"“{state.server}” ended during the call.")
        if self._closed:
            return
        self._servers.pop(state.run, None)
        if state.restarts >= _MOST_RESTARTS:
            self._set(replace(state, phase="failed", tools=(), pid=0, hint=state.hint or _RESTART_HINT))
            return
        self._set(replace(state, phase="ended", tools=(), pid=0))
        entry = self._entries[state.server]
        task = asyncio.ensure_future(self._begin(entry, state.restarts + 1))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _end_calls(self, run: int, why: str) -> None:
        for call in self._calls.values():
            if call.run == run and not call.result.done():
                call.result.set_exception(
                    ToolsError(why, "It is not known whether it was carried out.", ran=None)
                )

    # ---- the process

    async def _ensure_process(self) -> None:
        async with self._starting:
            if self.pid is not None:
                return
            if self._closed:
                raise ToolsError("Draftlight is closing.")
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *(self._command or child_command("--tools")),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                    limit=LINE_LIMIT_BYTES,
                    env=child_environment(PYTHONUNBUFFERED="1"),
                    cwd=CHILD_FOLDER,
                )
            except OSError as error:
                raise ToolsError(
                    f"The tools' process could not be started: {reason_of(error)}.", "Reinstall Draftlight."
                ) from error
            self._reading = asyncio.ensure_future(self._read(self._process))

    def _write(self, line: bytes) -> None:
        """Writes a line once. Raises `ToolsError` if the process has ended; then nothing was sent."""
        process = self._process
        if process is None or process.stdin is None or process.returncode is not None:
            raise ToolsError("The tools' process is not running.", _RESTART_HINT)
        process.stdin.write(line)

    def _post(self, command: HostCommand) -> None:
        with contextlib.suppress(ToolsError):
            self._write(encode_line(command))

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        """Reads events until the process ends."""
        assert process.stdout is not None
        log = asyncio.ensure_future(self._read_log(process))
        while True:
            try:
                line = await process.stdout.readline()
                if not line:
                    break
                self._take(decode_host_event(line))
            except (ValueError, ProtocolError) as error:  # a line above the limit, or not a message
                self.log.append(reason_of(error))
        await process.wait()
        await log
        self._on_process_ended()

    async def _read_log(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while True:
            try:
                line = await process.stderr.readline()
            except ValueError:
                continue
            if not line:
                return
            self.log.append(line.decode("utf-8", "replace").rstrip())

    def _take(self, event: HostEvent) -> None:
        if isinstance(event, CallEnded):
            call = self._calls.get(event.call)
            if call is None or call.result.done():
                return
            if event.result is not None:
                call.result.set_result(event.result)
            else:
                call.result.set_exception(ToolsError(event.problem, event.hint, ran=event.ran))
            return
        if isinstance(event, ServerState):
            if event.pid:
                self._groups[event.run] = event.pid
            elif event.phase == "off":  # the last event of a run
                self._groups.pop(event.run, None)
        name = self._servers.get(event.run)
        # The server was stopped, or the whole process is ending.
        if name is None or (isinstance(event, ServerState) and event.phase == "off"):
            return
        if isinstance(event, ServerLog):
            self._emit(event)
            return
        state = replace(event, restarts=self.states[name].restarts)
        if state.phase == "ended":
            self._on_died(state)
            return
        if state.phase == "failed":
            self._servers.pop(event.run, None)
        self._set(state)

    def _on_process_ended(self) -> None:
        """Kills servers that a killed process left behind, and treats all servers as dead."""
        groups, self._groups = self._groups, {}
        for pid in groups.values():
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)
        for run in {call.run for call in self._calls.values()}:
            self._end_calls(run, "The tools' process ended during the call.")
        for run, name in list(self._servers.items()):
            state = self.states[name]
            if state.phase in ("starting", "ready"):
                self._on_died(replace(state, problem="The tools' process ended unexpectedly."))
            else:
                self._servers.pop(run, None)


def _check_arguments(arguments: str) -> None:
    try:
        found = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ToolsError(f"The arguments are not valid JSON: {error}.", "Correct them.") from None
    if not isinstance(found, dict):
        raise ToolsError("The arguments are not a JSON object.", "Write them as {…}.")
