"""`draftlight launch`: a coding agent that uses the local model, and its server, for this one process.

The client gets the server's address, a key and the model's name by environment variables and flags. Its own
configuration is neither read nor written.
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
from core.settings.server import Server
from core.system.terminal import ProgressLine

if TYPE_CHECKING:
    from core.serve.own_worker import Told

# The server has no key: it listens for this machine alone. Clients do not start without one.
_KEY = "draftlight"
_MOST_ANSWER_TOKENS = 32_000


class ClientMissingError(RequestError):
    """The client is not installed, or cannot be started."""

    code = "client-missing"


class Start(Struct, frozen=True):
    """How a client is started: its arguments, and its environment beside this process's."""

    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}


class Client(Struct, frozen=True):
    """A client: the program, and what installs it."""

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
    parser.set_defaults(run=run, waiting=Server().waiting, learn=False, arguments=[])


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Draftlight's arguments and the client's, which follow “--”; argparse would mix them."""
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
    from core.serve.server import Serving

    console = Console(ProgressLine(options.quiet))
    shown = True

    def tell(told: Told) -> None:
        if shown:
            console.tell(told)

    # Ctrl-C is the client's: it shares the terminal.
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: None)
    async with running(options, Serving(port=options.port), tell) as (server, worker):
        loaded = asyncio.Event()
        stop_listening = worker.gate.listen(lambda: loaded.set() if worker.gate.model else None)
        await first_of(loaded.wait(), worker.ended.wait())
        stop_listening()
        console.line.clear()
        if worker.gate.model is None:
            raise console.problem or worker_ended()
        shown = False  # the client draws on the whole terminal
        start = start_of(options.client, server.address, worker.gate.model, options.arguments)
        environment = {**os.environ, **start.environment}
        try:
            child = await asyncio.create_subprocess_exec(program, *start.arguments, env=environment)
        except OSError as error:  # an interpreter that is gone, such as Node's; a file of another processor
            raise ClientMissingError(
                f"{program} could not be started: {error.strerror}.",
                f"Install it again: {CLIENTS[options.client].install}",
            ) from error
        return await child.wait()


def start_of(client: str, address: str, model: ModelInfo, arguments: Sequence[str]) -> Start:
    """How `client` is started so that it uses `model` at `address`, which has no `/v1`."""
    from core.serve.openai.models import model_id

    name = model_id(model)
    match client:
        case "claude":
            return Start(tuple(arguments), _claude(address, name))
        case "codex":
            return Start((*_codex(address, name, model.context_tokens), *arguments))
        case _:
            return Start(tuple(arguments), _opencode(address, name, model.context_tokens))


def _claude(address: str, name: str) -> dict[str, str]:
    # https://code.claude.com/docs/en/settings
    models = ("ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL",
              "ANTHROPIC_DEFAULT_SONNET_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL")  # fmt: skip
    return {
        "ANTHROPIC_BASE_URL": address,
        "ANTHROPIC_AUTH_TOKEN": _KEY,
        "ANTHROPIC_API_KEY": "",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",
        **dict.fromkeys(models, name),
    }


def _codex(address: str, name: str, context_tokens: int) -> list[str]:
    # https://developers.openai.com/codex/config-reference
    values = {
        "model": name,
        "model_provider": "draftlight",
        "model_context_window": context_tokens,
        "model_providers.draftlight.name": "Draftlight",
        "model_providers.draftlight.base_url": f"{address}/v1",
        "model_providers.draftlight.wire_api": "responses",
    }
    return [part for key, value in values.items() for part in ("-c", f"{key}={json.dumps(value)}")]


def _opencode(address: str, name: str, context_tokens: int) -> dict[str, str]:
    # https://opencode.ai/docs/config
    answer_tokens = min(_MOST_ANSWER_TOKENS, context_tokens // 4)
    models = {name: {"name": name, "limit": {"context": context_tokens, "output": answer_tokens}}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Draftlight",
        "options": {"baseURL": f"{address}/v1", "apiKey": _KEY},
        "models": models,
    }
    model = f"draftlight/{name}"
    content = {"provider": {"draftlight": provider}, "model": model, "small_model": model}
    return {"OPENCODE_CONFIG_CONTENT": json.dumps(content), "OPENCODE_DISABLE_AUTOUPDATE": "1"}
