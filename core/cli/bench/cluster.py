"""`draftlight bench cluster`."""

from __future__ import annotations

import argparse
from pathlib import Path

from core.cli.bench.shared import DRAFTERS, add_answer_length, add_out
from core.cli.cluster import add_cluster
from core.cli.console.arguments import listed, name, number, whole
from core.cli.console.parser import add_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    add_model(parser)
    add_cluster(parser)
    parser.add_argument(
        "--machines",
        type=whole(2, 16),
        default=2,
        metavar="N",
        help="without --cluster: so many processes of this machine, at best one a core (default 2)",
    )
    parser.add_argument(
        "--delays",
        type=listed(number(0.0, 100.0)),
        default=(0.0, 0.2, 1.0, 5.0),
        metavar="A,B,…",
        help="milliseconds that a collective takes more (default 0,0.2,1,5)",
    )
    parser.add_argument(
        "--drafter",
        type=name("drafter", tuple(each for each in DRAFTERS if each != "off")),
        default="auto",
        help="who drafts, against off (default auto)",
    )
    parser.add_argument("--pairs", type=whole(), default=1, help="pairs of answers a prompt (default 1)")
    add_answer_length(parser, 32)
    add_out(parser)
    parser.add_argument("--lead", type=Path, help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure."""
    if options.lead is not None:
        from core.bench.cluster.leading import lead

        return lead(options.lead)
    from core.bench.cluster.cluster import run as measure

    return measure(options)
