"""Commands that the window implements.

It is found through the entry point group `draftlight.window`, so the engine does not depend on Qt.
"""

from __future__ import annotations

import argparse
import importlib.metadata
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.cli.arguments import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `draftlight` without a command."""
    parser.add_argument("--model", default="", help="starter, a model folder, or a hub name")
    parser.add_argument("--smoke", action="store_true", help="open, ask one question, print statistics, quit")
    parser.add_argument("--screenshot", metavar="FILE.png", help="save a screenshot during an answer")
    parser.add_argument("--scheme", choices=("system", "light", "dark"), default="system")
    parser.add_argument(
        "--open",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="attach a file to the message; repeatable",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Open the window and return when it is closed."""
    if options.smoke:
        return int(window_part("smoke")(options.model or "starter"))
    if options.screenshot:
        picture = window_part("screenshot")
        return int(picture(options.screenshot, options.scheme, options.model or "starter"))
    return int(window_part("window")(options.model, options.scheme, options.open))


def find_window_part(name: str) -> Callable[..., Any] | None:
    """The entry point `name` of the window; None if the window is not installed."""
    entries = importlib.metadata.entry_points(group="draftlight.window", name=name)
    return next((entry.load() for entry in entries), None)


def window_part(name: str) -> Callable[..., Any]:
    """Like `find_window_part`, but raises `UsageError` if there is none."""
    part = find_window_part(name)
    if part is None:
        raise UsageError("This installation has no window.", "Install Draftlight with the window.")
    return part
