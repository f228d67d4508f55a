"""`draftlight bench parity`: is drafted greedy output the plain output, on every run and setting?

The stricter follow-up that the prompt-lookup study asks for. Each prompt class, at two lengths, is answered
`runs` times by mlx-lm's plain loop and `runs` times by each configuration: any drafter, exactness and grid
of settings. A prompt that is longer is cut, one that is shorter follows a document of other words,
so it has that many tokens exactly. A cell passes only if every candidate run equals every baseline
run. Where they differ, the first divergence is shown with the margin between the two tokens at
width 1 and at the width the candidate mostly verified with, and whether the exactness probe
predicted it (a margin inside twice the probed noise). Acceptance is reported per place in the draft.
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

from core.bench.documents import document
from core.bench.environment import Environment
from core.bench.grid import Configuration, configurations, with_draft_model
from core.bench.journal import Journal
from core.bench.model import load_tried
from core.bench.pieces import BenchPiece, PieceProgress, conditions, measure, of_run
from core.bench.prompts import BenchPrompt, default_prompts, fingerprint, read_prompts
from core.bench.results_folder import write_results
from core.bench.runs import BenchRun, draftlight, first_difference, mlx_lm
from core.errors import RequestError
from core.events import Change, ModelInfo, PositionStat
from core.settings import Settings

if TYPE_CHECKING:  # importing it loads MLX, which `run` must prepare first
    from core.engine.engine import Engine


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
    """One class, length and configuration; `comparisons` is runs × runs.

    `padded_tokens` of the prompt are not its own. `given` are the settings that the configuration names.
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
    progress: PieceProgress


def run(options: argparse.Namespace) -> int:
    """Measure and write `cells.jsonl`, `results.json` and `report.md`; status 1 if a cell failed."""
    path = options.prompts or default_prompts()
    prompts = read_prompts(path)
    if any(prompt.turns for prompt in prompts):
        raise RequestError(f"{path} holds conversations.", "Parity is measured on lines with `prompt`.")
    chosen = _configurations(options)
    from core.models.runtime.runtime import prepare

    blas = prepare()
    from core.engine.engine import Engine

    engine = Engine()
    info, environment = load_tried(engine, options.model, blas, quiet=options.quiet)
    room = info.context_tokens - options.max_tokens
    if max(options.lengths) > room:
        raise RequestError(
            f"A prompt of {max(options.lengths):,} tokens and an answer of {options.max_tokens:,} are more"
            f" than {info.name} takes.",
            f"Choose --lengths of at most {room:,}.",
        )
    profile = engine.exactness_profile(complete="exact" in options.exactness)
    journal = Journal(options.out / "cells.jsonl", _conditions(options, environment, info, path), ParityCell)
    with tempfile.TemporaryDirectory() as scratch:
        drafted = with_draft_model(options, chosen, Path(info.path), Path(scratch))
        pieces = []
        for (number, prompt), length in product(enumerate(prompts), options.lengths):
            asked = _asked(engine, number, prompt, length, options)
            noise = 2.0 * profile.noise
            pieces += [
                BenchPiece(
                    (number, length, each.name),
                    partial(_cell, engine, asked, each, settings, noise),
                )
                for each, settings in drafted
            ]
        progress = measure(journal, pieces, lambda cell: [_row(cell)], quiet=options.quiet)
    cells = tuple(of_run(journal, pieces))
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
    report = write_report(results)
    write_results(options.out, results, report)
    print(report)
    return progress.status(all(cell.passed for cell in cells))


def _conditions(options: argparse.Namespace, environment: Environment, info: ModelInfo, prompts: Path) -> str:
    return conditions(
        environment,
        info.name,
        f"{prompts.name} {fingerprint(prompts)}",
        f"{options.runs} runs of {options.max_tokens} tokens",
        f"draft model {options.draft_model or f'of {options.draft_layers} layers'}",
    )


def _configurations(options: argparse.Namespace) -> list[Configuration]:
    return configurations(
        options.drafters,
        [("gate.mode", "always"), ("sampling.max_tokens", options.max_tokens)],
        sets=options.set,
        grids=options.grid,
        defaults={"ngram_simple.k": options.k, "ngram_simple.n_min": options.n_min},
        also={"decoding.exactness": options.exactness},
    )


class _Asked:
    """One prompt of one length, and what plain decoding says to it, found out when it is first needed."""

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
        """The tokens of each plain run."""
        return [mlx_lm(self._engine, self.ids, self._max_tokens).tokens for _ in range(self._runs)]


def _asked(
    engine: Engine, number: int, prompt: BenchPrompt, length: int, options: argparse.Namespace
) -> _Asked:
    """The prompt with `length` tokens exactly: cut, or behind a document."""
    tokenizer = engine.loaded.tokenizer
    ids = [int(token) for token in tokenizer.encode(prompt.prompt)]
    missing = length - len(ids)
    if missing <= 0:
        return _Asked(engine, number, prompt.kind, ids[:length], 0, options)
    # What begins every text stays at the beginning.
    first = len(tokenizer.encode("")) if len(tokenizer.encode("")) < len(ids) else 0
    filling: list[int] = []
    parts = document("minutes", number + 1)
    while len(filling) < missing:
        more = tokenizer.encode(next(parts), add_special_tokens=False)
        if not more:
            raise RequestError(
                f"Nothing can be put before the prompt to make it {length:,} tokens long.",
                f"Choose --lengths of at most {len(ids):,}.",
            )
        filling += more
    ids = [*ids[:first], *filling[:missing], *ids[first:]]
    return _Asked(engine, number, prompt.kind, ids, missing, options)


def _cell(
    engine: Engine, asked: _Asked, configuration: Configuration, settings: Settings, noise: float
) -> ParityCell:
    ids, plain = asked.ids, asked.plain
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
        asked.number,
        asked.kind,
        len(ids),
        asked.padded,
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
    """`width` is the mean one of the run's drafted steps, at least 2."""
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
        "| class | prompt tokens | padding | drafter | equal | verdict | accepted | mean a step | by place |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for c in results.cells:
        places = ", ".join(f"{p.accepted}/{p.tested}" for p in c.positions)
        verdict = "pass" if c.passed else "**fail**"
        lines.append(
            f"| {c.kind} | {c.prompt_tokens} | {c.padded_tokens} | {c.configuration}"
            f" | {c.equal}/{c.comparisons} | {verdict} | {c.acceptance:.0%}"
            f" | {c.mean_per_step:.2f} | {places} |"
        )
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
