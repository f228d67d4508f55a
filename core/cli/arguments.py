"""Command-line parsing shared by the commands: parser, argument types, settings flags and `config.toml`.

Argument types reject invalid values before any work begins, with exit status 2 and a message that names the
value and the allowed ones.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tomllib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from core.documents.types import text_file
from core.errors import RequestError, SettingError, reason_of
from core.settings import FROM_MODEL, Settings, assign_all, declared, parse_all
from core.system.children import absolute_reference
from core.system.files import FileTooLargeError, read_regular
from core.system.paths import config_dir

_MOST_CONFIG_BYTES = 2**20
_Value = TypeVar("_Value")
Names = Sequence[str] | Callable[[], Sequence[str]]

# ---- parser


class UsageError(RequestError, code="usage"):
    """The command line is wrong."""


class Parser(argparse.ArgumentParser):
    """Raises `UsageError` instead of exiting, also for options before a command, which it would not read.

    Flags cannot be abbreviated, so new flags break no script.
    """

    def __init__(self, outer: Parser | None = None, **named: Any) -> None:
        super().__init__(**{**named, "allow_abbrev": False})
        self._outer = outer
        self._words: Sequence[str] = ()

    def add_subparsers(self, **named: Any) -> Any:
        return super().add_subparsers(**{**named, "parser_class": partial(Parser, self)})

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._words = sys.argv[1:] if args is None else args
        if self._outer and (before := self._outer._words[: -len(self._words) - 1]):
            flag, command = before[0].partition("=")[0], self.prog.rpartition(" ")[2]
            self.error(f"{flag} before {command} has no effect: put the options of {command} after it")
        return super().parse_known_args(self._words, namespace)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message.rstrip('.')}.", f"See {self.prog} --help.")


def add_command(
    commands: Any, name: str, text: str, run: Callable[[argparse.Namespace], int] | None = None
) -> argparse.ArgumentParser:
    """Add a subcommand with help `text`. `run` gets the parsed options and returns the exit status."""
    added: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=f"{text[0].upper()}{text[1:]}."
    )
    if run is not None:
        added.set_defaults(run=run)
    return added


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add `--model`. A hub name that is not installed is downloaded before the command runs."""
    parser.add_argument("--model", help="starter (the default), a model folder, or a hub name")
    parser.set_defaults(loads=True)


def confirmed(question: str) -> bool:
    """Ask a yes/no question on the terminal. Raises `RequestError` if stdin is not a terminal."""
    if not sys.stdin.isatty():
        raise RequestError("Nothing was removed: there is no terminal to confirm on.", "Add --yes.")
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:  # Ctrl-D
        print()
        return False


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Add `--quiet`."""
    parser.add_argument("--quiet", action="store_true", help="print no progress on stderr")


# ---- argument types


def whole(least: int = 1, most: int | None = None) -> Callable[[str], int]:
    """An integer within inclusive bounds."""
    allowed = f"a whole number from {least:,}" + (f" to {most:,}" if most is not None else " up")

    def parsed(text: str) -> int:
        try:
            value = int(text) if len(text) < 20 else None
        except ValueError:
            value = None
        if value is None or value < least or (most is not None and value > most):
            raise argparse.ArgumentTypeError(f"“{text}” is not {allowed}")
        return value

    return parsed


def number(least: float, most: float) -> Callable[[str], float]:
    """A number within inclusive bounds."""

    def parsed(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"“{text}” is not a number from {least:g} to {most:g}")
        return value

    return parsed


def listed(one: Callable[[str], _Value]) -> Callable[[str], tuple[_Value, ...]]:
    """Comma-separated values without duplicates."""

    def parsed(text: str) -> tuple[_Value, ...]:
        return tuple(dict.fromkeys(one(word.strip()) for word in text.split(",")))

    return parsed


def name(what: str, known: Names) -> Callable[[str], str]:
    """One of the `known` names; `what` is the kind of name, for the error message."""

    def parsed(text: str) -> str:
        names = known() if callable(known) else known
        if text not in names:
            raise argparse.ArgumentTypeError(f"unknown {what} “{text}”; choose from {', '.join(names)}")
        return text

    return parsed


def names(what: str, known: Names, *, others: Sequence[str] = ()) -> Callable[[str], tuple[str, ...]]:
    """Comma-separated names from `known`, or a single one of `others` (such as “all”)."""

    def parsed(text: str) -> tuple[str, ...]:
        if text in others:
            return (text,)
        return listed(name(what, known))(text)

    return parsed


def readable_file(text: str) -> Path:
    """An existing readable file."""
    path = Path(text)
    try:
        if not path.is_fifo():  # closing a pipe would end its writer
            text_file(path).open("rb").close()
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{text} cannot be read: {reason_of(error)}") from None
    return path


def out_file(text: str) -> Path:
    """A file that can be written, in a folder that exists or can be created."""
    path = Path(text)
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is a folder, not a file")
    _check_writable(path.parent, text)
    return path


def out_folder(text: str) -> Path:
    """A folder that is writable or can be created."""
    path = Path(text)
    _check_writable(path, text)
    return path


def _check_writable(folder: Path, text: str) -> None:
    """Checks the nearest existing ancestor; creates nothing."""
    try:
        existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{text} cannot be written: {reason_of(error)}") from None
    if not existing.is_dir():
        raise argparse.ArgumentTypeError(f"{text} cannot be written in: {existing} is a file")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise argparse.ArgumentTypeError(f"{text} cannot be written: {existing} is not writable")


# ---- settings

# The most common settings have flags; `--set` reaches all of them.
_FLAGS = {
    "--drafter": "drafting.drafter",
    "--max-tokens": "sampling.max_tokens",
    "--temperature": "sampling.temperature",
    "--seed": "sampling.seed",
    "--specprefill": "prefill.mode",
    "--keep-pct": "prefill.keep_pct",
    "--scorer": "prefill.scorer",
}


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add a flag for each common setting, and `--set`."""
    known = {setting.key: setting for setting in declared()}
    for flag, key in _FLAGS.items():
        setting = known[key]
        default = f"the model's own, else {setting.default}" if key in FROM_MODEL else setting.default
        text = f"{setting.title.lower()}: {setting.allowed} (default {default})"
        parser.add_argument(
            flag, dest=key, metavar="NAME" if setting.choices else "N", help=text.replace("%", "%%")
        )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="GROUP.FIELD=VALUE",
        help="any setting; `draftlight settings` lists them with their allowed values: " + ", ".join(known),
    )


def settings_from(options: argparse.Namespace, base: Settings | None = None) -> Settings:
    """Settings from the flags, then `config.toml`, then `base`. Raises `SettingError`, `UsageError`."""
    pairs = [_setting_pair(text) for text in options.set]
    pairs += [(key, value) for key in _FLAGS.values() if (value := vars(options)[key]) is not None]
    return parse_all(read_config(base)[1], pairs)


def _setting_pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--set {text} has no value.", "Write --set group.field=value.")
    return key, value


def add_settings_command(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `draftlight settings`: all settings with their allowed values and defaults."""
    parser.add_argument("--markdown", action="store_true", help="print docs/settings.md")
    parser.set_defaults(run=_list_settings)


def _list_settings(options: argparse.Namespace) -> int:
    if options.markdown:
        print(settings_page(), end="")
        return 0
    for setting in declared():
        print(f"{setting.key}  ({setting.allowed}; default {_shown(setting.default)})")
        print(f"    {setting.title}: {setting.help}")
    return 0


def settings_page() -> str:
    """All settings as Markdown, one table per group: docs/settings.md."""
    lines = [
        "# Settings",
        "",
        "Generated by `make settings-doc` from the declarations in `core/settings`. These settings are in",
        "the inspector next to a chat, in `--set` of the command line, and in the tables of `config.toml`.",
    ]
    group = ""
    for setting in declared():
        if (name := setting.key.partition(".")[0]) != group:
            group = name
            lines += ["", f"## {group}", "", "| key | allowed | default | |", "|---|---|---|---|"]
        about = f"**{setting.title}.** {setting.help}".replace("|", "\\|")
        allowed = str(setting.allowed).replace("|", "\\|")
        lines.append(f"| `{setting.key}` | {allowed} | {_shown(setting.default)} | {about} |")
    return "\n".join(lines) + "\n"


def _shown(default: object) -> str:
    return str(default).lower() if isinstance(default, bool) else str(default) or "empty"


# ---- config.toml


def read_config(base: Settings | None = None) -> tuple[str, Settings]:
    """The command line's default model, empty if there is none, and its settings over `base`.

    Relative paths in the file start at its folder. The window has its own preferences. Raises `UsageError`
    for an invalid file.
    """
    path = config_dir() / "config.toml"
    try:
        found = tomllib.loads(read_regular(path, _MOST_CONFIG_BYTES).decode("utf-8-sig"))
    except FileNotFoundError:
        return "", base or Settings()
    except (OSError, ValueError, RecursionError, FileTooLargeError) as error:
        raise UsageError(f"{path} cannot be read: {reason_of(error)}.", "Fix or move it.") from None
    model = found.pop("model", "")
    if not isinstance(model, str):
        raise UsageError(f"{path}: the model “{model}” is not a string.", 'Write it as model = "starter".')
    values: list[tuple[str, Any]] = []
    for group, fields in found.items():
        if not isinstance(fields, dict):
            hint = "Write settings in tables such as [sampling]; only model may be outside of them."
            raise UsageError(f"{path}: unknown key “{group}” outside a table.", hint)
        values += [(f"{group}.{name}", value) for name, value in fields.items()]
    try:
        settings = assign_all(base or Settings(), values, relative_to=path.parent)
    except SettingError as error:
        raise UsageError(f"{path}: {error.message}", error.hint) from None
    return absolute_reference(model, path.parent), settings
