"""`draftlight bench parity`: is drafted greedy output the plain output, on every run and setting?

The stricter follow-up that seed 000 asks for. Each prompt class, cut to two lengths, is answered
`runs` times by mlx-lm's plain loop and `runs` times by each configuration; a cell passes only if
every candidate run equals every baseline run. Where they differ, the first divergence is shown
with the margin between the two tokens at width 1 and at the width the candidate verified with,
and whether the exactness probe predicted it (a margin inside twice the probed noise). Acceptance
is reported per place in the draft.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from core.bench.environment import Environment, describe
from core.bench.prompts import default_prompts, read_prompts
from core.bench.runs import draftlight, first_difference, mlx_lm
from core.errors import RequestError
from core.events import PositionStat
from core.settings import Settings, assign_all

if TYPE_CHECKING:  # importing it loads MLX, which `run` must prepare first
    from core.engine import Engine


class Divergence(Struct, frozen=True):
    """Where a candidate run first left a baseline run; margins are logit differences."""

    index: int
    baseline_token: str
    candidate_token: str
    margin_width_1: float
    margin_width_w: float
    width: int
    predicted: bool


class ParityCell(Struct, frozen=True):
    """One class, length and configuration; `comparisons` is runs × runs."""

    kind: str
    prompt_tokens: int
    k: int
    n_min: int
    comparisons: int
    equal: int
    acceptance: float
    mean_per_step: float
    positions: tuple[PositionStat, ...]
    divergence: Divergence | None

    @property
    def passed(self) -> bool:
        return self.equal == self.comparisons


class ParityResults(Struct, frozen=True):
    """All of one run of the bench. `noise` is the largest logit difference between widths."""

    bench: str
    environment: Environment
    model: str
    prompts: str
    runs: int
    max_tokens: int
    noise: float
    exact_width: int
    cells: tuple[ParityCell, ...]


def run(options: argparse.Namespace) -> int:
    """Measure and write `results.json` and `report.md`; status 1 if a cell failed."""
    path = options.prompts or default_prompts()
    prompts = read_prompts(path)
    if any(prompt.turns for prompt in prompts):
        raise RequestError(f"{path} holds conversations.", "Parity is measured on lines with `prompt`.")
    from core.models.runtime import prepare

    blas = prepare()
    from core.engine import Engine

    engine = Engine()
    info = engine.load(options.model)
    profile = engine.exactness_profile()
    cells = []
    for prompt, length in product(prompts, options.lengths):
        ids = engine.loaded.tokenizer.encode(prompt.prompt)[:length]
        plain = [mlx_lm(engine, ids, options.max_tokens).tokens for _ in range(options.runs)]
        for settings in _configurations(options):
            cell = _cell(engine, prompt.kind, ids, plain, settings, 2.0 * profile.noise)
            print(_row(cell), file=sys.stderr, flush=True)
            cells.append(cell)
    results = ParityResults(
        "parity",
        describe(blas),
        info.name,
        path.name,
        options.runs,
        options.max_tokens,
        profile.noise,
        profile.exact_width,
        tuple(cells),
    )
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "results.json").write_bytes(msgspec.json.format(msgspec.json.encode(results)))
    report = write_report(results)
    (options.out / "report.md").write_text(report, encoding="utf-8")
    print(report)
    return 0 if all(cell.passed for cell in cells) else 1


def _configurations(options: argparse.Namespace) -> Iterator[Settings]:
    for k, n_min in product(options.k, options.n_min):
        values = [
            ("drafting.drafter", "ngram-simple"),
            ("gate.mode", "always"),
            ("sampling.max_tokens", options.max_tokens),
            ("ngram_simple.k", k),
            ("ngram_simple.n_min", n_min),
            ("ngram_simple.n_max", max(4, n_min)),
        ]
        yield assign_all(Settings(), values)


def _cell(
    engine: Engine,
    kind: str,
    ids: Sequence[int],
    plain: Sequence[Sequence[int]],
    settings: Settings,
    noise: float,
) -> ParityCell:
    runs = [draftlight(engine, ids, settings) for _ in plain]
    equal = 0
    divergence: Divergence | None = None
    for candidate, baseline in product(runs, plain):
        index = first_difference(baseline, candidate.tokens)
        if index is None:
            equal += 1
        elif divergence is None and index < min(len(baseline), len(candidate.tokens)):
            divergence = _divergence(engine, ids, baseline, candidate.tokens, index, settings, noise)
    stats = runs[-1].stats
    assert stats is not None
    return ParityCell(
        kind,
        len(ids),
        settings.ngram_simple.k,
        settings.ngram_simple.n_min,
        len(runs) * len(plain),
        equal,
        stats.acceptance,
        stats.mean_per_step,
        stats.positions,
        divergence,
    )


def _divergence(
    engine: Engine,
    ids: Sequence[int],
    baseline: Sequence[int],
    candidate: Sequence[int],
    index: int,
    settings: Settings,
    noise: float,
) -> Divergence:
    width = settings.ngram_simple.k + 1
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


def margin(
    engine: Engine,
    ids: Sequence[int],
    baseline: Sequence[int],
    candidate: Sequence[int],
    index: int,
    width: int,
) -> float:
    """Logit of the baseline's token less that of the candidate's, from a block of `width`."""
    import mlx.core as mx

    known = [*ids, *baseline[:index]]
    cache = engine.loaded.new_cache()
    engine.loaded.model(mx.array(known[:-1])[None], cache=cache)
    mx.eval([entry.state for entry in cache])
    block = [known[-1], *(list(baseline[index:]) + [0] * width)[: width - 1]]
    logits = engine.loaded.model(mx.array(block)[None], cache=cache)[0, 0].astype(mx.float32)
    return float(logits[baseline[index]] - logits[candidate[index]])


def _row(cell: ParityCell) -> str:
    verdict = "pass" if cell.passed else "FAIL"
    return (
        f"{cell.kind:>12}  {cell.prompt_tokens:4} tokens  k={cell.k} n_min={cell.n_min}"
        f"  {cell.equal}/{cell.comparisons} equal  {verdict}"
    )


def write_report(results: ParityResults) -> str:
    """The results as Markdown, a scoreboard first."""
    passed = sum(cell.passed for cell in results.cells)
    lines = [
        "# Parity of drafted and plain greedy output",
        "",
        f"{passed} of {len(results.cells)} cells pass. {results.model}, {results.prompts},"
        f" {results.max_tokens} new tokens; every one of {results.runs} drafted runs against every one of"
        f" {results.runs} plain runs of `mlx_lm.stream_generate`.",
        "",
        results.environment.line,
        "",
        f"The exactness probe saw logits differ by at most {results.noise:.2g} between widths;"
        f" bit-identical up to width {results.exact_width}.",
        "",
        "| class | prompt tokens | k | n_min | equal | verdict | accepted | mean a step | by place |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for c in results.cells:
        places = ", ".join(f"{p.accepted}/{p.tested}" for p in c.positions)
        verdict = "pass" if c.passed else "**fail**"
        lines.append(
            f"| {c.kind} | {c.prompt_tokens} | {c.k} | {c.n_min} | {c.equal}/{c.comparisons}"
            f" | {verdict} | {c.acceptance:.0%} | {c.mean_per_step:.2f} | {places} |"
        )
    failed = [c for c in results.cells if c.divergence]
    if failed:
        lines += ["", "## First divergences", ""]
    for c in failed:
        d = c.divergence
        assert d is not None
        lines.append(
            f"- {c.kind}, {c.prompt_tokens} tokens, k={c.k}, n_min={c.n_min}: at token {d.index} plain"
            f" “{d.baseline_token}”, drafted “{d.candidate_token}”; margin {d.margin_width_1:.2g} at width 1,"
            f" {d.margin_width_w:.2g} at width {d.width};"
            f" {'predicted by the probe' if d.predicted else 'NOT predicted by the probe'}"
        )
    return "\n".join(lines) + "\n"
