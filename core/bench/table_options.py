"""The options of `draftlight bench tables`. Loads no machinery: the command line reads them all at once."""

from __future__ import annotations

import argparse
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this bench."""
    parser.add_argument(
        "--parts",
        default="conversation,timing",
        help="comma-separated: conversation,"
        " timing, and with --streams learned, sizes, cacheback, poison (default conversation,timing)",
    )
    parser.add_argument("--streams", type=Path, metavar="F.jsonl.gz", help="recorded prompts and answers")
    parser.add_argument("--pairs", type=int, default=2, help="of measured answers (default 2)")
    parser.add_argument("--max-tokens", type=int, default=160)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="goes on where it stopped")
    conversation = parser.add_argument_group("conversation")
    conversation.add_argument(
        "--drafters", default="auto,ngram-mod", help="comma-separated (default auto,ngram-mod)"
    )
    conversation.add_argument(
        "--warmed-by",
        default="same,earlier,rounded,thinned",
        help="comma-separated: the same questions, earlier ones, the same by a rounded copy of the model or"
        " by one with a layer less (default same,earlier,rounded,thinned)",
    )
    conversation.add_argument(
        "--conversation",
        type=Path,
        metavar="FILE",
        help="what is asked (default resources/bench/edits.json; list.json beside it is another)",
    )
    conversation.add_argument(
        "--without-layer", type=int, metavar="N", help="of the thinned copy (default the middle one)"
    )
    conversation.add_argument("--bits", type=int, default=8, help="a weight of the rounded copy (default 8)")
    streams = parser.add_argument_group("on recorded streams")
    streams.add_argument("--each", type=int, default=0, help="learned: prompts of a kind (default all)")
    streams.add_argument(
        "--frozen",
        nargs="+",
        type=Path,
        default=[],
        metavar="FILE",
        help="cacheback: its tables (default: of each half from the other half's answers)",
    )
