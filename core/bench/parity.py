"""`draftlight bench parity`: whether drafted greedy output equals plain greedy output.

Each prompt class, at each of `--lengths`, is answered `--runs` times by mlx-lm's plain loop and `--runs`
times by each configuration (drafter, exactness, settings). A longer prompt is cut, a shorter one is padded
with a document before it, so lengths are exact. A cell passes only if every candidate run equals every
baseline run. For a cell that fails, the report shows the first divergence: the margin between the two
tokens at width 1 and at the candidate's mean width, and whether the exactness probe predicted it (a margin
within twice the probed noise).
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from core.bench.cases import (
    BenchPrompt,
    Configuration,
    default_prompts,
    document,
    file_label,
    read_prompts,
    with_draft_model,
)
from core.bench.decode import decode_configurations, draft_model_label
from core.bench.harness import (
    BenchPiece,
    Environment,
    Journal,
    PieceProgress,
    accepted_by_position,
    change_lines,
    conditions,
    measure,
    publish,
    table,
)
from core.bench.runs import BenchRun, draftlight, first_difference, margin, mlx_lm, start_engine
from core.errors import RequestError
from core.events import Change, PositionStat
from core.settings import Settings

if TYPE_CHECKING:  # importing it loads MLX, which `prepare()` must come before
    from core.engine.engine import Engine


class Divergence(Struct, frozen=True):
    """The first token where a candidate run differs from a baseline run; margins are logit differences."""

    index: int
    baseline_token: str
    candidate_token: str
    margin_width_1: float
    margin_width_w: float
    width: int
    predicted: bool


class ParityCell(Struct, frozen=True):
    """One prompt, length and configuration. `comparisons` is runs × runs.

    `padded_tokens` of the prompt come from the padding document. `given`: see `Configuration`.
    """

    prompt: int
    kind: str
    prompt_tokens: int
    padded_tokens: int
    configuration: str
    given: dict[str, str]
    changes: tuple[Change, ...]
    comparisons: int
    equal: int
    acceptance: float
    mean_per_step: float
    positions: tuple[PositionStat, ...]
    divergence: Divergence | None

    @property
    def passed(self) -> bool:
        return self.equal == self.comparisons

    @property
    def key(self) -> tuple[int, int, str]:
        return self.prompt, self.prompt_tokens, self.configuration


class ParityResults(Struct, frozen=True):
    """The content of `results.json`. `noise` is the largest logit difference between block widths."""

    bench: str
    environment: Environment
    model: str
    prompts: str
    runs: int
    max_tokens: int
    noise: float
    exact_width: int
    cells: tuple[ParityCell, ...]
    progress: PieceProgress


def run(options: argparse.Namespace) -> int:
    """Measure and write `cells.jsonl`, `results.json` and `report.md`. Exit status 1 if a cell failed."""
    path = options.prompts or default_prompts()
    prompts = read_prompts(path)
    if any(prompt.turns for prompt in prompts):
        raise RequestError(f"{path} holds conversations.", "Choose a file in which every line has `prompt`.")
    chosen = decode_configurations(options, {"decoding.exactness": options.exactness})
    engine, info, environment = start_engine(options)
    most = info.context_tokens - options.max_tokens
    if max(options.lengths) > most:
        raise RequestError(
            f"A prompt of {max(options.lengths):,} tokens and an answer of {options.max_tokens:,} exceed the"
            f" context of {info.name}.",
            f"Choose --lengths of at most {most:,}.",
        )
    profile = engine.exactness_profile(complete="exact" in options.exactness)
    label = conditions(
        environment,
        info.name,
        file_label(path),
        f"{options.runs} runs of {options.max_tokens} tokens",
        draft_model_label(options),
    )
    journal = Journal(options.out / "cells.jsonl", label, ParityCell)
    with tempfile.TemporaryDirectory() as scratch:
        drafted = with_draft_model(options, chosen, Path(info.path), Path(scratch))
        pieces = []
        for (number, prompt), length in product(enumerate(prompts), options.lengths):
            fitted = _fitted(engine, number, prompt, length, options)
            pieces += [
                BenchPiece(
                    (number, length, each.name),
                    partial(_cell, engine, fitted, each, settings, 2.0 * profile.noise),
                )
                for each, settings in drafted
            ]
        cells, progress = measure(journal, pieces, lambda cell: [_row(cell)], quiet=options.quiet)
    results = ParityResults(
        "parity",
        environment,
        info.name,
        path.name,
        options.runs,
        options.max_tokens,
        profile.noise,
        profile.identical_width,
        cells,
        progress,
    )
    publish(options.out, results, write_report(results))
    return progress.status(all(cell.passed for cell in cells))


class _Fitted:
    """A prompt with an exact length, and its plain answers, which are computed on first use."""

    def __init__(
        self, engine: Engine, number: int, kind: str, ids: list[int], padded: int, options: argparse.Namespace
    ) -> None:
        self.number = number
        self.kind = kind
        self.ids = ids
        self.padded = padded
        self._engine = engine
        self._runs = options.runs
        self._max_tokens = options.max_tokens

    @cached_property
    def plain(self) -> list[list[int]]:
        """Token ids of each plain run."""
        return [mlx_lm(self._engine, self.ids, self._max_tokens).tokens for _ in range(self._runs)]


def _fitted(
    engine: Engine, number: int, prompt: BenchPrompt, length: int, options: argparse.Namespace
) -> _Fitted:
    """The prompt cut or padded to exactly `length` tokens."""
    tokenizer = engine.loaded.tokenizer
    ids = [int(token) for token in tokenizer.encode(prompt.prompt)]
    missing = length - len(ids)
    if missing <= 0:
        return _Fitted(engine, number, prompt.kind, ids[:length], 0, options)
    # A token that begins every text (BOS) stays first.
    first = len(tokenizer.encode("")) if len(tokenizer.encode("")) < len(ids) else 0
    filling: list[int] = []
    parts = document("minutes", number + 1)
    while len(filling) < missing:
        more = tokenizer.encode(next(parts), add_special_tokens=False)
        if not more:
            raise RequestError(
                f"The prompt cannot be padded to {length:,} tokens: the padding has no tokens.",
                f"Choose --lengths of at most {len(ids):,}.",
            )
        filling += more
    ids = [*ids[:first], *filling[:missing], *ids[first:]]
    return _Fitted(engine, number, prompt.kind, ids, missing, options)


def _cell(
    engine: Engine, fitted: _Fitted, configuration: Configuration, settings: Settings, noise: float
) -> ParityCell:
    ids, plain = fitted.ids, fitted.plain
    runs = [draftlight(engine, ids, settings) for _ in plain]
    equal = 0
    divergence: Divergence | None = None
    for candidate, baseline in product(runs, plain):
        index = first_difference(baseline, candidate.tokens)
        if index is None:
            equal += 1
        elif divergence is None and index < min(len(baseline), len(candidate.tokens)):
            divergence = _divergence(engine, ids, baseline, candidate, index, noise)
    stats, effective = runs[-1].stats, runs[-1].effective
    assert stats is not None
    assert effective is not None
    return ParityCell(
        fitted.number,
        fitted.kind,
        len(ids),
        fitted.padded,
        configuration.name,
        configuration.given,
        effective.changes,
        len(runs) * len(plain),
        equal,
        stats.acceptance,
        stats.mean_per_step,
        stats.positions,
        divergence,
    )


def _divergence(
    engine: Engine, ids: Sequence[int], baseline: Sequence[int], run: BenchRun, index: int, noise: float
) -> Divergence:
    """`width` is the mean width of the run's drafted steps, at least 2."""
    candidate, stats = run.tokens, run.stats
    assert stats is not None
    width = max(2, round(1 + stats.drafted / max(1, stats.bonus)))
    one = margin(engine, ids, baseline, candidate, index, 1)
    wide = margin(engine, ids, baseline, candidate, index, width)
    decode = engine.loaded.tokenizer.decode
    return Divergence(
        index,
        decode([baseline[index]]),
        decode([candidate[index]]),
        one,
        wide,
        width,
        min(abs(one), abs(wide)) <= noise,
    )


def _row(cell: ParityCell) -> str:
    verdict = "pass" if cell.passed else "FAIL"
    return (
        f"{cell.kind:>12}  {cell.prompt_tokens:4} tokens  {cell.configuration}"
        f"  {cell.equal}/{cell.comparisons} equal  {verdict}"
    )


def write_report(results: ParityResults) -> str:
    """The results as Markdown, a scoreboard first."""
    passed = sum(cell.passed for cell in results.cells)
    lines = [
        "# Parity of drafted and plain greedy output",
        "",
        *results.progress.lines,
        f"{passed} of {len(results.cells)} cells pass. {results.model}, {results.prompts},"
        f" {results.max_tokens} new tokens; every one of {results.runs} drafted runs against every one of"
        f" {results.runs} plain runs of `mlx_lm.stream_generate`.",
        "",
        results.environment.line,
        "",
        f"The exactness probe saw logits differ by at most {results.noise:.2g} between widths;"
        f" no difference was found up to width {results.exact_width}.",
        "",
        *table(
            "class | prompt tokens | padding | drafter | equal | verdict | accepted | mean a step | by place",
            (
                f"{c.kind} | {c.prompt_tokens} | {c.padded_tokens} | {c.configuration}"
                f" | {c.equal}/{c.comparisons} | {'pass' if c.passed else '**fail**'} | {c.acceptance:.0%}"
                f" | {c.mean_per_step:.2f} | {accepted_by_position(c.positions)}"
                for c in results.cells
            ),
        ),
    ]
    failed = [c for c in results.cells if c.divergence]
    if failed:
        lines += ["", "## First divergences", ""]
    for c in failed:
        d = c.divergence
        assert d is not None
        lines.append(
            f"- {c.kind}, {c.prompt_tokens} tokens, {c.configuration}: at token {d.index} plain"
            f" “{d.baseline_token}”, drafted “{d.candidate_token}”; margin {d.margin_width_1:.2g} at width 1,"
            f" {d.margin_width_w:.2g} at width {d.width};"
            f" {'predicted by the probe' if d.predicted else 'NOT predicted by the probe'}"
        )
    lines += change_lines((c.configuration, x) for c in results.cells for x in c.changes)
    return "\n".join(lines) + "\n"
