"""`draftlight bench replay --record`: new streams from any model, to replay drafters over.

Prompts are answered greedily through the model's chat template, follow-ups after the model's own
answers, as in rehearsal. Answers are kept as they come beside the file that is asked for, so the
same command goes on after Ctrl-C; the file itself appears when all is answered.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from core.errors import RequestError


def run(options: argparse.Namespace) -> int:
    """Record. Raises `RequestError`, `ModelError`, `TableError`."""
    from core.models.runtime.runtime import prepare

    prepare()
    from core.models.loader import load
    from core.rehearsal.conversations import read_conversations
    from core.rehearsal.records import read_records
    from core.rehearsal.rehearsal import Rehearsal, RehearsalPlan
    from core.rehearsal.streams import write_streams

    conversations = read_conversations(options.prompts)
    target: Path = options.record
    growing = target.with_name(f"{target.name}.growing.jsonl")
    plan = RehearsalPlan(growing, target, batch=options.batch, max_tokens=options.max_tokens)
    rehearsal = Rehearsal(load(options.model), conversations, plan)
    try:
        for progress in rehearsal.answer():
            print(
                f"\r{progress.answered:,} of {progress.prompts:,} answers ",
                end="",
                file=sys.stderr,
                flush=True,
            )
    except KeyboardInterrupt:
        print(f"\nStopped. The same command goes on from {growing}.", file=sys.stderr)
        return 130
    print(file=sys.stderr)
    streams = list(read_records(growing))
    if not streams:
        raise RequestError(f"No prompt of {options.prompts} fits the model.", "Give shorter ones.")
    write_streams(target, streams)
    growing.unlink()
    growing.with_suffix(".lock").unlink(missing_ok=True)
    print(f"{target}: {len(streams):,} streams, {sum(len(stream.out) for stream in streams):,} tokens")
    return 0
