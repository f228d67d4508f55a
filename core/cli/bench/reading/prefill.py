"""`draftlight bench prefill`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from core.cli.bench.shared import add_draft_model, add_out
from core.cli.console.arguments import listed, name, names, number, readable_file, whole
from core.cli.console.parser import add_model
from core.settings.prefill import SCORERS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    add_model(parser)
    parser.add_argument("--tokens", type=whole(), default=8000, help="prompt tokens (default 8000)")
    parser.add_argument(
        "--keep",
        type=listed(number(1, 100)),
        default=(10.0, 20.0, 30.0, 50.0, 100.0),
        help="percentages kept (default 10,20,30,50,100)",
    )
    add_draft_model(parser, layers=8)
    parser.add_argument(
        "--scorers",
        type=names("scorer", SCORERS),
        default=SCORERS,
        help=f"comma-separated names (default {','.join(SCORERS)})",
    )
    parser.add_argument("--pairs", type=whole(), default=5, help="measured rounds of all (default 5)")
    parser.add_argument(
        "--kind",
        type=name("kind of document", kinds),
        default="minutes",
        help="kind of generated document (default minutes)",
    )
    parser.add_argument("--seed", type=whole(0), default=1, help="of the generated document (default 1)")
    parser.add_argument("--document", type=readable_file, metavar="F", help="a text to read instead")
    add_out(parser)
    parser.set_defaults(run=run)


def kinds() -> Sequence[str]:
    """The kinds of documents that can be generated."""
    from core.bench.documents import KINDS

    return list(KINDS)


def run(options: argparse.Namespace) -> int:
    """Measure."""
    from core.bench.prefill.prefill import run as measure

    return measure(options)
