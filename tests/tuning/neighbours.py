"""Compares adaptive with fixed BLAS thread counts, alone and next to a busy program.

    python -m tests.tuning neighbours --out DIR

Pairs of the same cold answer in one process: one with all threads fixed, one with `BlasThreads` as in the
worker, in alternating order; first without, then with an endless loop in another process. The ratio is the
median of the pairs' ratios, adaptive / fixed for speed and fixed / adaptive for TTFT, so more is better.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from core.bench.cases import default_prompts, file_label, read_prompts
from core.bench.harness import (
    BenchPiece,
    Environment,
    Journal,
    PieceProgress,
    conditions,
    known,
    measure,
    median,
    publish,
    speed_ratio,
)
from core.bench.runs import BenchRun, draftlight, load_tried
from core.errors import RequestError
from core.settings import Settings, assign_all

if TYPE_CHECKING:  # importing these loads MLX, which `prepare()` must come before
    from core.engine.engine import Engine
    from core.models.blas import BlasThreads

_HELD = "all threads, to compare with"
_LOOP = "while True: pass"


class NeighbourPair(Struct, frozen=True):
    """One pair; `held` is the answer with a fixed thread count. `threads` gives the count and the reason."""

    busy_loops: int
    number: int
    kind: str
    held_tokens_per_s: float
    tokens_per_s: float
    held_ttft_s: float
    ttft_s: float
    held_threads: str
    threads: str
    equal: bool

    @property
    def key(self) -> tuple[int, int]:
        return self.busy_loops, self.number


class Company(Struct, frozen=True):
    """All pairs with this number of busy loops; see above for the ratios."""

    busy_loops: int
    speed_ratio: float
    ttft_ratio: float
    pairs: tuple[NeighbourPair, ...]


class NeighbourResults(Struct, frozen=True):
    """The content of `results.json`."""

    bench: str
    environment: Environment
    model: str
    prompts: str
    drafter: str
    max_prompt_tokens: int
    max_tokens: int
    companies: tuple[Company, ...]
    progress: PieceProgress


def run(options: argparse.Namespace) -> int:
    """Measure and write `pairs.jsonl`, `results.json` and `report.md`; status 1 if any output differed.

    Raises `RequestError` if the number of threads cannot change on this machine.
    """
    path = options.prompts or default_prompts()
    prompts = [prompt for prompt in read_prompts(path) if prompt.prompt]
    if not prompts:
        raise RequestError(f"{path} holds only conversations.", "Give lines with `prompt`.")
    from core.models.runtime import prepare

    blas = prepare()
    from core.engine.engine import Engine
    from core.models.blas import BlasThreads

    threads = BlasThreads()
    if threads.why_steady:
        raise RequestError(
            f"The number of threads does not change here: {threads.why_steady}.",
            "Unset the variable, or measure on Linux with more than one core.",
        )
    engine = Engine(threads=threads)
    info, environment = load_tried(engine, options.model, blas, quiet=options.quiet)
    wanted = [("drafting.drafter", options.drafter), ("sampling.max_tokens", options.max_tokens)]
    settings = assign_all(Settings(), wanted)
    encode = engine.loaded.tokenizer.encode
    texts = [(each.kind, encode(each.prompt)[: options.max_prompt_tokens]) for each in prompts]
    journal = Journal(
        options.out / "pairs.jsonl",
        conditions(
            environment,
            info.name,
            file_label(path),
            f"{options.drafter}, {options.max_prompt_tokens} + {options.max_tokens} tokens",
        ),
        NeighbourPair,
    )
    with ExitStack() as beside:
        bench = _Bench(engine, threads, texts, settings, beside)
        pieces = [
            BenchPiece((loops, number), partial(bench.pair, loops, number))
            for loops in (0, 1)
            for number in range(options.pairs)
        ]
        pairs, progress = measure(journal, pieces, lambda pair: [_row(pair)], quiet=options.quiet)
    companies = [_company(loops, [pair for pair in pairs if pair.busy_loops == loops]) for loops in (0, 1)]
    results = NeighbourResults(
        "neighbours",
        environment,
        info.name,
        path.name,
        options.drafter,
        options.max_prompt_tokens,
        options.max_tokens,
        tuple(company for company in companies if company.pairs),
        progress,
    )
    publish(options.out, results, write_report(results))
    return progress.status(all(pair.equal for pair in pairs))


@contextmanager
def busy_loop() -> Iterator[None]:
    """Runs a process that keeps one core busy."""
    loop = subprocess.Popen([sys.executable, "-I", "-S", "-c", _LOOP], stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        loop.kill()
        loop.wait()


class _Bench:
    """Measures pairs. The busy loop starts before the first pair that needs it and ends with `beside`."""

    def __init__(
        self,
        engine: Engine,
        threads: BlasThreads,
        texts: Sequence[tuple[str, list[int]]],
        settings: Settings,
        beside: ExitStack,
    ) -> None:
        self._engine = engine
        self._threads = threads
        self._texts = texts
        self._settings = settings
        self._beside = beside
        self._loops = 0
        self._is_warm = False

    def pair(self, loops: int, number: int) -> NeighbourPair:
        """One pair, with the fixed thread count first in every other pair."""
        if not self._is_warm:
            self._is_warm = True
            for _, ids in self._texts[:2]:
                draftlight(self._engine, ids, self._settings)
        while self._loops < loops:
            self._beside.enter_context(busy_loop())
            self._loops += 1
        kind, ids = self._texts[number % len(self._texts)]
        ways = ("", _HELD) if number % 2 else (_HELD, "")
        runs = {held: self._answer(ids, held) for held in ways}
        return _pair(loops, number, kind, runs[_HELD], runs[""])

    def _answer(self, ids: list[int], held: str) -> BenchRun:
        self._threads.held = held
        return draftlight(self._engine, ids, self._settings)


def _pair(loops: int, number: int, kind: str, held: BenchRun, adapting: BenchRun) -> NeighbourPair:
    assert held.effective is not None
    assert adapting.effective is not None
    return NeighbourPair(
        loops,
        number,
        kind,
        held.tokens_per_s,
        adapting.tokens_per_s,
        held.ttft_s,
        adapting.ttft_s,
        held.effective.threads,
        adapting.effective.threads,
        held.tokens == adapting.tokens,
    )


def _company(loops: int, pairs: Sequence[NeighbourPair]) -> Company:
    speeds = (speed_ratio(pair.tokens_per_s, pair.held_tokens_per_s) for pair in pairs)
    ttfts = (speed_ratio(pair.held_ttft_s, pair.ttft_s) for pair in pairs)
    return Company(loops, median(known(speeds)), median(known(ttfts)), tuple(pairs))


def _row(pair: NeighbourPair) -> str:
    return (
        f"{pair.kind:>12}  {pair.held_tokens_per_s:5.1f} → {pair.tokens_per_s:5.1f} tok/s"
        f"  TTFT {pair.held_ttft_s:5.2f} → {pair.ttft_s:5.2f} s"
        f"  {pair.threads}  {'equal' if pair.equal else 'DIFFERENT'}"
    )


def write_report(results: NeighbourResults) -> str:
    """The results as Markdown."""
    lines = [
        "# Answers beside another busy program",
        "",
        *results.progress.lines,
        f"{results.model}, {results.prompts}, drafter {results.drafter}: at most"
        f" {results.max_prompt_tokens} prompt tokens, {results.max_tokens} new tokens, greedy, cold."
        " All threads held against threads that adapt, in turn. Ratios are medians of pairs; more is better.",
        "",
        results.environment.line,
    ]
    for company in results.companies:
        beside = "beside one busy loop" if company.busy_loops else "with nothing else started"
        lines += [
            "",
            f"## {beside.capitalize()}: {company.speed_ratio:.2f} times the speed,"
            f" TTFT {company.ttft_ratio:.2f} times as quick",
            "",
            "| class | held tok/s | adapting tok/s | held TTFT s | adapting TTFT s | threads | output |",
            "|---|---|---|---|---|---|---|",
        ]
        lines += [
            f"| {pair.kind} | {pair.held_tokens_per_s:.1f} | {pair.tokens_per_s:.1f} | {pair.held_ttft_s:.2f}"
            f" | {pair.ttft_s:.2f} | {pair.threads} | {'equal' if pair.equal else '**different**'} |"
            for pair in company.pairs
        ]
    return "\n".join(lines) + "\n"
