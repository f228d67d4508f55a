"""`draftlight bench sources`."""

from __future__ import annotations

import argparse

from core.cli.bench.shared import add_out
from core.cli.console.parser import add_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    add_model(parser)
    add_out(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure."""
    from core.bench.retrieval.sources import run as measure

    return measure(options)
