"""`draftlight bench replay`: over recorded streams, or recording new ones."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from core.cli.bench.shared import DRAFTERS, add_answer_length, add_grid
from core.cli.console.arguments import names, out_file, out_folder, readable_file, whole
from core.cli.console.parser import UsageError, add_model
from core.settings.declaration import find


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--streams", type=readable_file, metavar="F.jsonl.gz", help="recorded answers to replay"
    )
    source.add_argument("--record", type=out_file, metavar="F.jsonl.gz", help="record new ones instead")
    add_model(parser)
    parser.add_argument(
        "--prompts", type=readable_file, metavar="F.jsonl", help="what to answer when recording"
    )
    add_answer_length(parser, 160)
    parser.add_argument("--batch", type=whole(), default=1, help="answers recorded at once (default 1)")
    parser.add_argument(
        "--drafters", type=names("drafter", DRAFTERS), default=(), help="comma-separated names (default: all)"
    )
    parser.add_argument(
        "--costs",
        type=names("cost table", _cost_tables),
        default=("cpu", "apple"),
        help="named cost tables (default cpu,apple)",
    )
    parser.add_argument(
        "--gates",
        type=names("gate", find("gate.mode").choices),
        default=("always",),
        help="always, auto, or both (default always)",
    )
    parser.add_argument("--frozen", type=readable_file, metavar="TABLE", help="a frozen table, for cacheback")
    add_grid(parser)
    parser.add_argument("--out", type=out_folder, metavar="DIR", help="for the report of a replay")
    parser.add_argument("--learned", type=readable_file, metavar="TABLE", help="a table of answers, for auto")
    parser.add_argument("--texts", type=readable_file, metavar="TABLE", help="a table of texts, for auto")
    # A replay needs no model; a recording fetches its own.
    parser.set_defaults(run=run, loads=False)


def _cost_tables() -> Sequence[str]:
    from core.bench.replay.cost_table import COST_TABLES

    return list(COST_TABLES)


def run(options: argparse.Namespace) -> int:
    """Replay or record."""
    if options.record is None:
        if options.out is None:
            raise UsageError("There is no place for the report.", "Give --out DIR.")
        from core.bench.replay.replay import run as replay

        return replay(options)
    if options.prompts is None:
        raise UsageError(
            "There is nothing to answer.", "Give --prompts F.jsonl, lines with prompt and class."
        )
    from core.bench.replay.record import run as record
    from core.cli.models import fetch

    fetch(options.model)
    return record(options)
