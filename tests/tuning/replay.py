"""`python -m tests.tuning replay`: drafters on recorded answers, without a model, at a named cost table.

The speed of a drafter is tokens / Σ T(width), where a verify block of w tokens costs T(w) plain steps. The
recorded answer takes the place of the verifier, so acceptance is exact and repeatable. Draft time is not
included; `draftlight bench` measures it. A draft is verified whole; for drafters with a planner, the planner
chooses the part that pays off at this cost table. `--overhead` adds what a step that asks the drafter takes
besides its block, in plain steps: drafting, and that the loop cannot run ahead. The planner knows it.
"""

from __future__ import annotations

import argparse
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from core.bench.cases import Configuration, configurations
from core.bench.runner import Bench, BenchPiece, describe, file_label, run_bench, table
from core.decoding.planner import Planner, walk
from core.drafting.cacheback import FrozenTable
from core.drafting.draft import Draft, Drafter, sanitise
from core.drafting.gate import Gate, PricedGate
from core.drafting.gram_table import GramTable
from core.drafting.registry import DRAFTERS, Resources, drafter_spec
from core.drafting.shared_tables import NgramTables
from core.settings import Settings, assign_all
from core.settings.drafting import Gate as GateSettings
from core.tables.prebuilt import FROZEN, GRAMS
from tests.tuning.streams import Stream, read_streams

# Above every id of a recorded stream; drafts are only checked for their form.
_VOCABULARY = 1 << 24
_NOWHERE = -1
# Of the tables that streams share.
FAMILY = "replay"
_DECILES = 10
_OWN_OPTIONS = {"drafting.drafter": "--drafters", "gate.mode": "--gates"}

# ---- cost tables


class CostTable(Struct, frozen=True):
    """T(w): the cost of a verify block of w tokens, as a multiple of a plain step.

    `points` are (width, cost) in ascending width, starting with (1, 1.0). Costs between points are
    interpolated; above the last point the last slope continues. Shipped tables are published or measured
    values (`source`), so replays are comparable between machines.
    """

    name: str
    source: str
    points: tuple[tuple[int, float], ...]

    def cost(self, width: int, tree: bool = False) -> float:
        """T(width), the same for trees."""
        widths = [w for w, _ in self.points]
        at = bisect_left(widths, width)
        if at < len(widths) and widths[at] == width:
            return self.points[at][1]
        at = min(max(at, 1), len(self.points) - 1)
        (w0, c0), (w1, c1) = self.points[at - 1], self.points[at]
        return c0 + (c1 - c0) * (width - w0) / (w1 - w0)


def _mean(name: str, source: str, tables: tuple[CostTable, ...]) -> CostTable:
    widths = sorted({w for table in tables for w, _ in table.points})
    return CostTable(name, source, tuple((w, sum(t.cost(w) for t in tables) / len(tables)) for w in widths))


_CPU_256 = CostTable(
    "cpu-256",
    "SmolLM2-135M, float32 with OpenBLAS, 2 cores, context 256",
    (
        *((1, 1.00), (2, 1.18), (3, 1.24), (4, 1.30), (5, 1.52), (8, 1.48)),
        *((12, 1.80), (16, 1.84), (32, 2.66), (64, 4.59)),
    ),
)
_CPU_1024 = CostTable(
    "cpu-1024",
    "SmolLM2-135M, float32 with OpenBLAS, 2 cores, context 1024",
    (
        *((1, 1.00), (2, 1.18), (3, 1.31), (4, 1.36), (5, 1.53), (8, 1.64)),
        *((12, 2.15), (16, 2.33), (32, 4.25), (64, 6.59)),
    ),
)


def _apple(name: str, source: str, measured: tuple[tuple[int, float], ...], tile: float) -> CostTable:
    """A chip from generation 15 (M3) on, 4-bit matrices over 4,096, mlx 0.32.2 and later.

    Below 13 rows (`get_qmv_batch_limit`) `qmv_wide` reads the weights once per 5 rows. From 13 on a matrix
    kernel computes tiles of 32 rows, each of which costs `tile` however many it holds. `measured` are
    published costs below the limit; from the last one to it, costs rise in a line.

    Not in it: attention but in m5-max, smaller matrices (limits 13 to 33), Ultras (12 to 32), and M1 and M2
    (6 to 14), which read the weights for every row. No Mac was measured for it.
    """
    tiles = ((13, tile), (32, tile), (33, 2 * tile), (64, 2 * tile), (96, 3 * tile))
    return CostTable(name, source, (*measured, *tiles))


_M3_MAX = _apple(
    "m3-max",
    "M3 Max, 5120 to 17408 matmul (mlx#3863, #3987)",
    ((1, 1.00), (2, 1.00), (4, 1.28), (6, 2.04), (8, 2.50), (9, 3.14)),
    3.98,
)
_M4_PRO = _apple(
    "m4-pro",
    "M4 Pro, 4096 to 24576 matmul (mlx#3839); its tile, not published, continues the line",
    ((1, 1.00), (2, 1.03), (3, 1.22), (4, 1.47), (6, 2.07), (8, 2.69)),
    4.24,
)
_M5_MAX = _apple(
    "m5-max",
    "M5 Max, a whole model of 70B, context 400 (mlx#3791)",
    ((1, 1.00), (3, 1.12), (5, 1.48), (8, 2.25), (12, 3.18)),
    3.88,
)

COST_TABLES: dict[str, CostTable] = {
    table.name: table
    for table in (
        _mean("cpu", "the two CPU tables averaged", (_CPU_256, _CPU_1024)),
        _mean("apple", "m3-max, m4-pro and m5-max averaged", (_M3_MAX, _M4_PRO, _M5_MAX)),
        _CPU_256,
        _CPU_1024,
        _M3_MAX,
        _M4_PRO,
        _M5_MAX,
    )
}


# ---- reliability of confidences


class Fate(Struct, frozen=True):
    """Confidence of one drafted token and whether it was accepted."""

    confidence: float
    accepted: bool


class Decile(Struct, frozen=True):
    """Drafted tokens with a confidence in [`low`, `low` + 0.1); the last decile includes 1.0."""

    low: float
    nodes: int
    mean_confidence: float
    acceptance: float

    @property
    def error(self) -> float:
        """Mean confidence minus acceptance; positive if the drafter is overconfident."""
        return self.mean_confidence - self.acceptance


def fates(draft: Draft, path: Sequence[int]) -> list[Fate]:
    """Outcomes of the drafted tokens that the walk along `path` tested: those whose parent was accepted.

    Empty if the draft has no confidences.
    """
    if len(draft.confidence) != len(draft):
        return []
    accepted = set(path)
    return [
        Fate(confidence, node in accepted)
        for node, (parent, confidence) in enumerate(zip(draft.parents, draft.confidence))
        if parent < 0 or parent in accepted
    ]


def deciles(all_fates: Iterable[Fate]) -> tuple[Decile, ...]:
    """The non-empty deciles, lowest first."""
    held: list[list[Fate]] = [[] for _ in range(_DECILES)]
    for fate in all_fates:
        held[min(_DECILES - 1, max(0, int(fate.confidence * _DECILES)))].append(fate)
    return tuple(
        Decile(
            index / _DECILES,
            len(inside),
            sum(fate.confidence for fate in inside) / len(inside),
            sum(fate.accepted for fate in inside) / len(inside),
        )
        for index, inside in enumerate(held)
        if inside
    )


# ---- replay


class ReplayTally(Struct):
    """Sums over streams."""

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
    """One configuration at one cost table. `kinds` maps each prompt class to its speed.

    `reliability` is empty for drafters without confidences.
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


def run(options: argparse.Namespace) -> int:
    """Replay and write `replay.jsonl` and `replay.md`."""
    streams = read_streams(options.streams)
    learned = learned_table(options.learned)
    frozen = FROZEN.load(options.frozen, vocabulary=_VOCABULARY) if options.frozen else None
    names = _replayable() if options.drafters == ("all",) else options.drafters
    pieces = [
        BenchPiece(
            (each.name, cost, gate),
            partial(_row, each, streams, cost, gate, learned, frozen, options.overhead),
        )
        for each in configurations(names, [], options.set, _OWN_OPTIONS)
        for cost in options.costs
        for gate in options.gates
    ]
    files = [path for path in (options.streams, options.learned, options.frozen) if path]
    title = f"Replay of {len(streams)} recorded streams"
    conditions = [*map(file_label, files), f"overhead {options.overhead:g}"]
    bench = Bench("replay", title, describe(), conditions, ReplayRow, options.out)
    return run_bench(bench, pieces, lambda row: "", report, quiet=options.quiet)[1].status(True)


def _row(
    configuration: Configuration,
    streams: Sequence[Stream],
    cost: str,
    gate: str,
    learned: GramTable | None,
    frozen: FrozenTable | None,
    overhead: float,
) -> ReplayRow:
    row = replay(
        configuration.drafter,
        streams,
        COST_TABLES[cost],
        gate,
        learned,
        frozen,
        configuration.settings,
        overhead=overhead,
    )
    return replace(row, drafter=configuration.name, given=configuration.given)


def replay(
    name: str,
    streams: Sequence[Stream],
    table: CostTable,
    gate: str,
    learned: GramTable | None = None,
    frozen: FrozenTable | None = None,
    settings: Settings | None = None,
    taught: NgramTables | None = None,
    overhead: float = 0.0,
) -> ReplayRow:
    """One drafter over all streams. Every stream is a new request with empty tables, except the `learned` and
    `frozen` ones, or with copies of those in `taught`. `overhead`: see `replay_stream`.
    """
    spec = drafter_spec(name)
    settings = assign_all(settings or Settings(), [("drafting.drafter", name), ("gate.mode", gate)])
    total = ReplayTally()
    kinds: dict[str, ReplayTally] = {}
    for stream in streams:
        tables = taught.private_copies(FAMILY) if taught is not None else NgramTables()
        resources = Resources(1 << 17, FAMILY, tables, spec.trees, frozen, learned)
        drafter = spec.build(settings, resources)
        planner = planner_of(table.cost, overhead) if spec.planned(settings) else None
        one = replay_stream(drafter, stream, table.cost, settings.gate, planner, overhead)
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


def planner_of(cost: Callable[[int], float], overhead: float = 0.0) -> Planner:
    """A planner that knows that a step which asks the drafter takes `overhead` plain steps and its block."""
    return Planner(lambda width, tree: cost(width) + overhead)


def replay_stream(
    drafter: Drafter,
    stream: Stream,
    cost: Callable[[int], float],
    gate_settings: GateSettings,
    planner: Planner | None = None,
    overhead: float = 0.0,
) -> ReplayTally:
    """One answer step by step. A step that asks the drafter takes `overhead` plain steps and its block."""
    gate: Gate | PricedGate = Gate(gate_settings, cost)
    if planner is not None:
        gate = PricedGate(gate_settings)
    gate.begin(stream.prompt)
    drafter.begin(stream.prompt)
    tally, position = ReplayTally(), 0
    while position < len(stream.out):
        budget = len(stream.out) - position - 1
        draft, asked = Draft(), gate.should_draft()
        worth: float | None = None
        if budget and asked:
            if planner is not None:
                drafter.least_probability = planner.least_probabilities()
            draft = sanitise(drafter.draft(budget), vocabulary=_VOCABULARY, budget=budget)
            if planner is not None:
                draft = planner.shape(draft, budget)
                worth = planner.worth(draft)
        found = walk(draft, verifier_choices(draft, stream.out[position:]))
        emitted = stream.out[position : position + len(found.path) + 1]
        tally.tokens += len(emitted)
        tally.steps += 1
        tally.accepted += len(found.path)
        tally.tested += found.tested
        tree, block = not draft.is_chain, cost(1 + len(draft))
        spent = block + overhead * asked
        tally.cost += spent
        tally.fates += fates(draft, found.path)
        if len(draft):
            drafter.feedback(draft, len(found.path))
        drafter.observe(emitted)
        if stream.tops and asked:
            drafter.observe_top(stream.tops[position : position + len(emitted)])
        if planner is not None and asked:
            planner.record(1 + len(draft), tree, len(emitted))
        elif planner is not None:
            planner.rested(len(emitted))
        if isinstance(gate, PricedGate):
            gate.record(worth, drafter.sure())
        else:
            gate.record(1 + len(draft), len(found.path))
        position += len(emitted)
    return tally


def learned_table(path: Path | None) -> GramTable | None:
    """The gram table at `path`; the streams' ids are assumed to be of the same family."""
    return None if path is None else GRAMS.load(path, vocabulary=_VOCABULARY)


def verifier_choices(draft: Draft, coming: Sequence[int]) -> list[int]:
    """The verifier's token at each row: known on the path of the recorded answer, `_NOWHERE` elsewhere."""
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


def report(rows: Sequence[ReplayRow]) -> list[str]:
    """The results as Markdown."""
    kinds = sorted({kind for row in rows for kind in row.kinds})
    lines = [
        "Tokens ÷ Σ T(width); each stream starts with empty tables. The streams have no hidden states, so MTP"
        " heads are not replayed, nor are draft models.",
        "",
        *table(
            f"drafter | cost | gate | speed | mean a step | accepted | {' | '.join(kinds)}",
            (
                f"{row.drafter} | {row.cost} | {row.gate} | {row.speed:.3f} | {row.mean_per_step:.2f}"
                f" | {row.acceptance:.0%} | {' | '.join(f'{row.kinds.get(kind, 0.0):.2f}' for kind in kinds)}"
                for row in rows
            ),
        ),
    ]
    for row in rows:
        if row.reliability:
            lines += ["", f"## Confidence of {row.drafter} at {row.cost}, gate {row.gate}", ""]
            lines += table(
                "confidence | nodes | mean | accepted | error",
                (
                    f"{d.low:.1f} … {d.low + 0.1:.1f} | {d.nodes} | {d.mean_confidence:.3f}"
                    f" | {d.acceptance:.3f} | {d.error:+.3f}"
                    for d in row.reliability
                ),
            )
    return lines
