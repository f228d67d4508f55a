"""Which way of reading answers best, in texts that are longer than the product's trial.

    python -m tests.tuning readings --tokens 2000,8000 --out DIR

The trial (`core.machine.readings`) asks about two thousand tokens; here these are in the middle of generated
minutes of meetings.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from functools import partial
from math import sqrt
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from msgspec import Struct

from core.bench.cases import document_text
from core.bench.runner import Bench, BenchPiece, describe, run_bench, table
from core.errors import RequestError

if TYPE_CHECKING:  # importing it loads MLX, which `run` must prepare first
    from core.models.loader import LoadedModel

# Of the product's own trial.
_ASKED_TOKENS = 2_000


class Tried(Struct, frozen=True):
    """Mean log-likelihoods of right answers by way, in nats a token, one a question; empty: impossible."""

    tokens: int
    ways: dict[str, tuple[float, ...]]
    seconds: float

    @property
    def key(self) -> tuple[int]:
        return (self.tokens,)


def run(options: argparse.Namespace) -> int:
    """Measure and write `readings.jsonl` and `readings.md`."""
    from core.models.runtime import prepare

    blas = prepare()
    from core.models.loader import load

    loaded = load(options.model)
    pieces = [BenchPiece((tokens,), partial(_tried, loaded, tokens)) for tokens in options.tokens]
    title = f"Ways of reading a text, {loaded.info.name}"
    environment = describe(blas, loaded.info.dtype)
    bench = Bench("readings", title, environment, (loaded.info.name,), Tried, options.out)
    return run_bench(bench, pieces, lambda tried: "", report, quiet=options.quiet)[1].status(True)


def _tried(loaded: LoadedModel, tokens: int) -> Tried:
    from core.machine.readings import try_readings

    begun_s = time.perf_counter()
    room, tokenizer = max(0, tokens - _ASKED_TOKENS) // 2, loaded.tokenizer
    sides = [
        tokenizer.decode(tokenizer.encode(document_text(seed, room), add_special_tokens=False)[:room])
        for seed in (1, 2)
    ]
    trying = try_readings(loaded, "", *(sides if room else ()))
    while True:
        try:
            next(trying)
        except StopIteration as ended:
            trial = ended.value
            break
    if not trial.whole:
        raise RequestError(
            f"A text of {tokens:,} tokens does not fit into {loaded.info.context_tokens:,}.",
            "Lower --tokens.",
        )
    ways = {"all of it": trial.whole, "columns": trial.columns, "passages": trial.passages}
    return Tried(tokens, ways, time.perf_counter() - begun_s)


def report(measured: Sequence[Tried]) -> list[str]:
    """Means, and their differences from everything with the standard error of the pairs."""
    rows = []
    for tried in sorted(measured, key=lambda each: each.tokens):
        whole = tried.ways["all of it"]
        for way, found in tried.ways.items():
            if not found:
                continue
            differences = [one - other for one, other in zip(found, whole, strict=True)]
            error = stdev(differences) / sqrt(len(differences))
            gain = f"{fmean(differences):+.2f} ± {error:.2f}"
            rows.append(f"{tried.tokens:,} | {way} | {fmean(found):.2f} | {gain}")
    return table("tokens | attended to | nats a token of right answers | beside all of it", rows)
