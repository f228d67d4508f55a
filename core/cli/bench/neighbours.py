"""`draftlight bench neighbours`."""

from __future__ import annotations

import argparse

from core.cli.bench.shared import DRAFTERS, add_answer_length, add_out
from core.cli.console.arguments import name, readable_file, whole
from core.cli.console.parser import add_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    add_model(parser)
    parser.add_argument(
        "--prompts", type=readable_file, metavar="F.jsonl", help="lines with prompt and class"
    )
    parser.add_argument(
        "--pairs", type=whole(), default=5, help="pairs alone, and as many beside a busy loop (default 5)"
    )
    parser.add_argument(
        "--drafter", type=name("drafter", DRAFTERS), default="auto", help="who drafts (default auto)"
    )
    parser.add_argument(
        "--max-prompt-tokens", type=whole(), default=200, help="longer prompts are cut (default 200)"
    )
    add_answer_length(parser, 48)
    add_out(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure."""
    from core.bench.decode.neighbours import run as measure

    return measure(options)
