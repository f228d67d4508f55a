"""`draftlight launch`: starts a server and a coding agent that uses it.

The agent gets the server's address, a key and the model's name in environment variables and flags. Its own
configuration is neither read nor changed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from core.cli.arguments import add_model, add_quiet, add_settings, whole
from core.cli.serve import Console, base_settings, first_of, running, worker_ended
from core.errors import RequestError
from core.events import ModelInfo
from core.settings.window import Server
from core.system.terminal import ProgressLine

if TYPE_CHECKING:
    from core.serve.own_worker import Told


class ClientMissingError(RequestError, code="client-missing"):
    """The client is not installed or cannot be started."""


class Start(Struct, frozen=True):
    """Command-line arguments and additional environment variables for a client."""

    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}


class Client(Struct, frozen=True):
    """A client: its program, and the command that installs it."""

    program: str
    install: str


CLIENTS = {
    "claude": Client("claude", "npm install -g @anthropic-ai/claude-code"),
    "codex": Client("codex", "npm install -g @openai/codex"),
    "opencode": Client("opencode", "npm install -g opencode-ai"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("client", choices=sorted(CLIENTS), help="the client to start")
    add_model(parser)
    parser.add_argument(
        "--port", type=whole(0, 65535), default=0, metavar="N", help="the server's port (default: a free one)"
    )
    add_settings(parser)
    add_quiet(parser)
    parser.epilog = "What follows “--” is passed to the client: draftlight launch claude -- --continue"
    parser.set_defaults(
        run=run, waiting=Server().waiting, learn=False, unload_after=0, load_models=False, arguments=[]
    )


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Divides a command line into Draftlight's arguments and the client's after “--”, which argparse would
    mix.
    """
    if arguments[:1] != ["launch"] or "--" not in arguments:
        return [*arguments], []
    at = arguments.index("--")
    return [*arguments[:at]], [*arguments[at + 1 :]]


def run(options: argparse.Namespace) -> int:
    """Start the server and the client; returns the client's exit status. Raises `DraftlightError` kinds."""
    client = CLIENTS[options.client]
    program = shutil.which(client.program)
    if program is None:
        raise ClientMissingError(
            f"“{client.program}” is not installed, or not in PATH.", f"Install it: {client.install}"
        )
    base_settings(options, None)  # raises before anything is started
    return asyncio.run(_launch(options, program))


async def _launch(options: argparse.Namespace, program: str) -> int:
    from core.serve.answering import Serving

    console = Console(ProgressLine(options.quiet))
    shown = True

    def report(event: Told) -> None:
        if shown:
            console.report(event)

    # Ctrl-C goes to the client, which shares the terminal.
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: None)
    async with running(options, Serving(port=options.port), report) as (server, worker):
        await first_of(worker.gate.settled(), worker.ended.wait())
        console.line.clear()
        if worker.gate.model is None:
            raise console.problem or worker_ended()
        shown = False  # the client uses the whole terminal
        start = start_of(options.client, server.address, worker.gate.model, options.arguments)
        environment = {**os.environ, **start.environment}
        try:
            child = await asyncio.create_subprocess_exec(program, *start.arguments, env=environment)
        except OSError as error:  # a missing interpreter, such as Node, or a program for another processor
            raise ClientMissingError(
                f"{program} could not be started: {error.strerror}.",
                f"Install it again: {CLIENTS[options.client].install}",
            ) from error
        return await child.wait()


def start_of(client: str, address: str, model: ModelInfo, arguments: Sequence[str]) -> Start:
    """How to start `client` so that it uses `model` at `address`, which does not include `/v1`."""
    from core.events import api_id
    from core.serve.apps import Connection, claude_environment, codex_values, opencode_config

    # The server needs no key, because it only accepts connections from this machine.
    to = Connection(address, "", api_id(model), model.context_tokens)
    match client:
        case "claude":
            return Start(tuple(arguments), claude_environment(to))
        case "codex":
            flags = [
                part
                for key, value in codex_values(to).items()
                for part in ("-c", f"{key}={json.dumps(value)}")
            ]
            return Start((*flags, *arguments))
        case _:
            content = json.dumps(opencode_config(to))
            return Start(
                tuple(arguments), {"OPENCODE_CONFIG_CONTENT": content, "OPENCODE_DISABLE_AUTOUPDATE": "1"}
            )
