"""Options that several benches take."""

from __future__ import annotations

import argparse

from core.cli.console.arguments import out_folder, whole
from core.settings.declaration import find

DRAFTERS = find("drafting.drafter").choices
# `auto` chooses among the others.


def add_out(parser: argparse.ArgumentParser, text: str = "for the results and the report") -> None:
    """The folder for what was found."""
    parser.add_argument("--out", type=out_folder, required=True, metavar="DIR", help=text)


def add_draft_model(parser: argparse.ArgumentParser, layers: int) -> None:
    """Who drafts for `draft-model`: a model, or the first `layers` of the one that is measured."""
    parser.add_argument("--draft-model", default="", help="for draft-model (default: a cut-down copy)")
    parser.add_argument(
        "--draft-layers",
        type=whole(),
        default=layers,
        help=f"layers of the cut-down copy (default {layers})",
    )


def add_answer_length(parser: argparse.ArgumentParser, tokens: int = 128) -> None:
    """How long an answer may be."""
    parser.add_argument("--max-tokens", type=whole(), default=tokens, help=f"of an answer (default {tokens})")


def add_grid(parser: argparse.ArgumentParser) -> None:
    """Settings to try with each drafter that looks at them."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="GROUP.FIELD=VALUE",
        help="a setting of all configurations; may be repeated",
    )
    parser.add_argument(
        "--grid",
        action="append",
        default=[],
        metavar="GROUP.FIELD=A,B,…",
        help="try each of these values, with each of every other --grid, as ngram_mod.k=2,4,6,8",
    )
