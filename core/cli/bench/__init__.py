"""`draftlight bench`: one file a bench, which says what it takes; `core.bench` has what it does."""

from __future__ import annotations

import argparse

from core.cli.bench import (
    cluster,
    decode,
    fit,
    neighbours,
    parity,
    replay,
    serve,
    sweep,
    tables,
    ttft,
    window,
)
from core.cli.bench.reading import likelihood, prefill, quality, retrieval, sources
from core.cli.console.parser import add_command, add_quiet


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """All benches."""
    benches = parser.add_subparsers(title="benches", metavar="BENCH", required=True)
    decode.add_arguments(
        add_command(benches, "decode", "decode speed of the drafters against mlx-lm's own loop")
    )
    parity.add_arguments(
        add_command(benches, "parity", "is drafted greedy output the plain output, on every run")
    )
    window.add_arguments(
        add_command(benches, "window", "the window: opening, scrolling, streaming, memory, its cost")
    )
    prefill.add_arguments(
        add_command(benches, "prefill", "time to first token of a long document against mlx-lm")
    )
    quality.add_arguments(
        add_command(benches, "quality", "what sparse prefill costs in answers and likelihoods")
    )
    retrieval.add_arguments(
        add_command(benches, "retrieval", "how often a scorer keeps the passage a question is about")
    )
    likelihood.add_arguments(
        add_command(benches, "likelihood", "how likely right answers are: positions, second turns")
    )
    sources.add_arguments(
        add_command(benches, "sources", "whether an answer's sources are where it was quoted from")
    )
    cluster.add_arguments(
        add_command(benches, "cluster", "one model over several machines: blocks, drafting, a slower network")
    )
    serve.add_arguments(
        add_command(benches, "serve", "the local server beside mlx-lm's: edits, schemas, conversations")
    )
    tables.add_arguments(add_command(benches, "tables", "what tables give, how large, how safe, how quick"))
    sweep.add_arguments(add_command(benches, "sweep", "every drafter on every class: what the Lab shows"))
    ttft.add_arguments(
        add_command(benches, "ttft", "time to first token where nothing was measured yet, drafts on and off")
    )
    neighbours.add_arguments(
        add_command(benches, "neighbours", "answers beside another busy program, threads held and adapting")
    )
    replay.add_arguments(add_command(benches, "replay", "drafters over recorded streams, without a model"))
    fit.add_arguments(add_command(benches, "fit", "the weights of auto's evidence, from recorded answers"))
    for bench in benches.choices.values():
        add_quiet(bench)
