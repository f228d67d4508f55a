"""`draftlight bench ttft`."""

from __future__ import annotations

import argparse

from core.cli.bench.shared import DRAFTERS, add_out
from core.cli.console.arguments import name, readable_file, whole
from core.cli.console.parser import add_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    add_model(parser)
    parser.add_argument(
        "--prompts",
        type=readable_file,
        metavar="F.jsonl",
        help="lines with prompt; the first is asked (default: three classes of Draftlight's own)",
    )
    parser.add_argument(
        "--drafter",
        type=name("drafter", tuple(each for each in DRAFTERS if each != "off")),
        default="auto",
        help="who drafts, against off (default auto)",
    )
    parser.add_argument("--pairs", type=whole(), default=9, help="pairs of processes (default 9)")
    add_out(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure."""
    from core.bench.decode.ttft import run as measure

    return measure(options)
