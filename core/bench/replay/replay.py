"""`draftlight bench replay`: drafters over recorded streams, without a model, at a named cost.

Question: how much faster than plain decoding would each drafter have been, if a block of w tokens
costs T(w) plain steps? Answered as tokens ÷ Σ T(width). The recorded answer stands in for the
verifier, so acceptance is exact and nothing drifts; the time to draft is not counted (the decode
bench measures it). A draft is verified whole, as the drafter proposed it, unless it is a planned
drafter's: then the planner takes the part that pays at this cost, and there is no gate.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from core.bench.environment import Environment, describe
from core.bench.grid import Configuration, configurations
from core.bench.journal import Journal
from core.bench.pieces import BenchPiece, PieceProgress, conditions, measure, of_run
from core.bench.prompts import fingerprint
from core.bench.replay.cost_table import CostTable, cost_table
from core.bench.replay.reliability import Decile, Fate, deciles, fates
from core.bench.results_folder import write_results
from core.decoding.accept import walk
from core.decoding.planner import Planner
from core.drafting.draft import Draft, Drafter, sanitise
from core.drafting.follower_tables import FrozenTable
from core.drafting.gate import Gate
from core.drafting.gram_table import GramTable, JoinedTables
from core.drafting.ngram_table import NgramTables
from core.drafting.registry import DRAFTERS, Resources, drafter_spec
from core.drafting.table_evidence import Continuations
from core.rehearsal.streams import Stream, read_streams
from core.settings import Settings, assign_all
from core.settings.gate import Gate as GateSettings
from core.tables.prebuilt_files import FROZEN, GRAMS

# No id of a recorded stream is near this; drafts are only checked for form.
_VOCABULARY = 1 << 24
_NOWHERE = -1
_OWN_OPTIONS = {"drafting.drafter": "--drafters", "gate.mode": "--gates"}


class ReplayTally(Struct):
    """Summed over streams."""

    tokens: int = 0
    steps: int = 0
    accepted: int = 0
    tested: int = 0
    cost: float = 0.0
    fates: list[Fate] = []

    @property
    def speed(self) -> float:
        return self.tokens / self.cost if self.cost else 0.0

    def add(self, other: ReplayTally) -> None:
        self.tokens += other.tokens
        self.steps += other.steps
        self.accepted += other.accepted
        self.tested += other.tested
        self.cost += other.cost
        self.fates += other.fates


class ReplayRow(Struct, frozen=True):
    """One drafter at one cost, with the settings that are `given`; `kinds` maps each class to its speed.

    `reliability` is empty for drafters whose drafts carry no confidences.
    """

    drafter: str
    cost: str
    gate: str
    speed: float
    mean_per_step: float
    acceptance: float
    kinds: dict[str, float]
    reliability: tuple[Decile, ...] = ()
    given: dict[str, str] = {}

    @property
    def key(self) -> tuple[str, str, str]:
        return self.drafter, self.cost, self.gate


class ReplayResults(Struct, frozen=True):
    """All of one run of the bench."""

    bench: str
    streams: str
    count: int
    rows: tuple[ReplayRow, ...]
    environment: Environment
    progress: PieceProgress


def run(options: argparse.Namespace) -> int:
    """Replay and write `rows.jsonl`, `results.json` and `report.md`."""
    streams = read_streams(options.streams)
    answers, texts = learned_table(options.learned), learned_table(options.texts)
    learned = JoinedTables(answers, texts) if answers or texts else None
    frozen = FROZEN.load_any(options.frozen, _VOCABULARY) if options.frozen else None
    environment = describe()
    files = [path for path in (options.streams, options.learned, options.texts, options.frozen) if path]
    told = conditions(environment, *(f"{path.name} {fingerprint(path)}" for path in files))
    journal = Journal(options.out / "rows.jsonl", told, ReplayRow)
    names = options.drafters or _replayable()
    chosen = configurations(names, [], sets=options.set, grids=options.grid, own_options=_OWN_OPTIONS)
    pieces = [
        BenchPiece((each.name, cost, gate), partial(_row, each, streams, cost, gate, learned, frozen))
        for each in chosen
        for cost in options.costs
        for gate in options.gates
    ]
    progress = measure(journal, pieces, lambda row: [], quiet=options.quiet)
    rows = tuple(of_run(journal, pieces))
    results = ReplayResults("replay", Path(options.streams).name, len(streams), rows, environment, progress)
    report = write_report(results)
    write_results(options.out, results, report)
    print(report)
    return progress.status(True)


def _row(
    configuration: Configuration,
    streams: Sequence[Stream],
    cost: str,
    gate: str,
    learned: Continuations | None,
    frozen: FrozenTable | None,
) -> ReplayRow:
    row = replay(
        configuration.drafter, streams, cost_table(cost), gate, learned, frozen, configuration.settings
    )
    return replace(row, drafter=configuration.name, given=configuration.given)


def replay(
    name: str,
    streams: Sequence[Stream],
    table: CostTable,
    gate: str,
    learned: Continuations | None = None,
    frozen: FrozenTable | None = None,
    settings: Settings | None = None,
) -> ReplayRow:
    """One drafter over all streams, each as a request of its own.

    It begins with empty tables but for those `learned` beforehand and the `frozen` one.
    """
    spec = drafter_spec(name)
    settings = assign_all(settings or Settings(), [("drafting.drafter", name), ("gate.mode", gate)])
    total = ReplayTally()
    kinds: dict[str, ReplayTally] = {}
    for stream in streams:
        resources = Resources(1 << 17, "replay", NgramTables(), spec.trees, frozen, learned)
        drafter = spec.build(settings, resources)
        planner = Planner(table.cost) if spec.planned(settings) else None
        one = replay_stream(drafter, stream, table.cost, settings.gate, planner)
        total.add(one)
        kinds.setdefault(stream.cls, ReplayTally()).add(one)
    return ReplayRow(
        name,
        table.name,
        gate,
        total.speed,
        total.tokens / total.steps if total.steps else 0.0,
        total.accepted / total.tested if total.tested else 0.0,
        {kind: tally.speed for kind, tally in sorted(kinds.items())},
        deciles(total.fates),
    )


def replay_stream(
    drafter: Drafter,
    stream: Stream,
    cost: Callable[[int], float],
    gate_settings: GateSettings,
    planner: Planner | None = None,
) -> ReplayTally:
    """One answer, step by step. With a planner the gate stays open, but for one that the prompt decides."""
    planned = planner is not None and gate_settings.mode != "prompt"
    gate = Gate(gate_settings, forced=planned, cost=cost)
    gate.begin(stream.prompt)
    drafter.begin(stream.prompt)
    tally, position = ReplayTally(), 0
    while position < len(stream.out):
        budget = len(stream.out) - position - 1
        draft = Draft()
        if budget and gate.should_draft():
            draft = sanitise(drafter.draft(budget), vocabulary=_VOCABULARY, budget=budget)
            if planner is not None:
                draft = planner.shape(draft, budget)
        found = walk(draft, _choices(draft, stream.out[position:]))
        emitted = stream.out[position : position + len(found.path) + 1]
        tally.tokens += len(emitted)
        tally.steps += 1
        tally.accepted += len(found.path)
        tally.tested += found.tested
        tally.cost += cost(1 + len(draft))
        tally.fates += fates(draft, found.path)
        if len(draft):
            drafter.feedback(draft, len(found.path))
        drafter.observe(emitted)
        if stream.tops:
            drafter.observe_top(stream.tops[position : position + len(emitted)])
        gate.record(1 + len(draft), len(found.path))
        if planner is not None:
            planner.record(1 + len(draft), len(emitted))
        position += len(emitted)
    return tally


def learned_table(path: Path | None) -> GramTable | None:
    """The table at `path`, whatever family's; the streams' ids are taken for that family's."""
    return None if path is None else GRAMS.load_any(path, _VOCABULARY)


def _choices(draft: Draft, coming: Sequence[int]) -> list[int]:
    """What the verifier would choose at each row: known on the answer's own path, nowhere else."""
    choices = [_NOWHERE] * (len(draft) + 1)
    on_path = {-1: 0}
    choices[0] = coming[0]
    for node, (token, parent) in enumerate(zip(draft.tokens, draft.parents)):
        depth = on_path.get(parent)
        if depth is not None and depth + 1 < len(coming) and token == coming[depth]:
            on_path[node] = depth + 1
            choices[node + 1] = coming[depth + 1]
    return choices


def _replayable() -> list[str]:
    return [name for name, spec in DRAFTERS.items() if not spec.needs_proposer]


def write_report(results: ReplayResults) -> str:
    """The results as Markdown."""
    kinds = sorted({kind for row in results.rows for kind in row.kinds})
    lines = [
        "# Replay of recorded streams",
        "",
        *results.progress.lines,
        f"{results.streams}, {results.count} streams; tokens ÷ Σ T(width), each starts with empty tables.",
        "",
        results.environment.line,
        "",
        "| drafter | cost | gate | speed | mean a step | accepted | " + " | ".join(kinds) + " |",
        "|---|---|---|---|---|---|" + "---|" * len(kinds),
    ]
    for row in results.rows:
        speeds = " | ".join(f"{row.kinds.get(kind, 0.0):.2f}" for kind in kinds)
        lines.append(
            f"| {row.drafter} | {row.cost} | {row.gate} | {row.speed:.3f} | {row.mean_per_step:.2f}"
            f" | {row.acceptance:.0%} | {speeds} |"
        )
    for row in results.rows:
        if row.reliability:
            lines += ["", f"## Confidence of {row.drafter} at {row.cost}, gate {row.gate}", ""]
            lines += ["| confidence | nodes | mean | accepted | error |", "|---|---|---|---|---|"]
            lines += [
                f"| {d.low:.1f} … {d.low + 0.1:.1f} | {d.nodes} | {d.mean_confidence:.3f}"
                f" | {d.acceptance:.3f} | {d.error:+.3f} |"
                for d in row.reliability
            ]
    return "\n".join(lines) + "\n"
