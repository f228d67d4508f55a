"""`draftlight serve`: serves OpenAI's and Anthropic's APIs until it is stopped."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from core.cli.arguments import add_model, add_quiet, add_settings, settings_from, whole
from core.errors import ClusterError, DraftlightError, ModelError, WorkerError
from core.events import (
    ClusterEnded,
    Failed,
    LoadProgress,
    ModelEntry,
    ModelInfo,
    ModelLoaded,
    ModelReleased,
)
from core.events.codec import WorkerExited, WorkerSilent
from core.settings import Settings, assign, assign_all
from core.settings.window import Server
from core.system.children import absolute_reference
from core.system.terminal import ProgressLine

if TYPE_CHECKING:
    from core.serve.answering import Serving
    from core.serve.own_worker import OwnWorker, Told
    from core.serve.server import LocalServer

_MB = 1_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    defaults = Server()
    add_model(parser)
    parser.add_argument(
        "--port", type=whole(0, 65535), default=defaults.port, metavar="N",
        help=f"0 selects a free port (default {defaults.port})",
    )  # fmt: skip
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS",
        help="address to listen on; one that other machines reach needs --key-file (default 127.0.0.1)",
    )  # fmt: skip
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME",
        help="a host name that clients may use for this machine; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--allow-origin", action="append", default=[], metavar="ORIGIN",
        help="a web page that may send requests, such as http://localhost:3000; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--key-file", type=Path, metavar="F", help="clients must send the API key in it; created if missing"
    )
    parser.add_argument(
        "--waiting", type=whole(0, 100), default=defaults.waiting, metavar="N",
        help=f"requests that may wait while one is answered (default {defaults.waiting})",
    )  # fmt: skip
    parser.add_argument(
        "--strict", action="store_true",
        help="refuse requests with unsupported fields, tools or model names, instead of ignoring these",
    )  # fmt: skip
    parser.add_argument(
        "--longest-answer", type=whole(64, 131072), default=defaults.longest_answer, metavar="N",
        help="maximum tokens of an answer whose request sets no limit"
        f" (default {defaults.longest_answer:,})",
    )  # fmt: skip
    parser.add_argument(
        "--unload-after", type=whole(0, 1440), default=0, metavar="MINUTES",
        help="unload the model after this time without requests; the next one loads it again"
        " (default 0: never)",
    )  # fmt: skip
    parser.add_argument(
        "--load-models", action="store_true",
        help="load the installed model that a request names; without it, the loaded one answers",
    )  # fmt: skip
    parser.add_argument("--learn", action="store_true", help="let tables learn from clients' requests")
    add_settings(parser)
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C; returns the exit status. Raises `DraftlightError` kinds."""
    from core.cluster.group import launched
    from core.cluster.ranks import follow
    from core.serve.answering import Serving
    from core.serve.queue import InstalledModels
    from core.serve.security import AccessPolicy, allowed_host, allowed_origin
    from core.system.files import key_of

    launch = launched()
    if launch and launch.rank:
        return follow(launch)
    key = ""
    if options.key_file is not None:
        key, made = key_of(options.key_file)
        if made:
            print(f"A new key is in {options.key_file}.", file=sys.stderr)
    doors = AccessPolicy(
        options.host,
        tuple(map(allowed_host, options.allow_host)),
        tuple(map(allowed_origin, options.allow_origin)),
        key,
        Server().max_body_mb * _MB,
    )
    listed = _listed()
    base_settings(options, None)  # report errors before the server starts
    serving = Serving(
        doors,
        options.port,
        strict=options.strict,
        longest_answer=options.longest_answer,
        installed=InstalledModels(listed) if options.load_models else None,
        listed=listed,
    )
    return asyncio.run(_serve(options, serving))


def _listed() -> Callable[[], Awaitable[Sequence[ModelEntry]]]:
    """Lists the models on this machine."""
    from core.folders.catalogue import Catalogue
    from core.folders.config import Machine

    # The worker refuses models that do not fit into memory.
    return partial(asyncio.to_thread, Catalogue(Machine(1 << 62, expands=False)).entries)


def base_settings(options: argparse.Namespace, model: ModelInfo | None) -> Settings:
    """Default settings of requests: unless set otherwise, they are read densely, and nothing is learned."""
    usual = [("prefill.mode", "off"), ("tables.learn", False)]
    settings = settings_from(options, assign_all(model.settings if model else Settings(), usual))
    return assign(settings, "tables.learn", True) if options.learn else settings


async def _serve(options: argparse.Namespace, serving: Serving) -> int:
    console = Console(ProgressLine(options.quiet))
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with running(options, serving, console.report) as (server, worker):
        # Printed even if stderr is not a terminal: a program that started this one may wait for it.
        print(f"{server.address}/v1", flush=True)
        await first_of(stopped.wait(), worker.ended.wait())
        console.line.clear()
    if stopped.is_set():
        return 0
    raise console.problem or worker_ended()


def worker_ended() -> WorkerError:
    """The error for a worker that could not be started."""
    return WorkerError("The worker ended repeatedly.", "See draftlight doctor.")


@asynccontextmanager
async def running(
    options: argparse.Namespace, serving: Serving, report: Callable[[Told], None]
) -> AsyncIterator[tuple[LocalServer, OwnWorker]]:
    """Context manager of a started server and its worker, which loads the model; both are stopped at the end.

    `report` receives messages for the terminal. Raises `AddressError`.
    """
    from core.serve.own_worker import OwnWorker
    from core.serve.queue import Answers
    from core.serve.served_requests import ServedRequests
    from core.serve.server import LocalServer

    unload_after_s = 60.0 * options.unload_after
    worker = OwnWorker(absolute_reference(options.model), report, unload_after_s)
    answers = Answers(worker.gate, ServedRequests(0), options.waiting)
    base = lru_cache(1)(lambda model: base_settings(options, model))
    server = LocalServer(answers, replace(serving, base=lambda: base(worker.gate.model)))
    await server.start()
    worker.start()
    try:
        yield server, worker
    finally:
        worker.retire()
        await server.stop()
        await worker.stop()


async def first_of(*waits: Coroutine[Any, Any, object]) -> None:
    """Returns when the first of `waits` completes, and cancels the others."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Console:
    """Prints the worker's state on stderr, never requests or answers."""

    def __init__(self, line: ProgressLine) -> None:
        self.line = line
        self.problem: DraftlightError | None = None

    def report(self, event: Told) -> None:
        """Print a message."""
        match event:
            case LoadProgress(_, stage, fraction):
                self.line.say(stage if fraction is None else f"{stage}, {fraction:.0%}")
            case ModelLoaded(info):
                self.line.print(f"{info.name} is ready. Press Ctrl-C to stop.")
            case ModelReleased():
                self.line.print("The model was unloaded while idle. The next request loads it again.")
            case ClusterEnded():
                self.problem = ClusterError(event.message, event.hint)
            case Failed():
                self.problem = ModelError(event.message, event.hint)
            case WorkerSilent(seconds):
                self.line.print(f"The worker has been silent for {seconds:.0f} s and is being restarted.")
            case WorkerExited():
                how = event.signal_name or f"status {event.returncode}"
                self.line.print(f"The worker ended ({how}) and is being restarted.")
                self.line.print("\n".join(event.log[-5:]))
            case WorkerError():
                self.problem = event
