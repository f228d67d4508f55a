"""`draftlight bench likelihood`."""

from __future__ import annotations

import argparse

from core.bench.retrieval.names import LIKELIHOOD_PARTS
from core.cli.bench.shared import add_out
from core.cli.console.arguments import names, number, whole
from core.cli.console.parser import add_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    add_model(parser)
    parser.add_argument(
        "--parts",
        type=names("part", LIKELIHOOD_PARTS),
        default=LIKELIHOOD_PARTS,
        help=f"comma-separated names (default {','.join(LIKELIHOOD_PARTS)})",
    )
    parser.add_argument("--keep", type=number(1, 100), default=20.0, help="percentage kept (default 20)")
    parser.add_argument(
        "--positions",
        choices=("true", "closed-up"),
        default="true",
        help="of turns (default true, where passages can be inserted)",
    )
    parser.add_argument("--questions", type=whole(), default=112, help="of positions (default 112)")
    parser.add_argument("--conversations", type=whole(), default=40, help="of turns (default 40)")
    add_out(parser, "goes on where it stopped")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure."""
    from core.bench.retrieval.likelihood import run as measure

    return measure(options)
