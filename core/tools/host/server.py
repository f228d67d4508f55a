"""Server: one run of a tool server, with its connection, its list of tools and its calls."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import anyio
import mcp_types
import msgspec
from mcp import Client, MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from core.errors import reason_of
from core.events.wire import well_formed
from core.tools.host.http import HttpAnswers, http_streams
from core.tools.host.results import call_result
from core.tools.host.stdio import ServerProcess
from core.tools.masks import secret_texts
from core.tools.messages import (
    CallEnded,
    CallResult,
    CallTool,
    HostEvent,
    Phase,
    ServerLog,
    ServerState,
    ServerTool,
    StartServer,
    ToolsError,
)

# Programs such as npx and uvx download a server at its first start.
_START_S = 180.0
_LIST_S = 60.0
# Longest wait for the report that a server ended, after its connection was closed.
_TELL_S = 2.0
# Interval between two listings if a server reports changes of its tools.
_LIST_PAUSE_S = 2.0
_MOST_PAGES = 100
_MOST_TOOLS = 1000
_NAME_CHARACTERS = 128
_DESCRIPTION_CHARACTERS = 16_384
_SCHEMA_BYTES = 256 * 1024
_LISTED_BYTES = 8 * 1024 * 1024
# Shorter secrets would be replaced within ordinary words.
_SECRET_CHARACTERS = 4
_RAW: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])
_UNKNOWN = "It is not known whether it was carried out."
_SEE_LOG = "See the server's log in Window > Tools."


class Server:
    """`own()` runs as the one task that opens and closes the connection; other tasks call the other methods.

    `before`: the task of the same server's last run, which ends before this one starts.
    """

    def __init__(
        self,
        command: StartServer,
        emit: Callable[[HostEvent], None],
        before: asyncio.Task[None] | None = None,
    ) -> None:
        self._before = before
        entry = self._entry = command.entry
        self._run = command.run
        secrets = (text for text in secret_texts(entry) if len(text) >= _SECRET_CHARACTERS)
        self._secrets = sorted(secrets, key=len, reverse=True)
        self._emit = emit
        # The task of `own()` while it may be cancelled: afterwards it ends the group.
        self._connecting: asyncio.Task[Any] | None = None
        self._client: Client | None = None
        self._process: ServerProcess | None = None
        self._answers = HttpAnswers()
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._last_line = ""
        self._is_ready = self._is_late = False
        self._stopping = asyncio.Event()
        self._changed = asyncio.Event()
        self._told_end = asyncio.Event()
        # Set if the answer of an http server to the only call broke off: it is reconnected.
        self._lost = asyncio.Event()

    async def own(self) -> None:
        """Runs the server until it ends or is stopped, and emits its states."""
        if self._before:
            await asyncio.wait({self._before})
        if self._stopping.is_set():
            self._tell("off")
            return
        problem = hint = ""
        self._connecting = asyncio.current_task()
        late = asyncio.get_running_loop().call_later(_START_S, self._give_up)
        try:
            async with contextlib.AsyncExitStack() as stack:
                client = await stack.enter_async_context(await self._connection())
                self._client = client
                await self._list(client)
                self._connecting = None
                late.cancel()
                await self._stay(client)
        except ToolsError as error:
            problem, hint = error.message, error.hint
        except asyncio.CancelledError:
            pass  # by stop() or by _give_up()
        except BaseException as error:
            problem = self._problem(error)
        self._client = self._connecting = None
        late.cancel()
        if not self._stopping.is_set():
            # Before its process group is ended, which takes time, so that no call is made meanwhile.
            if self._process:
                await self._process.exited()
            self._tell_end(problem, hint)
        self._end_calls(f"“{self._entry.name}” ended during the call.", _UNKNOWN)
        if self._process:
            await self._process.end()
        self._tell("off")

    def stop(self) -> None:
        """Ends the server; `own()` returns when it has ended."""
        self._stopping.set()
        if self._connecting:
            self._connecting.cancel()

    def kill(self) -> None:
        """Kills the process group at once, when this process must end."""
        if self._process:
            self._process.kill()

    def call(self, command: CallTool) -> None:
        """Sends a call once; a `CallEnded` follows unless it is cancelled."""
        task = asyncio.ensure_future(self._call(command))
        self._calls[command.call] = task
        task.add_done_callback(lambda _: self._calls.pop(command.call, None))

    def cancel(self, call: int) -> None:
        """Cancels a call, also at the server."""
        if task := self._calls.get(call):
            task.cancel()

    # ---- the connection

    async def _connection(self) -> Client:
        entry = self._entry
        if entry.command:
            self._process = await ServerProcess.start(entry, self._on_line, self._on_too_long)
            self._tell("starting")
            transport = self._process.streams()
        else:
            self._tell("starting")
            transport = http_streams(entry, self._answers)
        return Client(
            transport,
            cache=None,
            message_handler=self._on_message,
            client_info=mcp_types.Implementation(name="draftlight", version=version("draftlight")),
        )

    async def _stay(self, client: Client) -> None:
        """Returns when the server ended or must be stopped; lists its tools again when they change."""
        ended = self._process.ended if self._process else self._lost
        waits = [asyncio.ensure_future(event.wait()) for event in (self._stopping, ended)]
        try:
            async with self._told_of_changes(client):
                while not self._stopping.is_set() and not ended.is_set():
                    changed = asyncio.ensure_future(self._changed.wait())
                    await asyncio.wait([*waits, changed], return_when=asyncio.FIRST_COMPLETED)
                    changed.cancel()
                    if self._changed.is_set() and not self._stopping.is_set():
                        self._changed.clear()
                        await self._list(client)
                        await asyncio.wait(waits, timeout=_LIST_PAUSE_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    @asynccontextmanager
    async def _told_of_changes(self, client: Client) -> AsyncIterator[None]:
        """Subscribes to changes of the tools if the protocol needs that; older versions always notify."""
        declared = client.server_capabilities.tools
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or not (
            declared and declared.list_changed
        ):
            yield
            return
        async with client.listen(tools_list_changed=True) as changes:

            async def hear() -> None:
                with contextlib.suppress(Exception):  # the subscription was lost
                    async for _ in changes:
                        self._changed.set()

            hearing = asyncio.ensure_future(hear())
            try:
                yield
            finally:
                hearing.cancel()

    async def _on_message(self, message: Any) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            self._changed.set()

    def _give_up(self) -> None:
        self._is_late = True
        if self._connecting:
            self._connecting.cancel()

    # ---- states

    def _tell(
        self, phase: Phase, tools: tuple[ServerTool, ...] = (), problem: str = "", hint: str = ""
    ) -> None:
        pid = self._process.pid if self._process and phase in ("starting", "ready") else 0
        self._emit(ServerState(self._entry.name, phase, tools, problem, hint, pid=pid, run=self._run))

    def _tell_end(self, problem: str, hint: str) -> None:
        name = self._entry.name
        if self._is_late:
            problem, hint = f"“{name}” was not ready within {_START_S:g} s.", _SEE_LOG
        elif self._process and self._process.status is not None and not hint:
            problem = f"“{name}” ended {_how(self._process.status)}"
            problem += "." if self._is_ready else " before it was ready."
            hint = f"Its log ends with: {self._last_line}" if self._last_line else _SEE_LOG
        elif self._answers.problem and not self._is_ready:
            problem, hint = self._answers.problem, self._answers.hint
        self._tell(
            "ended" if self._is_ready else "failed",
            problem=problem or f"The connection to “{name}” was lost.",
            hint=hint or _SEE_LOG,
        )
        self._told_end.set()

    def _problem(self, error: BaseException) -> str:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, ValidationError):
            wrong = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, wrong["loc"]))
            return f"“{self._entry.name}” does not follow the protocol: {place}: {well_formed(wrong['msg'])}."
        return f"“{self._entry.name}” cannot be used: {self._without_secrets(well_formed(reason_of(error)))}."

    def _without_secrets(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "•••")
        return text

    def _on_line(self, line: str) -> None:
        line = self._without_secrets(line)
        self._last_line = line or self._last_line
        self._emit(ServerLog(self._entry.name, line, self._run))

    # ---- tools

    async def _list(self, client: Client) -> None:
        """Emits “ready” with the tools. Those above the limits are left out and counted in `problem`."""
        found: dict[str, ServerTool] = {}
        left_out = size = 0
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            with anyio.fail_after(_LIST_S):
                page = await client.list_tools(cursor=cursor)
            for declared in page.tools:
                tool = _tool(declared)
                weight = len(tool.schema) + len(tool.description)
                is_good = (
                    tool.name and len(tool.name) <= _NAME_CHARACTERS and len(tool.schema) <= _SCHEMA_BYTES
                )
                if (
                    not is_good
                    or tool.name in found
                    or len(found) >= _MOST_TOOLS
                    or size + weight > _LISTED_BYTES
                ):
                    left_out += 1
                    continue
                found[tool.name] = tool
                size += weight
            cursor = page.next_cursor
            if not cursor:
                break
        problem = (
            f"{left_out:,} tools were left out, because they are too large, too many or not unique."
            if left_out
            else ""
        )
        if self._stopping.is_set():
            return
        self._is_ready = True
        self._tell("ready", tuple(found.values()), problem)

    # ---- calls

    async def _call(self, command: CallTool) -> None:
        client = self._client
        if client is None or not self._is_ready:
            self._emit(CallEnded(command.call, None, f"“{self._entry.name}” is not running.", ran=False))
            return
        began = time.monotonic()
        try:
            # Not call_tool(), which sends a call again if the server asks for input.
            given = msgspec.json.decode(command.arguments)
            request = mcp_types.CallToolRequest(
                params=mcp_types.CallToolRequestParams(name=command.tool, arguments=given)
            )
            # The raw reply: call_result() accepts results of any form, which the SDK would refuse.
            raw: dict[str, Any] = await client.session.send_request(request, _RAW)  # type: ignore[type-var]
        except MCPError as error:
            if error.code == mcp_types.CONNECTION_CLOSED:
                # The server's end is reported first, so that the next call waits for its restart.
                if self._process is None and len(self._calls) == 1:
                    self._lost.set()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._told_end.wait(), _TELL_S)
                problem = self._answers.problem or f"“{self._entry.name}” ended during the call."
                self._emit(CallEnded(command.call, None, problem, _UNKNOWN))
                return
            reason = well_formed(error.message)[:_DESCRIPTION_CHARACTERS]
            seconds = time.monotonic() - began
            self._emit(CallEnded(command.call, CallResult(reason, is_error=True, seconds=seconds)))
        except ValidationError:
            problem = f"The result of “{command.tool}” does not follow the protocol."
            self._emit(CallEnded(command.call, None, problem, "It was carried out.", True))
        except Exception as error:
            self._emit(CallEnded(command.call, None, self._problem(error), _UNKNOWN))
        else:
            self._emit(CallEnded(command.call, call_result(raw, time.monotonic() - began)))

    def _on_too_long(self, size_bytes: int) -> None:
        """Ends all calls, because the dropped message may be the result of any."""
        problem = f"“{self._entry.name}” sent a message of {size_bytes:,} bytes, which was dropped."
        self._end_calls(problem, "It may have been carried out.")

    def _end_calls(self, problem: str, hint: str) -> None:
        for call, task in list(self._calls.items()):
            if not task.done():
                task.cancel()
                self._emit(CallEnded(call, None, problem, hint))


def _tool(declared: mcp_types.Tool) -> ServerTool:
    schema = msgspec.json.encode(declared.input_schema).decode()
    description = well_formed(declared.description or declared.title or "")
    read_only = bool(declared.annotations and declared.annotations.read_only_hint)
    return ServerTool(well_formed(declared.name), description[:_DESCRIPTION_CHARACTERS], schema, read_only)


def _how(status: int) -> str:
    return f"with status {status}" if status >= 0 else f"by signal {-status}"
