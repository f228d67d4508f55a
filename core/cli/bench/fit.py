"""`draftlight bench fit`."""

from __future__ import annotations

import argparse

from core.cli.bench.shared import add_out
from core.cli.console.arguments import readable_file, whole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    parser.add_argument("--streams", type=readable_file, required=True, metavar="F.jsonl.gz")
    parser.add_argument(
        "--learned", type=readable_file, metavar="TABLE", help="a learned table of other answers"
    )
    parser.add_argument(
        "--held-out",
        type=whole(2),
        default=5,
        metavar="N",
        help="every Nth answer is not fitted (default 5)",
    )
    add_out(parser, "for the weights and the report")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Fit."""
    from core.bench.replay.fit import run as fit

    return fit(options)
