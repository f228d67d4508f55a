"""All commands of `draftlight`, their exit statuses, and protection of the standard streams."""

from __future__ import annotations

import argparse
import importlib.metadata
import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from core.cli import bench, doctor, generate, json_lines, launch, models, serve, tables, tools, window
from core.cli.arguments import Parser, UsageError, add_command, add_settings_command, read_config
from core.errors import DraftlightError, RequestError, SettingError, reason_of
from core.system.private import tighten_home
from core.system.terminal import VisibleText

_PIPE_CLOSED = 141  # 128 + SIGPIPE, as shells report it


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit status. Errors are printed on stderr; Ctrl-C is passed on."""
    try:
        with guarded_output():
            return _run(arguments)
    except (OutputGoneError, BrokenPipeError):
        return _PIPE_CLOSED
    except DraftlightError as error:  # the end of the output could not be written
        return _print_error(error)


def _run(arguments: Sequence[str]) -> int:
    as_lines = json_lines.wanted(arguments)
    if as_lines:
        json_lines.begin()
    try:
        arguments, clients = launch.split(arguments)
        options = parser().parse_args(arguments)
        if clients:
            options.arguments = clients
        tighten_home()
        if "model" in options and options.model is None:
            options.model = read_config()[0] or "starter"
        if getattr(options, "loads", False):
            models.fetch(options.model, quiet=getattr(options, "quiet", False))
        return int(options.run(options))
    except (OutputGoneError, BrokenPipeError):
        raise
    except Exception as error:
        if as_lines:
            json_lines.fail(error)
        if isinstance(error, DraftlightError):
            return _print_error(error)
        if not isinstance(error, OSError):
            raise
        named = f"{error.filename}: " if error.filename else ""
        print(f"draftlight: {named}{reason_of(error)}.", file=sys.stderr)
        return 1


def _print_error(error: DraftlightError) -> int:
    print(f"draftlight: {error}", file=sys.stderr)
    return 2 if isinstance(error, SettingError | UsageError) else 1


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    root = Parser(prog="draftlight", description="Chat with a local model and see why it is fast.")
    root.add_argument("--version", action="version", version=importlib.metadata.version("draftlight"))
    window.add_arguments(root)
    commands = root.add_subparsers(title="commands", metavar="COMMAND")
    generate.add_arguments(add_command(commands, "generate", "answer one prompt in the terminal"))
    serve.add_arguments(
        add_command(commands, "serve", "serve the model on this machine with OpenAI's and Anthropic's APIs")
    )
    launch.add_arguments(
        add_command(commands, "launch", "start Claude Code, Codex or opencode with the local model")
    )
    models.add_arguments(add_command(commands, "models", "list, download, import, remove and profile models"))
    tables.add_arguments(
        add_command(commands, "tables", "list, save, share, build and erase the tables of the drafters")
    )
    tools.add_arguments(add_command(commands, "tools", "list and call the tools of a server (MCP)"))
    add_settings_command(
        add_command(commands, "settings", "list all settings with their allowed values and defaults")
    )
    bench.add_arguments(add_command(commands, "bench", "compare speed and output with mlx-lm, and more"))
    doctor.add_arguments(add_command(commands, "doctor", "check the installation and its speed"))
    return root


# ---- standard streams


class OutputGoneError(DraftlightError, code="output-gone"):
    """The reader of stdout has closed it, as `head` does."""


class _Stdout(io.FileIO):
    """File descriptor 1. After the first failure, writes are dropped, so closing it does not fail again."""

    failed = False

    def write(self, data: Any) -> int:
        if self.failed:
            return memoryview(data).nbytes
        try:
            return super().write(data)
        except BrokenPipeError:
            self.failed = True
            raise OutputGoneError("The reader of the output has closed it.") from None
        except OSError as error:
            self.failed = True
            why = f"The output cannot be written: {error.strerror}."
            raise RequestError(why, "Redirect it to another file.", code="bad-output") from None


class _Stderr(io.FileIO):
    """File descriptor 2. Failed writes are dropped."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


@contextmanager
def guarded_output() -> Iterator[None]:
    """Make failed writes to the process's own stdout raise `OutputGoneError` or `RequestError` (disk full).

    Neither is an OSError, which a command could attribute to one of its files. Control characters, and
    those that the output's encoding does not have, are written as escapes. Replaced streams (of a test) are
    left alone.
    """
    before = sys.stdin, sys.stdout, sys.stderr
    try:
        # A stream is None if its descriptor was closed at start.
        sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115
        sys.stdout = _guarded(sys.stdout, sys.__stdout__, _Stdout)
        sys.stderr = _guarded(sys.stderr, sys.__stderr__, _Stderr)
        yield
    finally:
        try:
            sys.stdout.flush()
        finally:
            sys.stdin, sys.stdout, sys.stderr = before


def _guarded(stream: TextIO | None, own: TextIO | None, kind: type[io.FileIO]) -> TextIO:
    if stream is None:
        return open(os.devnull, "w")
    if stream is not own:
        return stream
    raw = kind(stream.fileno(), "wb", closefd=False)
    at_once = kind is _Stderr or raw.isatty()
    buffered = io.BufferedWriter(raw)
    return VisibleText(buffered, encoding=stream.encoding, errors="backslashreplace", line_buffering=at_once)
