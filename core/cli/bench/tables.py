"""`draftlight bench tables`."""

from __future__ import annotations

import argparse

from core.cli.bench.shared import DRAFTERS, add_answer_length, add_out
from core.cli.console.arguments import names, readable_file, whole
from core.cli.console.parser import UsageError, add_model

_ON_STREAMS = ("learned", "sizes", "cacheback", "poison")
_PARTS = ("conversation", "timing", *_ON_STREAMS)
_TEACHERS = ("same", "earlier", "rounded", "thinned")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    add_model(parser)
    parser.add_argument(
        "--parts",
        type=names("part", _PARTS),
        default=("conversation", "timing"),
        help="comma-separated: conversation,"
        " timing, and with --streams learned, sizes, cacheback, poison (default conversation,timing)",
    )
    parser.add_argument(
        "--streams", type=readable_file, metavar="F.jsonl.gz", help="recorded prompts and answers"
    )
    parser.add_argument("--pairs", type=whole(), default=2, help="of measured answers (default 2)")
    add_answer_length(parser, 160)
    add_out(parser, "goes on where it stopped")
    conversation = parser.add_argument_group("conversation")
    conversation.add_argument(
        "--drafters",
        type=names("drafter", DRAFTERS),
        default=("auto", "ngram-mod"),
        help="comma-separated (default auto,ngram-mod)",
    )
    conversation.add_argument(
        "--warmed-by",
        type=names("way to warm a table", _TEACHERS),
        default=_TEACHERS,
        help="comma-separated: the same questions, earlier ones, the same by a rounded copy of the model or"
        " by one with a layer less (default same,earlier,rounded,thinned)",
    )
    conversation.add_argument(
        "--teacher",
        action="append",
        default=[],
        metavar="MODEL",
        help="another model folder of the family that warms the table of --model; may be repeated",
    )
    conversation.add_argument(
        "--conversation",
        type=readable_file,
        metavar="FILE",
        help="what is asked (default resources/bench/edits.json; list.json beside it is another)",
    )
    conversation.add_argument(
        "--without-layer", type=whole(0), metavar="N", help="of the thinned copy (default the middle one)"
    )
    conversation.add_argument(
        "--bits", type=whole(2, 8), default=8, help="a weight of the rounded copy (default 8)"
    )
    streams = parser.add_argument_group("on recorded streams")
    streams.add_argument("--each", type=whole(0), default=0, help="learned: prompts of a kind (default all)")
    streams.add_argument(
        "--frozen",
        nargs="+",
        type=readable_file,
        default=[],
        metavar="FILE",
        help="cacheback: its tables (default: of each half from the other half's answers)",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure."""
    if options.streams is None and set(_ON_STREAMS) & set(options.parts):
        raise UsageError("These parts replay recorded streams, and none were given.", "Add --streams F.")
    from core.bench.tables.tables import run as measure

    return measure(options)
