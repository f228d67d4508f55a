"""Arguments: one way to check what is typed, for every command, before any work begins.

Each function here returns what argparse calls with the text, or is that. What it refuses ends with
exit status 2 and a sentence that names what was given and what is allowed.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from core.settings.declaration import find

_Value = TypeVar("_Value")
Names = Sequence[str] | Callable[[], Sequence[str]]


def whole(least: int = 1, most: int | None = None) -> Callable[[str], int]:
    """A whole number in inclusive bounds."""
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
    """A number in inclusive bounds."""

    def parsed(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"“{text}” is not a number from {least:g} to {most:g}")
        return value

    return parsed


def of_setting(key: str) -> Callable[[str], int]:
    """A whole number that the setting `key` allows."""
    setting = find(key)
    return whole(int(setting.minimum or 0), int(setting.maximum or 0))


def listed(one: Callable[[str], _Value]) -> Callable[[str], tuple[_Value, ...]]:
    """Values separated by commas, at least one, none twice."""

    def parsed(text: str) -> tuple[_Value, ...]:
        return tuple(dict.fromkeys(one(word.strip()) for word in text.split(",")))

    return parsed


def name(what: str, known: Names) -> Callable[[str], str]:
    """One of the names that are `known`; `what` says what they are names of."""

    def parsed(text: str) -> str:
        names = known() if callable(known) else known
        if text not in names:
            raise argparse.ArgumentTypeError(
                f"there is no {what} called “{text}”; there are {', '.join(names)}"
            )
        return text

    return parsed


def names(what: str, known: Names, *, others: Sequence[str] = ()) -> Callable[[str], tuple[str, ...]]:
    """Some of the names that are `known`, separated by commas, or one of `others` (as all) alone."""

    def parsed(text: str) -> tuple[str, ...]:
        if text in others:
            return (text,)
        return listed(name(what, known))(text)

    return parsed


def readable_file(text: str) -> Path:
    """A file that is there and can be read."""
    path = Path(text)
    try:
        with path.open("rb"):
            pass
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{text} cannot be read: {_reason(error)}") from None
    return path


def out_file(text: str) -> Path:
    """A file that can be written, in a folder that is there or can be made."""
    path = Path(text)
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is a folder, not a file")
    _check_writable(path.parent, text)
    return path


def out_folder(text: str) -> Path:
    """A folder that can be written in, or made."""
    path = Path(text)
    _check_writable(path, text)
    return path


def _check_writable(folder: Path, text: str) -> None:
    """Nothing is made here: the nearest folder that is there is asked."""
    try:
        there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{text} cannot be written: {_reason(error)}") from None
    if not there.is_dir():
        raise argparse.ArgumentTypeError(f"{text} cannot be written in: {there} is a file")
    if not os.access(there, os.W_OK | os.X_OK):
        raise argparse.ArgumentTypeError(f"{text} cannot be written: {there} allows no writing")


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror or "it failed") if isinstance(error, OSError) else str(error)
