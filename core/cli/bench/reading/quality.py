"""`draftlight bench quality`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from core.bench.quality.reader_names import DENSE, SCORELESS, at_true_positions, hindsight
from core.cli.bench.reading.prefill import kinds
from core.cli.bench.shared import add_draft_model, add_out
from core.cli.console.arguments import listed, names, number, whole
from core.cli.console.parser import add_model
from core.settings.prefill import SCORERS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    add_model(parser)
    parser.add_argument("--keep", type=number(1, 100), default=20.0, help="percentage kept (default 20)")
    add_draft_model(parser, layers=8)
    parser.add_argument(
        "--readers",
        type=listed(_reader),
        default=(*SCORERS, *SCORELESS),
        help="scorers, and the baselines random, head-and-tail and end (default all these); hindsight-N is"
        " shown the N tokens that follow; “-true” behind a name reads at true positions",
    )
    some = ("all", "none")
    parser.add_argument(
        "--tasks",
        type=names("task", _tasks, others=some),
        default=("all",),
        help="comma-separated names, all or none",
    )
    parser.add_argument(
        "--kinds",
        type=names("kind of document", kinds, others=some),
        default=("all",),
        help="of documents that go on: names, all or none",
    )
    parser.add_argument(
        "--passages",
        type=names("kind of document", kinds, others=some),
        default=("all",),
        help="of documents that a passage is asked of: names, all or none",
    )
    parser.add_argument("--seeds", type=whole(), default=20, help="prompts a task (default 20)")
    parser.add_argument("--windows", type=whole(), default=4, help="documents a kind (default 4)")
    parser.add_argument(
        "--context", type=whole(), default=4096, help="prompt tokens of passages and tasks (default 4096)"
    )
    parser.add_argument(
        "--document-context", type=whole(), default=7600, help="document tokens before the predicted ones"
    )
    parser.add_argument("--continuation", type=whole(), default=256, help="predicted tokens (default 256)")
    parser.add_argument("--quick", action="store_true", help="3 prompts a task, 1 document a kind")
    add_out(parser, "goes on where it stopped")
    parser.set_defaults(run=run)


def _reader(text: str) -> str:
    known = (*SCORERS, *SCORELESS, DENSE)
    if at_true_positions(text)[0] not in known and not hindsight(text):
        raise argparse.ArgumentTypeError(
            f"there is no reader called “{text}”; there are {', '.join(known)}, hindsight-N,"
            " each also with “-true” for true positions"
        )
    return text


def _tasks() -> Sequence[str]:
    from core.bench.quality.tasks import TASKS

    return list(TASKS)


def run(options: argparse.Namespace) -> int:
    """Measure."""
    from core.bench.quality.quality import run as measure

    return measure(options)
