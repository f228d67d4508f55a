"""The options of `draftlight bench sweep`. Loads no machinery: the command line reads them all at once."""

from __future__ import annotations

import argparse
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this bench."""
    parser.add_argument(
        "--prompts",
        type=Path,
        action="append",
        metavar="F.jsonl",
        help="lines with prompt or turns, and class",
    )
    parser.add_argument("--classes", default="all", help="comma-separated (default all of the prompts')")
    parser.add_argument("--drafters", default="ngram-simple,auto", help="comma-separated names")
    parser.add_argument("--pairs", type=int, default=3, help="measured pairs a prompt (default 3)")
    parser.add_argument("--exactness", default="fast", help="fast, guarded or exact (default fast)")
    parser.add_argument("--max-prompt-tokens", type=int, default=800)
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--draft-model", default="", help="for draft-model (default: a cut-down copy)")
    parser.add_argument("--draft-layers", type=int, default=6, help="layers of the cut-down copy (default 6)")
    parser.add_argument(
        "--keep", default="", help="shares of a long prompt to read, as 10,20,50 (default none)"
    )
    parser.add_argument("--keep-tokens", type=int, default=4000, help="of the long prompt (default 4000)")
    parser.add_argument("--scorer", default="lexical", help="who chooses what is read (default lexical)")
    parser.add_argument("--json", action="store_true", help="one result a line on stdout")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
