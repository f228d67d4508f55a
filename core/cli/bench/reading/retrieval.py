"""`draftlight bench retrieval`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from core.bench.retrieval.names import MEASURED
from core.cli.bench.shared import add_out
from core.cli.console.arguments import listed, names, number, whole
from core.cli.console.parser import add_model

# Settings that the bench varies itself.
_OWN_OPTIONS = {"prefill.keep_pct": "--keep", "prefill.mode": "--answers"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the bench's options."""
    add_model(parser)
    parser.add_argument(
        "--scorers",
        type=names("scorer", MEASURED),
        default=MEASURED,
        help=f"comma-separated names (default {','.join(MEASURED)})",
    )
    parser.add_argument(
        "--documents",
        type=names("document", _documents, others=("all",)),
        default=("all",),
        help="comma-separated names of documents, or all (default)",
    )
    parser.add_argument(
        "--keep",
        type=listed(number(1, 100)),
        default=(10.0, 20.0, 30.0),
        help="comma-separated percentages (default 10,20,30)",
    )
    parser.add_argument(
        "--answers",
        type=whole(0),
        default=0,
        metavar="N",
        help="also measure how likely right answers to N questions are (default 0)",
    )
    parser.add_argument(
        "--set",
        action="append",
        type=prefill_setting,
        default=[],
        metavar="PREFILL.FIELD=VALUE",
        help="a setting of sparse prefill; may be repeated",
    )
    add_out(parser, "resumes where it stopped")
    parser.set_defaults(run=run)


def prefill_setting(text: str) -> str:
    """`prefill.field=value`; the value is checked before the model is loaded."""
    key, equals, _ = text.partition("=")
    if not (key.startswith("prefill.") and equals):
        raise argparse.ArgumentTypeError(f"“{text}” is not prefill.FIELD=VALUE")
    if key in _OWN_OPTIONS:
        raise argparse.ArgumentTypeError(f"{key} is not set by --set. Use {_OWN_OPTIONS[key]}")
    return text


def _documents() -> Sequence[str]:
    from core.bench.retrieval.questions import documents

    return [document.name for document in documents()]


def run(options: argparse.Namespace) -> int:
    """Measure."""
    from core.bench.retrieval.retrieval import run as measure

    return measure(options)
