"""`draftlight bench sweep`."""

from __future__ import annotations

import argparse

from core.cli.bench.shared import DRAFTERS, add_answer_length, add_draft_model, add_grid, add_out
from core.cli.console.arguments import listed, name, names, number, readable_file, whole
from core.cli.console.parser import add_model
from core.settings.declaration import find
from core.settings.prefill import SCORERS

# All but the one that does not draft: plain decoding is measured anyway.
_THAT_DRAFT = tuple(each for each in DRAFTERS if each != "off")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    add_model(parser)
    parser.add_argument(
        "--prompts",
        type=readable_file,
        action="append",
        metavar="F.jsonl",
        help="lines with prompt or turns, and class",
    )
    parser.add_argument(
        "--classes",
        type=listed(str),
        default=("all",),
        help="comma-separated (default all of the prompts')",
    )
    parser.add_argument(
        "--drafters",
        type=names("drafter to sweep", _THAT_DRAFT),
        default=("ngram-simple", "auto"),
        help="comma-separated names (default ngram-simple,auto)",
    )
    parser.add_argument("--pairs", type=whole(), default=3, help="measured pairs a prompt (default 3)")
    parser.add_argument(
        "--exactness",
        type=name("exactness", find("decoding.exactness").choices),
        default="fast",
        help="fast, guarded or exact (default fast)",
    )
    parser.add_argument(
        "--max-prompt-tokens", type=whole(), default=800, help="longer prompts are cut (default 800)"
    )
    add_answer_length(parser)
    add_draft_model(parser, layers=6)
    parser.add_argument(
        "--keep",
        type=listed(number(1, 100)),
        default=(),
        help="percentages of a long prompt to read, as 10,20,50 (default none)",
    )
    parser.add_argument("--keep-tokens", type=whole(), default=4000, help="of the long prompt (default 4000)")
    parser.add_argument(
        "--scorer",
        type=name("scorer to sweep", tuple(name for name in SCORERS if name != "draft-model")),
        default="lexical",
        help="who chooses what is read (default lexical)",
    )
    parser.add_argument("--json", action="store_true", help="one result a line on stdout")
    add_grid(parser)
    add_out(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure."""
    from core.bench.sweep.sweep import run as measure

    return measure(options)
