"""`draftlight bench parity`."""

from __future__ import annotations

import argparse

from core.cli.bench.shared import DRAFTERS, add_answer_length, add_draft_model, add_grid, add_out
from core.cli.console.arguments import listed, names, of_setting, readable_file, whole
from core.cli.console.parser import add_model
from core.settings.declaration import find


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    add_model(parser)
    parser.add_argument(
        "--prompts", type=readable_file, metavar="F.jsonl", help="lines with prompt and class"
    )
    parser.add_argument(
        "--lengths",
        type=listed(whole()),
        default=(600, 800),
        help="prompt lengths in tokens, met exactly (default 600,800)",
    )
    parser.add_argument(
        "--drafters",
        type=names("drafter that drafts", [each for each in DRAFTERS if each != "off"]),
        default=("ngram-simple",),
        help="comma-separated names (default ngram-simple)",
    )
    parser.add_argument(
        "--exactness",
        type=names("exactness", find("decoding.exactness").choices),
        default=("fast",),
        help="comma-separated: fast, guarded, exact (default fast)",
    )
    add_draft_model(parser, layers=6)
    parser.add_argument(
        "--k",
        type=listed(of_setting("ngram_simple.k")),
        default=(2, 7),
        help="draft lengths of ngram-simple (default 2,7)",
    )
    parser.add_argument(
        "--n-min",
        type=listed(of_setting("ngram_simple.n_min")),
        default=(2, 3),
        help="shortest matches of ngram-simple (default 2,3)",
    )
    parser.add_argument(
        "--runs", type=whole(), default=3, help="runs a side (default 3, so 9 comparisons a cell)"
    )
    add_answer_length(parser)
    add_grid(parser)
    add_out(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure."""
    from core.bench.decode.parity import run as measure

    return measure(options)
