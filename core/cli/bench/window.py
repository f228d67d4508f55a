"""`draftlight bench window`, which the window's part of the installation does."""

from __future__ import annotations

import argparse

from core.cli.bench.shared import add_out
from core.cli.console.arguments import names, whole
from core.cli.console.parser import add_model
from core.cli.window import window_part
from core.settings.window_parts import PARTS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    add_model(parser)
    parser.add_argument(
        "--parts",
        type=names("part", PARTS),
        default=PARTS,
        help=f"comma-separated (default {','.join(PARTS)})",
    )
    parser.add_argument("--pairs", type=whole(), default=9, help="measured pairs of the cost (default 9)")
    add_out(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure."""
    return int(window_part("bench")(str(options.out), options.model, options.parts, options.pairs))
