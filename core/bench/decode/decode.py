"""`draftlight bench decode`: each drafter's decode speed against mlx-lm's own `stream_generate`.

Question: how many times faster than mlx-lm's plain loop does each configuration decode, and is
its greedy output the same? Both run in one process on the same model object, in turn: for every
configuration one warm-up pair, then `pairs` measured ones, baseline first. The quoted ratio is
the median of the pairs' ratios; a pair without decode time on both sides, as of answers of one token,
has nothing to compare and is in no median. `draft-model` is also set against mlx-lm's own speculative path
with the same two models. A prompt may be a conversation: then each turn is a cell, and all turns
together. Gates are held open: the drafter is measured, not an opinion of it.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from core.bench.decode.conversation import converse
from core.bench.decode.draft_time import DraftTime, draft_times
from core.bench.environment import Environment
from core.bench.grid import Configuration, configurations, with_draft_model
from core.bench.journal import Journal
from core.bench.model import load_tried
from core.bench.pieces import BenchPiece, PieceProgress, conditions, measure, of_run
from core.bench.prompts import BenchPrompt, default_prompts, fingerprint, read_prompts
from core.bench.results_folder import write_results
from core.bench.runs import BenchRun, draftlight, first_difference, joined, mlx_lm
from core.bench.statistic import known, median, speed_ratio
from core.drafting.registry import DRAFTERS
from core.events import Change, ModelInfo, PositionStat
from core.settings import Settings
from core.tables.prebuilt import load_built

if TYPE_CHECKING:  # importing it loads MLX, which `run` must prepare first
    from core.engine.engine import Engine


_NOTHING = "nothing to compare"


class Pair(Struct, frozen=True):
    """Baseline and candidate, one after the other.

    `ratio` is of their speeds, 0 if there is nothing to compare; `mlx_lm_speculative` likewise, or not run.
    """

    baseline_tokens_per_s: float
    candidate_tokens_per_s: float
    ratio: float
    baseline_ttft_s: float
    candidate_ttft_s: float
    equal: bool
    first_difference: int | None
    mlx_lm_speculative: float = 0.0


class DecodeCell(Struct, frozen=True):
    """One prompt with one configuration. Speeds and ratios are 0 where no pair has decode time."""

    kind: str
    configuration: str
    settings: Settings
    changes: tuple[Change, ...]
    prompt_tokens: int
    tokens: int
    equal: bool
    ratio_median: float
    mlx_lm_speculative_median: float
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


class DecodeResults(Struct, frozen=True):
    """All of one run of the bench."""

    bench: str
    environment: Environment
    model: str
    prompts: str
    pairs: int
    max_prompt_tokens: int
    max_tokens: int
    cells: tuple[DecodeCell, ...]
    draft_times: tuple[DraftTime, ...]
    progress: PieceProgress


class Measured(Struct, frozen=True):
    """The cells of one prompt, the `prompt`th, with one configuration: one, or one a turn and one for all."""

    prompt: int
    configuration: str
    cells: tuple[DecodeCell, ...]

    @property
    def key(self) -> tuple[int, str]:
        return self.prompt, self.configuration


def run(options: argparse.Namespace) -> int:
    """Measure and write `cells.jsonl`, `results.json` and `report.md`; status 1 if any output differed."""
    path = options.prompts or default_prompts()
    prompts = read_prompts(path)
    chosen = _configurations(options)
    from core.models.runtime.runtime import prepare

    blas = prepare()
    from core.engine.engine import Engine

    engine = Engine()
    info, environment = load_tried(engine, options.model, blas, quiet=options.quiet)
    workloads = [_workload(engine, prompt, options.max_prompt_tokens) for prompt in prompts]
    journal = Journal(options.out / "cells.jsonl", _conditions(options, environment, info, path), Measured)
    with tempfile.TemporaryDirectory() as scratch:
        drafted = with_draft_model(options, chosen, Path(info.path), Path(scratch))
        pieces = [
            BenchPiece(
                (number, each.name),
                partial(_measured, engine, number, workload, each.name, settings, options.pairs),
            )
            for each, settings in drafted
            for number, workload in enumerate(workloads)
        ]
        progress = measure(journal, pieces, lambda entry: map(_row, entry.cells), quiet=options.quiet)
    cells = tuple(cell for entry in of_run(journal, pieces) for cell in entry.cells)
    ids = [each.ids for each in workloads]
    results = DecodeResults(
        "decode",
        environment,
        info.name,
        path.name,
        options.pairs,
        options.max_prompt_tokens,
        options.max_tokens,
        cells,
        tuple(draft_times(DRAFTERS.values(), ids, load_built(info)[0])) if progress.whole else (),
        progress,
    )
    report = write_report(results)
    write_results(options.out, results, report)
    print(report)
    return progress.status(all(cell.equal for cell in cells))


def _conditions(options: argparse.Namespace, environment: Environment, info: ModelInfo, prompts: Path) -> str:
    return conditions(
        environment,
        info.name,
        f"{prompts.name} {fingerprint(prompts)}",
        f"{options.pairs} pairs of {options.max_prompt_tokens} + {options.max_tokens} tokens",
        f"draft model {options.draft_model or f'of {options.draft_layers} layers'}",
    )


def _configurations(options: argparse.Namespace) -> list[Configuration]:
    return configurations(
        options.drafters,
        [("gate.mode", "always"), ("sampling.max_tokens", options.max_tokens)],
        sets=options.set,
        grids=options.grid,
        defaults={"ngram_simple.k": options.k, "ngram_simple.n_min": options.n_min},
    )


class _Workload(Struct, frozen=True):
    """A prompt to go on with, or the turns of a conversation; `ids` are then those of its questions."""

    kind: str
    ids: list[int]
    turns: tuple[str, ...]


class _Trial(Struct, frozen=True):
    """One answer by each side."""

    kind: str
    prompt_tokens: int
    baseline: BenchRun
    candidate: BenchRun
    other: BenchRun | None = None


def _workload(engine: Engine, prompt: BenchPrompt, most_tokens: int) -> _Workload:
    text = prompt.prompt or "\n".join(prompt.turns)
    return _Workload(prompt.kind, engine.loaded.tokenizer.encode(text)[:most_tokens], prompt.turns)


def _measured(
    engine: Engine, number: int, workload: _Workload, name: str, settings: Settings, count: int
) -> Measured:
    """One cell, or one a turn and one for all turns."""
    rounds = [_trials(engine, workload, settings) for _ in range(count + 1)]
    # The first is the warm-up.
    cells = tuple(_cell(name, settings, trials) for trials in zip(*rounds[1:]))
    return Measured(number, name, cells)


def _trials(engine: Engine, workload: _Workload, settings: Settings) -> list[_Trial]:
    if not workload.turns:
        ids = workload.ids
        baseline = mlx_lm(engine, ids, settings.sampling.max_tokens)
        candidate = draftlight(engine, ids, settings)
        other = _mlx_lm_speculative(engine, ids, settings)
        return [_Trial(workload.kind, len(ids), baseline, candidate, other)]
    trials = [
        _Trial(f"{workload.kind}, turn {turn.turn}", turn.prompt_tokens, turn.baseline, turn.candidate)
        for turn in converse(engine, workload.turns, settings)
    ]
    baseline = joined([trial.baseline for trial in trials])
    candidate = joined([trial.candidate for trial in trials])
    whole = _Trial(f"{workload.kind}, all turns", trials[-1].prompt_tokens, baseline, candidate)
    return [*trials, whole]


def _cell(name: str, settings: Settings, trials: Sequence[_Trial]) -> DecodeCell:
    pairs = tuple(_pair(trial.baseline, trial.candidate, trial.other) for trial in trials)
    candidate = trials[-1].candidate
    assert candidate.stats is not None
    assert candidate.effective is not None
    return DecodeCell(
        trials[-1].kind,
        name,
        settings,
        candidate.effective.changes,
        trials[-1].prompt_tokens,
        len(candidate.tokens),
        all(pair.equal for pair in pairs),
        median(known(pair.ratio for pair in pairs)),
        median(known(pair.mlx_lm_speculative for pair in pairs)),
        median(known(pair.candidate_tokens_per_s for pair in pairs)),
        median(known(pair.baseline_tokens_per_s for pair in pairs)),
        median(pair.candidate_ttft_s for pair in pairs),
        median(pair.baseline_ttft_s for pair in pairs),
        candidate.stats.acceptance,
        candidate.stats.mean_per_step,
        candidate.stats.draft_us_median,
        candidate.stats.draft_us_p99,
        candidate.stats.positions,
        pairs,
    )


def _mlx_lm_speculative(engine: Engine, ids: Sequence[int], settings: Settings) -> BenchRun | None:
    """mlx-lm's two-model path with the draft model that the candidate just used."""
    proposer = engine.proposer
    if settings.drafting.drafter != "draft-model" or proposer is None:
        return None
    return mlx_lm(
        engine,
        ids,
        settings.sampling.max_tokens,
        draft_model=proposer.loaded.model,
        num_draft_tokens=settings.draft_model.k,
    )


def _pair(baseline: BenchRun, candidate: BenchRun, other: BenchRun | None) -> Pair:
    difference = first_difference(baseline.tokens, candidate.tokens)
    return Pair(
        baseline.tokens_per_s,
        candidate.tokens_per_s,
        speed_ratio(candidate.tokens_per_s, baseline.tokens_per_s),
        baseline.ttft_s,
        candidate.ttft_s,
        difference is None,
        difference,
        speed_ratio(other.tokens_per_s, baseline.tokens_per_s) if other else 0.0,
    )


def _row(cell: DecodeCell) -> str:
    speed = f"{cell.ratio_median:5.2f}×  {cell.tokens_per_s_median:6.1f} tok/s"
    return (
        f"{cell.kind:>18}  {cell.configuration:<26} {speed if cell.ratio_median else _NOTHING:<20}"
        f"  accepted {cell.acceptance:4.0%}"
        f"  mean {cell.mean_per_step:4.2f}  {'equal' if cell.equal else 'DIFFERENT'}"
    )


def _speed(tokens_per_s: float) -> str:
    return f"{tokens_per_s:.1f}" if tokens_per_s else "–"


def _nothing_to_compare(cells: Sequence[DecodeCell]) -> list[str]:
    """Which answers had no decode time, in all pairs or in some, and that they are in no median."""
    said = []
    for cell in cells:
        out = sum(not pair.ratio for pair in cell.pairs)
        if out:
            tokens = "1 token" if cell.tokens == 1 else f"{cell.tokens} tokens"
            said.append(f"- {cell.kind}, {cell.configuration}: {out} of {len(cell.pairs)} pairs, {tokens}")
    if not said:
        return []
    why = "An answer that is all there after its first step has no decode time; these pairs are in no median:"
    return ["", "## Nothing to compare", "", why, "", *said]


def write_report(results: DecodeResults) -> str:
    """The results as Markdown."""
    lines = [
        "# Decode speed against mlx-lm",
        "",
        *results.progress.lines,
        f"{results.model}, {results.prompts}: at most {results.max_prompt_tokens} prompt tokens,"
        f" {results.max_tokens} new tokens, greedy, one warm-up and {results.pairs} measured pairs,"
        " baseline (`mlx_lm.stream_generate`) and candidate in turn. Ratios are medians of pairs.",
        "",
        results.environment.line,
        "",
        "| class | drafter | ratio | tok/s | mlx-lm tok/s | accepted | mean a step | TTFT s | mlx-lm TTFT s"
        " | draft µs (median, 99%) | output |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for c in results.cells:
        lines.append(
            f"| {c.kind} | {c.configuration} | {f'{c.ratio_median:.2f}' if c.ratio_median else _NOTHING}"
            f" | {_speed(c.tokens_per_s_median)} | {_speed(c.baseline_tokens_per_s_median)}"
            f" | {c.acceptance:.0%} | {c.mean_per_step:.2f}"
            f" | {c.ttft_s_median:.2f} | {c.baseline_ttft_s_median:.2f}"
            f" | {c.draft_us_median:.0f}, {c.draft_us_p99:.0f} | {'equal' if c.equal else '**different**'} |"
        )
    lines += [*_nothing_to_compare(results.cells), "", "## Accepted of tested, by place in the draft", ""]
    for c in results.cells:
        if c.positions:
            places = ", ".join(f"{p.accepted}/{p.tested}" for p in c.positions)
            lines.append(f"- {c.kind}, {c.configuration}: {places}")
    lines += [
        "",
        "## Draft time without a model",
        "",
        "| drafter | history | nodes a draft | median µs | 99 % µs |",
        "|---|---|---|---|---|",
    ]
    for t in results.draft_times:
        lines.append(
            f"| {t.drafter} | {t.history_tokens:,} | {t.nodes:.1f} | {t.median_us:.1f} | {t.p99_us:.1f} |"
        )
    compared = [c for c in results.cells if c.mlx_lm_speculative_median]
    if compared:
        lines += ["", "## Two models: Draftlight and mlx-lm's own speculative path", ""]
        for c in compared:
            lines.append(
                f"- {c.kind}: Draftlight {c.ratio_median:.2f}, mlx-lm {c.mlx_lm_speculative_median:.2f}"
                " times plain decoding"
            )
    said = sorted(
        {
            f"{c.configuration}: {x.asked} ran as {x.used}, because {x.reason}"
            for c in results.cells
            for x in c.changes
        }
    )
    if said:
        lines += ["", "## Asked for and not done", "", *(f"- {line}" for line in said)]
    return "\n".join(lines) + "\n"
