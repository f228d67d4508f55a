"""`draftlight bench decode`: decode speed of each drafter relative to mlx-lm's `stream_generate`.

Baseline and candidate run in one process on the same model object. Each configuration gets one warm-up
pair and then `--pairs` measured pairs, baseline first. The reported ratio is the median of the pairs'
ratios. A pair without decode time on either side (an answer of one token) is in no median. `draft-model`
is also compared with mlx-lm's own speculative path with the same two models. For a conversation there is
one cell per turn and one for all turns. The gate is off, so the drafter itself is measured.

Loops flatter drafting, so each cell states the share of its answer that repeats earlier text; over 30% is a
loop. With `--model-defaults` both sides sample as the model's own defaults say.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from core.bench.cases import (
    BenchPrompt,
    Configuration,
    configurations,
    default_prompts,
    file_label,
    read_prompts,
    with_draft_model,
)
from core.bench.harness import (
    BenchPiece,
    Environment,
    Journal,
    PieceProgress,
    accepted_by_position,
    change_lines,
    conditions,
    known,
    measure,
    median,
    publish,
    speed_ratio,
    table,
)
from core.bench.runs import (
    BenchRun,
    converse,
    draftlight,
    first_difference,
    joined,
    mlx_lm,
    sampled_as,
    start_engine,
)
from core.decoding.repetition import repeated_share
from core.drafting.gram_table import GramTable
from core.drafting.ngram_mod import NgramTables
from core.drafting.registry import DRAFTERS, DrafterSpec, Resources
from core.events import Change, PositionStat
from core.settings import Settings, assign_all, read
from core.tables.prebuilt import load_grams

if TYPE_CHECKING:  # importing it loads MLX, which `prepare()` must come before
    from core.engine.engine import Engine


# Draft times are measured at this history length, over this many steps.
HISTORY_TOKENS = 32_000
_STEPS = 2_000
_NOTHING = "nothing to compare"


class Pair(Struct, frozen=True):
    """One baseline answer and one candidate answer.

    `ratio` is candidate speed / baseline speed, 0 if either has no decode time. `mlx_lm_speculative` is the
    same for mlx-lm's speculative path, 0 also if that was not run.
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
    """One prompt with one configuration. Speeds and ratios are 0 if no pair has decode time."""

    kind: str
    configuration: str
    settings: Settings
    changes: tuple[Change, ...]
    prompt_tokens: int
    tokens: int
    repeated: float
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


class DraftTime(Struct, frozen=True):
    """Over the steps that drafted something; `nodes` is their mean number of drafted tokens."""

    drafter: str
    history_tokens: int
    steps: int
    nodes: float
    median_us: float
    p99_us: float


class DecodeResults(Struct, frozen=True):
    """The content of `results.json`."""

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
    """The cells of one prompt (by index) with one configuration; several for a conversation."""

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
    chosen = decode_configurations(options)
    engine, info, environment = start_engine(options)
    if options.model_defaults:
        own = [(each.key, read(info.settings, each.key)) for each in info.defaults]
        chosen = [replace(each, settings=assign_all(each.settings, own)) for each in chosen]
    workloads = [_workload(engine, prompt, options.max_prompt_tokens) for prompt in prompts]
    label = conditions(
        environment,
        info.name,
        file_label(path),
        f"{options.pairs} pairs of {options.max_prompt_tokens} + {options.max_tokens} tokens",
        draft_model_label(options),
        *(["the model's own sampling"] if options.model_defaults else []),
    )
    journal = Journal(options.out / "cells.jsonl", label, Measured)
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
        measured, progress = measure(
            journal, pieces, lambda entry: map(_row, entry.cells), quiet=options.quiet
        )
    cells = tuple(cell for entry in measured for cell in entry.cells)
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
        tuple(draft_times(DRAFTERS.values(), ids, load_grams(info)[0])) if progress.whole else (),
        progress,
    )
    publish(options.out, results, write_report(results))
    return progress.status(all(cell.equal for cell in cells))


def decode_configurations(
    options: argparse.Namespace, also: dict[str, Sequence[object]] | None = None
) -> list[Configuration]:
    """The configurations that `--drafters`, `--set`, `--grid`, `--k` and `--n-min` ask for; parity's too."""
    return configurations(
        options.drafters,
        [("gate.mode", "always"), ("sampling.max_tokens", options.max_tokens)],
        sets=options.set,
        grids=options.grid,
        defaults={"ngram_simple.k": options.k, "ngram_simple.n_min": options.n_min},
        also=also,
    )


def draft_model_label(options: argparse.Namespace) -> str:
    """The draft model, for the conditions of a measurement."""
    return f"draft model {options.draft_model or f'of {options.draft_layers} layers'}"


# ---- measuring


class _Workload(Struct, frozen=True):
    """A prompt, or a conversation. For a conversation `ids` are the token ids of all its questions."""

    kind: str
    ids: list[int]
    turns: tuple[str, ...]


class _Trial(Struct, frozen=True):
    """One answer of each side; `other` is mlx-lm's speculative path."""

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
    _warm_up, *measured = [_trials(engine, workload, settings) for _ in range(count + 1)]
    cells = tuple(_cell(name, settings, trials) for trials in zip(*measured))
    return Measured(number, name, cells)


def _trials(engine: Engine, workload: _Workload, settings: Settings) -> list[_Trial]:
    if not workload.turns:
        ids = workload.ids
        baseline = mlx_lm(engine, ids, settings.sampling.max_tokens, **sampled_as(settings.sampling))
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
        repeated_share(candidate.tokens),
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
    """An answer of mlx-lm's two-model path with the draft model that the candidate just used."""
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


def draft_times(
    specs: Iterable[DrafterSpec], prompts: Sequence[Sequence[int]], learned: GramTable | None = None
) -> list[DraftTime]:
    """Time of each drafter without a draft model, with trees where it supports them.

    A step is one `draft` and the `observe` of two emitted tokens. The history is the prompts' ids, repeated
    in random order, so lookups usually match. `learned` is the prebuilt table of the model's family.
    """
    rng = random.Random(0)
    history: list[int] = []
    while len(history) < HISTORY_TOKENS + _STEPS * 2:
        history += rng.choice(prompts)
    return [_draft_time(spec, history, learned) for spec in specs if spec.drafts and not spec.needs_proposer]


def _draft_time(spec: DrafterSpec, history: Sequence[int], learned: GramTable | None) -> DraftTime:
    resources = Resources(1 << 17, "bench", NgramTables(), spec.trees, continuations=learned)
    drafter = spec.build(Settings(), resources)
    drafter.begin(history[:HISTORY_TOKENS])
    times, nodes, position = [], [], HISTORY_TOKENS
    for _ in range(_STEPS):
        started = time.perf_counter()
        draft = drafter.draft(255)
        emitted = history[position : position + 2]
        drafter.observe(emitted)
        elapsed = time.perf_counter() - started
        position += len(emitted)
        if len(draft):
            times.append(elapsed * 1e6)
            nodes.append(len(draft))
    times.sort()
    return DraftTime(
        spec.name,
        HISTORY_TOKENS,
        len(times),
        statistics.fmean(nodes) if nodes else 0.0,
        statistics.median(times) if times else 0.0,
        times[int(len(times) * 0.99)] if times else 0.0,
    )


# ---- report


def _row(cell: DecodeCell) -> str:
    speed = f"{cell.ratio_median:5.2f}×  {cell.tokens_per_s_median:6.1f} tok/s"
    return (
        f"{cell.kind:>18}  {cell.configuration:<26} {speed if cell.ratio_median else _NOTHING:<20}"
        f"  accepted {cell.acceptance:4.0%}"
        f"  mean {cell.mean_per_step:4.2f}  repeated {cell.repeated:4.0%}"
        f"  {'equal' if cell.equal else 'DIFFERENT'}"
    )


_LOOP = 0.3


def _repeated(cell: DecodeCell) -> str:
    return f"{cell.repeated:.0%}{' (loop)' if cell.repeated > _LOOP else ''}"


def _speed(tokens_per_s: float) -> str:
    return f"{tokens_per_s:.1f}" if tokens_per_s else "–"


def _nothing_to_compare(cells: Sequence[DecodeCell]) -> list[str]:
    """The report section about pairs without decode time."""
    lines = []
    for cell in cells:
        out = sum(not pair.ratio for pair in cell.pairs)
        if out:
            tokens = "1 token" if cell.tokens == 1 else f"{cell.tokens} tokens"
            lines.append(f"- {cell.kind}, {cell.configuration}: {out} of {len(cell.pairs)} pairs, {tokens}")
    if not lines:
        return []
    why = "An answer that is all there after its first step has no decode time; these pairs are in no median:"
    return ["", "## Nothing to compare", "", why, "", *lines]


def write_report(results: DecodeResults) -> str:
    """The results as Markdown."""
    lines = [
        "# Decode speed against mlx-lm",
        "",
        *results.progress.lines,
        f"{results.model}, {results.prompts}: at most {results.max_prompt_tokens} prompt tokens,"
        f" {results.max_tokens} new tokens, one warm-up and {results.pairs} measured pairs,"
        " baseline (`mlx_lm.stream_generate`) and candidate in turn. Ratios are medians of pairs.",
        "",
        results.environment.line,
        "",
        *table(
            "class | drafter | ratio | tok/s | mlx-lm tok/s | accepted | mean a step | repeated | TTFT s"
            " | mlx-lm TTFT s | draft µs (median, 99%) | output",
            (
                f"{c.kind} | {c.configuration} | {f'{c.ratio_median:.2f}' if c.ratio_median else _NOTHING}"
                f" | {_speed(c.tokens_per_s_median)} | {_speed(c.baseline_tokens_per_s_median)}"
                f" | {c.acceptance:.0%} | {c.mean_per_step:.2f} | {_repeated(c)}"
                f" | {c.ttft_s_median:.2f} | {c.baseline_ttft_s_median:.2f}"
                f" | {c.draft_us_median:.0f}, {c.draft_us_p99:.0f}"
                f" | {'equal' if c.equal else '**different**'}"
                for c in results.cells
            ),
        ),
    ]
    lines += [*_nothing_to_compare(results.cells), "", "## Accepted of tested, by place in the draft", ""]
    for c in results.cells:
        if c.positions:
            lines.append(f"- {c.kind}, {c.configuration}: {accepted_by_position(c.positions)}")
    lines += [
        "",
        "## Draft time without a model",
        "",
        *table(
            "drafter | history | nodes a draft | median µs | 99 % µs",
            (
                f"{t.drafter} | {t.history_tokens:,} | {t.nodes:.1f} | {t.median_us:.1f} | {t.p99_us:.1f}"
                for t in results.draft_times
            ),
        ),
    ]
    compared = [c for c in results.cells if c.mlx_lm_speculative_median]
    if compared:
        lines += ["", "## Two models: Draftlight and mlx-lm's own speculative path", ""]
        for c in compared:
            lines.append(
                f"- {c.kind}: Draftlight {c.ratio_median:.2f}, mlx-lm {c.mlx_lm_speculative_median:.2f}"
                " times plain decoding"
            )
    lines += change_lines((c.configuration, x) for c in results.cells for x in c.changes)
    return "\n".join(lines) + "\n"
