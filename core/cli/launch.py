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
from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from core.cli.arguments import add_model, add_quiet, add_settings, whole
from core.cli.serve import Console, base_settings, first_of, running, worker_ended
from core.errors import RequestError
from core.events import ModelInfo, ModelLoaded
from core.settings.window import Server
from core.system.terminal import STOPPED, ProgressLine

if TYPE_CHECKING:
    from core.serve.own_worker import Told


# Programs, and the commands that install them.
CLIENTS = {
    "claude": "npm install -g @anthropic-ai/claude-code",
    "codex": "npm install -g @openai/codex",
    "opencode": "npm install -g opencode-ai",
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
    parser.epilog = "Arguments after “--” are passed to the client: draftlight launch claude -- --continue"
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
    program = shutil.which(options.client)
    if program is None:
        raise _missing(options.client, f"“{options.client}” is not installed, or not in PATH", "")
    base_settings(options, None)  # raises before anything is started
    return asyncio.run(_launch(options, program))


async def _launch(options: argparse.Namespace, program: str) -> int:
    from core.serve.answering import Serving

    console = Console(ProgressLine(options.quiet))
    shown = True

    def report(event: Told) -> None:
        if shown and not isinstance(event, ModelLoaded):
            console.report(event)

    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with running(options, Serving(port=options.port), report) as (server, worker):
        await first_of(worker.gate.settled(), worker.ended.wait(), stopped.wait())
        console.line.clear()
        if stopped.is_set():
            return STOPPED
        if worker.gate.model is None:
            raise console.problem or worker_ended()
        shown = False  # the client uses the whole terminal, and Ctrl-C goes to it as well
        loop.add_signal_handler(signal.SIGINT, lambda: None)
        words, more = start_of(options.client, server.address, worker.gate.model, options.arguments)
        try:
            child = await asyncio.create_subprocess_exec(program, *words, env={**os.environ, **more})
        except OSError as error:  # a missing interpreter, such as Node, or a program for another processor
            why = f"{program} could not be started: {error.strerror}"
            raise _missing(options.client, why, " again") from error
        await first_of(child.wait(), stopped.wait())
        if child.returncode is None:
            child.terminate()
        status = await child.wait()
        return status if status >= 0 else 128 - status  # as shells report a signal


def _missing(client: str, why: str, again: str) -> RequestError:
    return RequestError(f"{why}.", f"Install it{again}: {CLIENTS[client]}", code="client-missing")


def start_of(
    client: str, address: str, model: ModelInfo, arguments: Sequence[str]
) -> tuple[list[str], dict[str, str]]:
    """Arguments and further environment variables with which `client` uses `model` at `address`.

    The address does not include `/v1`.
    """
    from core.events import api_id
    from core.serve.apps import Connection, claude_environment, codex_values, opencode_config

    # The server needs no key, because it only accepts connections from this machine.
    to = Connection(address, "", api_id(model), model.context_tokens, model.sees)
    match client:
        case "claude":
            return [*arguments], claude_environment(to)
        case "codex":
            toml = partial(json.dumps, ensure_ascii=False)
            values = (("-c", f"{key}={toml(value)}") for key, value in codex_values(to).items())
            return [*chain.from_iterable(values), *arguments], {}
        case _:
            content = json.dumps(opencode_config(to))
            more = {"OPENCODE_CONFIG_CONTENT": content, "OPENCODE_DISABLE_AUTOUPDATE": "1"}
            return [*arguments], more
