"""The command line: every command, and how one ends."""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
from collections.abc import Sequence

from core.cli import (
    bench,
    cluster,
    doctor,
    follow,
    generate,
    json_lines,
    launch,
    models,
    serve,
    settings,
    tables,
    window,
)
from core.cli.console.config import read_config
from core.cli.console.output import OutputGoneError, guarded_output
from core.cli.console.parser import Parser, UsageError, add_command
from core.cli.installation import completion, uninstall
from core.errors import DraftlightError, SettingError

# 128 and SIGPIPE's number, as shells count what `head` ends.
_NOBODY_READS = 141


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments say; the status. Errors are said on stderr, Ctrl-C is passed on."""
    try:
        with guarded_output():
            return _run(arguments)
    except (OutputGoneError, BrokenPipeError):
        return _NOBODY_READS
    except DraftlightError as error:  # the last of the output could not be written
        return _say(error)


def _run(arguments: Sequence[str]) -> int:
    as_lines = json_lines.wanted(arguments)
    if as_lines:
        json_lines.begin()
    try:
        arguments, clients = launch.split(arguments)
        options = parser().parse_args(arguments)
        if clients:
            options.arguments = clients
        if "model" in options and options.model is None:
            options.model = read_config().model or "starter"
        if getattr(options, "loads", False):
            models.fetch(options.model, quiet=getattr(options, "quiet", False))
        return int(options.run(options))
    except OutputGoneError:
        raise
    except DraftlightError as error:
        if as_lines:
            json_lines.fail(error)
        return _say(error)
    except BrokenPipeError:
        raise
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        print(f"draftlight: {named}{error.strerror or error}.", file=sys.stderr)
        return 1


def _say(error: DraftlightError) -> int:
    print(f"draftlight: {error}", file=sys.stderr)
    return 2 if isinstance(error, SettingError | UsageError) else 1


def parser() -> argparse.ArgumentParser:
    """Of all commands."""
    root = Parser(prog="draftlight", description="Chat with a local model and see why it is fast.")
    root.add_argument("--version", action="version", version=importlib.metadata.version("draftlight"))
    window.add_arguments(root)
    commands = root.add_subparsers(title="commands", metavar="COMMAND")
    generate.add_arguments(add_command(commands, "generate", "answer one prompt in the terminal"))
    serve.add_arguments(
        add_command(commands, "serve", "answer editors and scripts on this machine by OpenAI's API")
    )
    launch.add_arguments(
        add_command(commands, "launch", "start Claude Code, Codex or opencode with the local model")
    )
    models.add_arguments(
        add_command(commands, "models", "which are here, what fits, downloads, what a model costs")
    )
    tables.add_arguments(
        add_command(commands, "tables", "what the drafters learned: list, save, share, erase")
    )
    cluster.add_arguments(
        add_command(commands, "cluster", "one model over several machines: are they there, does it run")
    )
    follow.add_arguments(add_command(commands, "follow", "hold a part of a model for another machine"))
    settings.add_arguments(
        add_command(commands, "settings", "what --set takes: bounds, defaults, what each is for")
    )
    bench.add_arguments(add_command(commands, "bench", "measure"))
    doctor.add_arguments(
        add_command(commands, "doctor", "what is installed, what is fast, what is not and why")
    )
    uninstall.add_arguments(
        add_command(commands, "uninstall", "list the files that Draftlight keeps, and remove them")
    )
    completion.add_arguments(
        add_command(commands, "completion", "a script that completes commands, flags and values in a shell"),
        root,
    )
    return root
