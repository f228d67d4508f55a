"""`draftlight tools`: lists and calls the tools of an MCP server from the command line.

The servers of the window are not used, and nothing is stored. A server is given as `--command` or `--url`; it
is started for this command and ended with it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shlex
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from core.cli.arguments import UsageError, add_command
from core.system.children import absolute_path
from core.system.terminal import visible
from core.tools.client import ToolsClient
from core.tools.imports import found
from core.tools.messages import CALL_TIMEOUT_S, CallResult, ServerEntry, ServerLog, ServerState, ToolsError
from core.tools.secrets import without_values

_NAME = "server"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the actions."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    importing = add_command(actions, "import", "list the servers in other programs' files", _import)
    importing.add_argument("--json", action="store_true", help="print one JSON object a file")
    listing = add_command(actions, "list", "start a server and list its tools", _list)
    listing.add_argument("--json", action="store_true", help="print one JSON object a tool")
    calling = add_command(actions, "call", "start a server and call one of its tools, once", _call)
    calling.add_argument("tool", metavar="TOOL")
    calling.add_argument("arguments", metavar="JSON", help="arguments as a JSON object")
    calling.add_argument("--timeout", type=float, default=CALL_TIMEOUT_S, metavar="S", help="default 60")
    calling.add_argument("--json", action="store_true", help="print the result as one JSON object")
    for action in (listing, calling):
        action.add_argument("--url", default="", help="address of the server")
        action.add_argument("--command", default="", help="command line of the server, quoted as in a shell")
        action.add_argument(
            "--set",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="variable of its environment, or header of its address; repeatable",
        )


def _import(options: argparse.Namespace) -> int:
    for each in found():
        if options.json:
            record: dict[str, Any] = {"program": each.program, "path": each.path, "problems": each.problems}
            record["servers"] = [msgspec.to_builtins(without_values(entry)) for entry in each.entries]
            print(json.dumps(record, ensure_ascii=False))
            continue
        print(f"{each.program}: {visible(each.path)}")
        for entry in each.entries:
            print(f"  {visible(entry.name)}: {visible(without_values(entry).whole)}")
        for problem in each.problems:
            print(f"  {visible(problem)}")
    return 0


def _list(options: argparse.Namespace) -> int:
    state, _ = asyncio.run(_with_server(options))
    for tool in state.tools:
        if options.json:
            print(json.dumps(msgspec.to_builtins(tool), ensure_ascii=False))
        else:
            first = tool.description.strip().partition("\n")[0]
            print(f"{visible(tool.name)}  {visible(first)}" if first else visible(tool.name))
    return 0


def _call(options: argparse.Namespace) -> int:
    _, result = asyncio.run(_with_server(options, options.tool, options.arguments, options.timeout))
    assert result is not None
    if options.json:
        print(msgspec.json.encode(result).decode())
    else:
        print(result.text)
        for image in result.images:
            print(f"[{image.mime}, {len(image.data):,} bytes]")
        for other in result.other:
            print(f"[{visible(other)}]")
    return int(result.is_error)


async def _with_server(
    options: argparse.Namespace, tool: str = "", arguments: str = "", timeout_s: float = CALL_TIMEOUT_S
) -> tuple[ServerState, CallResult | None]:
    """The state of the server that `options` name, and the result of a call if there is a `tool`."""
    client = ToolsClient(_log)
    try:
        state = await client.start(_entry(options.command, options.url, options.set))
        if state.phase != "ready":
            raise ToolsError(state.problem, state.hint)
        result = await client.call(_NAME, tool, arguments, timeout_s=timeout_s) if tool else None
        return state, result
    finally:
        await client.close()


def _log(event: ServerState | ServerLog) -> None:
    if isinstance(event, ServerLog):
        print(visible(event.line), file=sys.stderr)


def _entry(command: str, url: str, values: Sequence[str]) -> ServerEntry:
    given: dict[str, str] = {}
    for each in values:
        name, equals, value = each.partition("=")
        if not equals:
            raise UsageError(f"“{each}” is not NAME=VALUE.")
        given[name] = value
    if bool(command) == bool(url):
        raise UsageError("A server is needed: either --command or --url.")
    if url:
        return ServerEntry(_NAME, url=url, headers=given)
    try:
        program, *args = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--command cannot be read: {error}.") from None
    if os.sep in program:
        program = absolute_path(program)
    return ServerEntry(_NAME, program, tuple(args), given)
