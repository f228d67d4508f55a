"""`draftlight bench neighbours`: answers beside another busy program, threads held and adapting.

Question: what does OpenBLAS's number of threads cost while another program keeps a core busy, what does
adapting it give back, and what does adapting cost where nothing else runs? In one process, on the same
model: pairs of the same answer, one with all threads held and one with `BlasThreads` as the worker has
it, in alternating order; first with the machine as it is, then beside one endless loop that is
started and ended here. Every answer starts cold. The quoted ratio is the median of the pairs' ratios,
adapting over held; of TTFT likewise, held over adapting, so that more is better in both.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from core.bench.environment import Environment
from core.bench.model import load_tried
from core.bench.prompts import default_prompts, read_prompts
from core.bench.runs import Run, draftlight
from core.bench.statistic import known, median, speed_ratio
from core.errors import RequestError
from core.settings import Settings, assign_all

if TYPE_CHECKING:  # importing it loads MLX, which `run` must prepare first
    from core.engine.engine import Engine
    from core.models.runtime.blas_threads import BlasThreads

_HELD = "all threads, to compare with"
_LOOP = "while True: pass"


class NeighbourPair(Struct, frozen=True):
    """The same answer twice. `threads` and `held_threads` say how many computed, and why."""

    kind: str
    held_tokens_per_s: float
    tokens_per_s: float
    held_ttft_s: float
    ttft_s: float
    held_threads: str
    threads: str
    equal: bool


class Company(Struct, frozen=True):
    """All pairs with that many busy loops beside them; ratios are adapting over held."""

    busy_loops: int
    speed_ratio: float
    ttft_ratio: float
    pairs: tuple[NeighbourPair, ...]


class NeighbourResults(Struct, frozen=True):
    """All of one run of the bench."""

    bench: str
    environment: Environment
    model: str
    prompts: str
    drafter: str
    max_prompt_tokens: int
    max_tokens: int
    companies: tuple[Company, ...]


def run(options: argparse.Namespace) -> int:
    """Measure and write `results.json` and `report.md`. Raises `RequestError` where threads cannot adapt."""
    path = options.prompts or default_prompts()
    prompts = [prompt for prompt in read_prompts(path) if prompt.prompt]
    if not prompts:
        raise RequestError(f"{path} holds only conversations.", "Give lines with `prompt`.")
    from core.models.runtime.runtime import prepare

    blas = prepare()
    from core.engine.engine import Engine
    from core.models.runtime.blas_threads import BlasThreads

    threads = BlasThreads()
    if threads.why_steady:
        raise RequestError(
            f"The number of threads does not change here: {threads.why_steady}.",
            "Unset the variable, or measure on Linux with more than one core.",
        )
    engine = Engine(threads=threads)
    info, environment = load_tried(engine, options.model, blas)
    wanted = [("drafting.drafter", options.drafter), ("sampling.max_tokens", options.max_tokens)]
    settings = assign_all(Settings(), wanted)
    encode = engine.loaded.tokenizer.encode
    texts = [(each.kind, encode(each.prompt)[: options.max_prompt_tokens]) for each in prompts]
    for _, ids in texts[:2]:
        draftlight(engine, ids, settings)  # a warm-up
    companies = []
    for loops in (0, 1):
        with busy_loop() if loops else nullcontext():
            pairs = list(_pairs(engine, threads, texts, settings, options.pairs))
        companies.append(_company(loops, pairs))
    results = NeighbourResults(
        "neighbours",
        environment,
        info.name,
        path.name,
        options.drafter,
        options.max_prompt_tokens,
        options.max_tokens,
        tuple(companies),
    )
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "results.json").write_bytes(msgspec.json.format(msgspec.json.encode(results)))
    report = write_report(results)
    (options.out / "report.md").write_text(report, encoding="utf-8")
    print(report)
    return 0


@contextmanager
def busy_loop() -> Iterator[None]:
    """A program beside this one that keeps a core busy until the end of the block."""
    loop = subprocess.Popen([sys.executable, "-I", "-S", "-c", _LOOP], stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        loop.kill()
        loop.wait()


def _pairs(
    engine: Engine,
    threads: BlasThreads,
    texts: Sequence[tuple[str, list[int]]],
    settings: Settings,
    count: int,
) -> Iterator[NeighbourPair]:
    def answer(ids: list[int], held: str) -> Run:
        threads.held = held
        return draftlight(engine, ids, settings)

    for number in range(count):
        kind, ids = texts[number % len(texts)]
        ways = ("", _HELD) if number % 2 else (_HELD, "")
        runs = {held: answer(ids, held) for held in ways}
        pair = _pair(kind, runs[_HELD], runs[""])
        print(_row(pair), file=sys.stderr, flush=True)
        yield pair


def _pair(kind: str, held: Run, adapting: Run) -> NeighbourPair:
    assert held.effective is not None
    assert adapting.effective is not None
    return NeighbourPair(
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
