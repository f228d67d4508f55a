"""`draftlight bench serve`."""

from __future__ import annotations

import argparse

from core.bench.serve.workloads import WORKLOADS
from core.cli.bench.shared import add_answer_length, add_out
from core.cli.console.arguments import names, whole
from core.cli.console.parser import add_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    add_model(parser)
    parser.add_argument("--pairs", type=whole(), default=5, help="how often each is asked (default 5)")
    parser.add_argument(
        "--workloads",
        type=names("workload", WORKLOADS),
        default=WORKLOADS,
        help=f"comma-separated (default {','.join(WORKLOADS)})",
    )
    add_answer_length(parser, 700)
    add_out(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure."""
    from core.bench.serve.serve import run as measure

    return measure(options)
