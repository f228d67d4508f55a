"""`draftlight bench retrieval`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from core.bench.retrieval.names import MEASURED
from core.cli.bench.shared import add_out
from core.cli.console.arguments import names
from core.cli.console.parser import add_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    add_model(parser)
    parser.add_argument(
        "--scorers",
        type=names("scorer", MEASURED),
        default=MEASURED,
        help=f"comma-separated names (default {','.join(MEASURED)})",
    )
    parser.add_argument(
        "--documents",
        type=names("document", _documents, others=("all",)),
        default=("all",),
        help="comma-separated names of documents, or all (default)",
    )
    add_out(parser, "goes on where it stopped")
    parser.set_defaults(run=run)


def _documents() -> Sequence[str]:
    from core.bench.retrieval.questions import documents

    return [document.name for document in documents()]


def run(options: argparse.Namespace) -> int:
    """Measure."""
    from core.bench.retrieval.retrieval import run as measure

    return measure(options)
