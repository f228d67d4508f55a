"""Parser: argparse's, but what is wrong is raised as a `UsageError`, in one sentence.

A command is a module (`Command`): what it takes, and what it does. Its machinery is imported when it
runs, so that `--help` waits for nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NoReturn, Protocol

from core.errors import RequestError


class UsageError(RequestError):
    """The command line itself is wrong."""

    code = "usage"


class Command(Protocol):
    """A module of `core.cli` that is one command."""

    @property
    def add_arguments(self) -> Callable[[argparse.ArgumentParser], object]:
        """What it takes; a group of commands adds its own parsers here."""


class Parser(argparse.ArgumentParser):
    """Parses one command. Raises `UsageError`. Flags are written out: a new one never changes an old line."""

    def __init__(self, **named: Any) -> None:
        super().__init__(**{**named, "allow_abbrev": False})

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message.rstrip('.')}.", f"See {self.prog} --help.")


def add_command(
    commands: Any, name: str, text: str, run: Callable[[argparse.Namespace], int] | None = None
) -> argparse.ArgumentParser:
    """A parser for the command `name`; `run` gets its options and returns the exit status."""
    added: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=f"{text[0].upper()}{text[1:]}."
    )
    if run is not None:
        added.set_defaults(run=run)
    return added


def add_model(parser: argparse.ArgumentParser) -> None:
    """The model that the command loads; a hub name that is not here is downloaded first."""
    parser.add_argument("--model", help="starter (the default), a model folder, or a hub name")
    parser.set_defaults(loads=True)


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """The flag that keeps a long work silent until it is done."""
    parser.add_argument("--quiet", action="store_true", help="do not say on stderr how far it is")
