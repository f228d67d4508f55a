"""`draftlight heads train`: trains an MTP head for a model that has none, on its own greedy answers.

Answers, hidden states and the training are saved, so the same command continues after Ctrl-C or `--minutes`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from core.cli.arguments import add_command, add_model, add_quiet, number, out_file, readable_file, whole
from core.errors import ModelError
from core.system.paths import cache_dir
from core.system.terminal import ProgressLine

if TYPE_CHECKING:  # importing these loads MLX, which `prepare()` must come before
    from core.rehearsal.heads import HeadTraining

T = TypeVar("T")
_CHECKPOINT_EVERY_S = 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the action."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    train = add_command(
        actions, "train", "train a head on the model's answers to the rehearsal prompts", _train
    )
    add_model(train)
    train.add_argument(
        "--prompts",
        type=readable_file,
        metavar="F.jsonl",
        help="lines with prompt, class, then (default: bundled prompts)",
    )
    train.add_argument(
        "--out",
        type=out_file,
        metavar="FILE",
        help="the head to write (default: mtp.safetensors in the model's folder, where it is used)",
    )
    train.add_argument("--epochs", type=whole(), default=6, help="passes over the answers (default 6)")
    train.add_argument(
        "--vocabulary", type=whole(2), default=8192, help="number of ids that it predicts (default 8192)"
    )
    train.add_argument("--tokens", type=whole(0), default=0, help="of answers to train on (default all)")
    train.add_argument("--seed", type=whole(0), default=0, help="of the training (default 0)")
    train.add_argument(
        "--minutes",
        type=number(0.0, 10_000.0),
        default=float("inf"),
        help="stop after this time; the same command continues (default no limit)",
    )
    add_quiet(train)


def _train(options: argparse.Namespace) -> int:
    from core.models.runtime import prepare

    prepare()
    from core.models.loader import load
    from core.models.mtp import save_head
    from core.models.mtp_files import TRAINED_FILE, TrainedHead
    from core.models.parts import split
    from core.rehearsal.heads import HeadPlan, HeadTraining, first_tokens, record_states
    from core.rehearsal.rehearsal import Rehearsal, RehearsalPlan
    from core.rehearsal.streams import default_conversations, read_conversations, read_records, shipped_ids
    from core.tables.prebuilt import rehearsal_paths

    started = time.monotonic()
    conversations = read_conversations(options.prompts or default_conversations())
    loaded = load(options.model)
    info = loaded.info
    parts = split(loaded.model)
    if isinstance(parts, str):
        raise ModelError(f"No head can be trained for {info.name}: {parts}.", "Choose another model.")
    out = options.out or Path(info.path) / TRAINED_FILE
    if not os.access(out.parent, os.W_OK):
        raise ModelError(f"{out.parent} is not writable.", "Give --out FILE in a copy of the model's folder.")
    records, table = rehearsal_paths(info.name)
    work = cache_dir() / "heads" / records.name.partition(".answers.")[0]
    plan = HeadPlan(
        work / "states",
        work / "checkpoint.safetensors",
        options.vocabulary,
        options.epochs,
        seed=options.seed,
    )

    def within(pieces: Iterable[T], say: Callable[[T], str]) -> Iterator[T]:
        """`pieces` until the time is over."""
        with ProgressLine(options.quiet) as line:
            for piece in pieces:
                yield piece
                if line.due():
                    line.say(say(piece))
                if time.monotonic() - started > options.minutes * 60:
                    raise KeyboardInterrupt

    training: HeadTraining | None = None
    try:
        answering = RehearsalPlan(records, table, most_tokens=options.tokens)
        rehearsal = Rehearsal(loaded, conversations, answering, shipped_ids(info))
        for _ in within(rehearsal.answer(), lambda at: f"{at.answered:,} of {at.prompts:,} answers"):
            pass
        streams = first_tokens(read_records(records), options.tokens)
        recorded = record_states(loaded, parts, streams, plan.states)
        for _ in within(recorded, lambda at: f"{at.done:,} of {at.total:,} hidden states"):
            pass
        training = HeadTraining(loaded, parts, streams, plan)
        saved = time.monotonic()
        for _ in within(training.train(), lambda at: f"step {at.done:,} of {at.total:,}, loss {at.loss:.3f}"):
            if time.monotonic() - saved > _CHECKPOINT_EVERY_S:
                training.save_checkpoint()
                saved = time.monotonic()
    except KeyboardInterrupt:
        if training is not None:
            training.save_checkpoint()
        print("Stopped. The same command continues from here.")
        return 130
    training.save_checkpoint()
    accuracy = training.measure()
    answers, tokens, held_out = training.counts
    trained = TrainedHead(
        model=info.name,
        seed=options.seed,
        steps=training.steps,
        seconds=round(training.seconds, 1),
        answers=answers,
        tokens=tokens,
        accuracy=tuple(round(each.first, 4) for each in accuracy),
    )
    try:
        save_head(training.head, out, trained)
    except OSError as error:
        raise ModelError(f"{out} cannot be written: {error}.", "Give another --out FILE.") from error
    print(
        f"{out}: {out.stat().st_size / 1024:,.0f} KiB, trained on {tokens:,} tokens of {answers:,} answers in"
        f" {training.seconds / 60:.1f} minutes"
    )
    if out.name == TRAINED_FILE:
        print("It drafts when the model is loaded next, with mtp and auto.")
    print(f"Right guesses in {held_out:,} held-out answers, if the guesses before them were right:")
    for place, each in zip(("first", "second", "third"), accuracy):
        print(f"  {place}: {each.first:.1%}, or one of two: {each.first_two:.1%} ({each.count:,} guesses)")
    shutil.rmtree(work, ignore_errors=True)
    return 0
