"""`draftlight bench decode`: each drafter's decode speed against mlx-lm's own `stream_generate`.

Question: how many times faster than mlx-lm's plain loop does each configuration decode, and is
its greedy output the same? Both run in one process on the same model object, in turn: for every
configuration one warm-up pair, then `pairs` measured ones, baseline first. Every run starts
cold. Decode speed is tokens after the first step over the time since it, for both sides;
the quoted ratio is the median of the pairs' ratios.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from core.bench.environment import Environment, describe
from core.drafting.registry import drafter_spec
from core.errors import RequestError
from core.events import Finished, PositionStat, Stats, Token
from core.paths import resources_dir
from core.settings import Settings, assign, parse

if TYPE_CHECKING:  # importing it loads MLX, which `run` must prepare first
    from core.engine import Engine


class Prompt(Struct, frozen=True, rename={"kind": "class"}):
    """One line of a prompts file."""

    prompt: str
    kind: str = "prompt"


class Run(Struct, frozen=True):
    """One answer of either side."""

    tokens: list[int]
    ttft_s: float
    tokens_per_s: float


class Pair(Struct, frozen=True):
    """Baseline and candidate, one after the other."""

    baseline_tokens_per_s: float
    candidate_tokens_per_s: float
    ratio: float
    baseline_ttft_s: float
    candidate_ttft_s: float
    equal: bool
    first_difference: int | None


class Cell(Struct, frozen=True):
    """One prompt with one configuration."""

    kind: str
    configuration: str
    settings: Settings
    prompt_tokens: int
    tokens: int
    equal: bool
    ratio_median: float
    tokens_per_s_median: float
    baseline_tokens_per_s_median: float
    ttft_s_median: float
    baseline_ttft_s_median: float
    acceptance: float
    mean_per_step: float
    draft_us_median: float
    draft_us_p99: float
    positions: tuple[PositionStat, ...]
    pairs: tuple[Pair, ...]


class Results(Struct, frozen=True):
    """All of one run of the bench."""

    bench: str
    environment: Environment
    model: str
    prompts: str
    pairs: int
    max_prompt_tokens: int
    max_tokens: int
    cells: tuple[Cell, ...]


def run(options: argparse.Namespace) -> int:
    """Measure and write `results.json` and `report.md`; status 1 if any output differed."""
    path = options.prompts or resources_dir() / "bench" / "three-class.jsonl"
    prompts = read_prompts(path)
    configurations = list(_configurations(options))
    from core.models.runtime import prepare

    blas = prepare()
    from core.engine import Engine

    engine = Engine()
    info = engine.load(options.model)
    cells = []
    for prompt in prompts:
        ids = engine.loaded.tokenizer.encode(prompt.prompt)[: options.max_prompt_tokens]
        for name, settings in configurations:
            settings = assign(settings, "sampling.max_tokens", options.max_tokens)
            cell = _measure(engine, prompt.kind, ids, name, settings, options.pairs)
            print(_row(cell), file=sys.stderr, flush=True)
            cells.append(cell)
    results = Results(
        "decode",
        describe(blas),
        info.name,
        path.name,
        options.pairs,
        options.max_prompt_tokens,
        options.max_tokens,
        tuple(cells),
    )
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "results.json").write_bytes(msgspec.json.format(msgspec.json.encode(results)))
    report = write_report(results)
    (options.out / "report.md").write_text(report, encoding="utf-8")
    print(report)
    return 0 if all(cell.equal for cell in cells) else 1


def read_prompts(path: Path) -> list[Prompt]:
    """The prompts of a JSON-lines file. Raises `RequestError` naming the line."""
    prompts = []
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror}.", "Check the path.") from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                prompts.append(msgspec.json.decode(line, type=Prompt))
            except msgspec.DecodeError as error:
                raise RequestError(
                    f"{path}, line {number}: {error}.", 'A line is like {"class": "code", "prompt": "…"}.'
                ) from None
    if not prompts:
        raise RequestError(f"{path} holds no prompts.", "Write one JSON object a line.")
    return prompts


def _configurations(options: argparse.Namespace) -> Iterator[tuple[str, Settings]]:
    for name in options.drafters.split(","):
        drafter_spec(name)
        settings = assign(Settings(), "drafting.drafter", name)
        # The drafter itself is measured, not the gate's opinion of it.
        settings = assign(settings, "gate.mode", "always")
        if name != "ngram-simple":
            yield name, settings
            continue
        for k in options.k.split(","):
            for n_min in options.n_min.split(","):
                chosen = parse(settings, "ngram_simple.k", k)
                chosen = parse(chosen, "ngram_simple.n_max", str(max(4, int(n_min))))
                yield f"{name} k={k} n_min={n_min}", parse(chosen, "ngram_simple.n_min", n_min)


def _measure(
    engine: Engine, kind: str, ids: Sequence[int], name: str, settings: Settings, count: int
) -> Cell:
    pairs: list[Pair] = []
    stats = Stats()
    tokens: list[int] = []
    for index in range(count + 1):
        baseline = _baseline(engine, ids, settings.sampling.max_tokens)
        candidate, stats = _candidate(engine, ids, settings)
        tokens = candidate.tokens
        if index == 0:
            continue  # warm-up
        difference = _first_difference(baseline.tokens, candidate.tokens)
        pairs.append(
            Pair(
                baseline.tokens_per_s,
                candidate.tokens_per_s,
                candidate.tokens_per_s / baseline.tokens_per_s if baseline.tokens_per_s else 0.0,
                baseline.ttft_s,
                candidate.ttft_s,
                difference is None,
                difference,
            )
        )
    median = statistics.median
    return Cell(
        kind,
        name,
        settings,
        len(ids),
        len(tokens),
        all(pair.equal for pair in pairs),
        median(pair.ratio for pair in pairs),
        median(pair.candidate_tokens_per_s for pair in pairs),
        median(pair.baseline_tokens_per_s for pair in pairs),
        median(pair.candidate_ttft_s for pair in pairs),
        median(pair.baseline_ttft_s for pair in pairs),
        stats.acceptance,
        stats.mean_per_step,
        stats.draft_us_median,
        stats.draft_us_p99,
        stats.positions,
        tuple(pairs),
    )


def _baseline(engine: Engine, ids: Sequence[int], max_tokens: int) -> Run:
    from mlx_lm import stream_generate

    loaded = engine.loaded
    started = time.perf_counter()
    tokens, times = [], []
    for response in stream_generate(loaded.model, loaded.tokenizer, list(ids), max_tokens=max_tokens):
        tokens.append(int(response.token))
        times.append(time.perf_counter() - started)
    elapsed = times[-1] - times[0]
    return Run(tokens, times[0], (len(tokens) - 1) / elapsed if elapsed > 0 else 0.0)


def _candidate(engine: Engine, ids: Sequence[int], settings: Settings) -> tuple[Run, Stats]:
    engine.forget()
    tokens = []
    stats = Stats()
    for event in engine.generate_ids(ids, settings):
        if isinstance(event, Token):
            tokens.append(event.id)
        elif isinstance(event, Finished):
            stats = event.stats
    return Run(tokens, stats.ttft_s, stats.tokens_per_s), stats


def _first_difference(baseline: Sequence[int], candidate: Sequence[int]) -> int | None:
    for index, (a, b) in enumerate(zip(baseline, candidate)):
        if a != b:
            return index
    return None if len(baseline) == len(candidate) else min(len(baseline), len(candidate))


def _row(cell: Cell) -> str:
    return (
        f"{cell.kind:>12}  {cell.configuration:<26} {cell.ratio_median:5.2f}×"
        f"  {cell.tokens_per_s_median:6.1f} tok/s  accepted {cell.acceptance:4.0%}"
        f"  mean {cell.mean_per_step:4.2f}  {'equal' if cell.equal else 'DIFFERENT'}"
    )


def write_report(results: Results) -> str:
    """The results as Markdown."""
    env = results.environment
    lines = [
        "# Decode speed against mlx-lm",
        "",
        f"{results.model}, {results.prompts}: at most {results.max_prompt_tokens} prompt tokens,"
        f" {results.max_tokens} new tokens, greedy, one warm-up and {results.pairs} measured pairs,"
        " baseline (`mlx_lm.stream_generate`) and candidate in turn. Ratios are medians of pairs.",
        "",
        f"{env.system} {env.machine}, {env.processor}, {env.cores} cores; Python {env.python}, mlx {env.mlx},"
        f" mlx-lm {env.mlx_lm}, {env.blas}; Draftlight {env.draftlight} {env.commit}",
        "",
        "| class | drafter | ratio | tok/s | mlx-lm tok/s | accepted | mean a step | TTFT s | mlx-lm TTFT s"
        " | draft µs (median, 99 %) | output |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for c in results.cells:
        lines.append(
            f"| {c.kind} | {c.configuration} | {c.ratio_median:.2f} | {c.tokens_per_s_median:.1f}"
            f" | {c.baseline_tokens_per_s_median:.1f} | {c.acceptance:.0%} | {c.mean_per_step:.2f}"
            f" | {c.ttft_s_median:.2f} | {c.baseline_ttft_s_median:.2f}"
            f" | {c.draft_us_median:.0f}, {c.draft_us_p99:.0f} | {'equal' if c.equal else '**different**'} |"
        )
    lines += ["", "## Accepted of tested, by place in the draft", ""]
    for c in results.cells:
        if c.positions:
            places = ", ".join(f"{p.accepted}/{p.tested}" for p in c.positions)
            lines.append(f"- {c.kind}, {c.configuration}: {places}")
    return "\n".join(lines) + "\n"
