"""The tables bench without a model: sizes, frozen tables and poison, on recorded streams.

Speed is tokens ÷ Σ T(width) at a named cost table, as in the replay bench, so nothing drifts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from msgspec import Struct

from core.bench.pieces import BenchPiece
from core.bench.replay.cost_table import CostTable
from core.bench.replay.replay import ReplayTally, replay_stream
from core.decoding.planner import Planner
from core.drafting.calibration import Calibration
from core.drafting.follower_tables import FrozenTable
from core.drafting.gram_table import GramRow
from core.drafting.ngram_table import Entries, NgramTable, NgramTables
from core.drafting.registry import Resources, drafter_spec
from core.rehearsal.streams import Stream
from core.settings import Settings, assign_all
from core.tables.prebuilt_files import FROZEN

SIZES = tuple(2**bits for bits in range(12, 23))
# Tokens of other chats between two visits: none, some days of chats, and some months.
LOADS = (0, 30_000, 300_000)
# The planned one, the paper's, and a small one of the paper's kind.
TREES = (0, 96, 16)
LEADERS, FOLLOWERS = (1, 2, 3), (1, 2, 3, 4)
_FAMILY = "replay"
_CONTEXT = 1 << 17
# Ids of recorded streams are only counted, never looked up in a model.
_VOCABULARY = 1 << 24
# No recorded answer holds an id this large, so such a guess is always wrong.
_WRONG = 1 << 20


class SizeRow(Struct, frozen=True):
    """One table size. `first` and `again` are speeds: of the first visit, and of the return.

    Between them so many tokens of other chats went into the table. Acceptance, occupancy (a share)
    and overwrites are those of the return, and after it.
    """

    slots: int
    other_tokens: int
    first: float
    again: float
    acceptance: float
    occupancy: float
    overwrites: int

    @property
    def key(self) -> tuple[int, int]:
        return self.other_tokens, self.slots


def table_sizes(streams: Sequence[Stream], cost: CostTable) -> list[BenchPiece[SizeRow]]:
    """Every size with every load."""
    return [
        BenchPiece((other_tokens, slots), partial(_size, streams, cost, other_tokens, slots))
        for other_tokens in LOADS
        for slots in SIZES
    ]


def _size(streams: Sequence[Stream], cost: CostTable, other_tokens: int, slots: int) -> SizeRow:
    """Each answer is given, others come between, and is given again."""
    settings = _settings("ngram-mod", **{"ngram_mod.slots": slots})
    tables = NgramTables()
    first = _replay(streams, settings, cost, tables)
    table = tables.table(_FAMILY, settings.ngram_mod.n, slots)
    fill(table, other_tokens, random.Random(slots))
    again = _replay(streams, settings, cost, tables)
    figures = table.figures()
    return SizeRow(
        slots,
        other_tokens,
        first.speed,
        again.speed,
        again.accepted / again.tested if again.tested else 0.0,
        figures.used / slots,
        figures.overwrites,
    )


def fill(table: NgramTable, count: int, rng: random.Random, token: int = _WRONG) -> None:
    """As if so many tokens of chats that never come back were said."""
    table.insert_all((rng.getrandbits(64), token) for _ in range(count))


# ---- cacheback


class FrozenRow(Struct, frozen=True):
    """Cacheback with one choice of tables, or one LL and FL.

    `tree_tokens` is 0 for the planned tree, whose mean is that at the first cost; the paper's trees are
    verified whole, so theirs is that at any.
    """

    mode: str
    leader_tokens: int
    follower_tokens: int
    tree_tokens: int
    mean_per_step: float
    speeds: dict[str, float]

    @property
    def key(self) -> tuple[str, int, int, int]:
        return self.mode, self.leader_tokens, self.follower_tokens, self.tree_tokens


Lengths = tuple[int, int]


def frozen_tables(paths: Sequence[Path]) -> dict[Lengths, FrozenTable]:
    """The tables of these files by tokens of a leader and of a follower, whatever family's they are."""
    found = {}
    for path in paths:
        table = FROZEN.load_any(path, _VOCABULARY)
        leader, followers = next(iter(table.entries().items()))
        found[len(leader), len(followers[0])] = table
    return found


def frozen_modes(
    streams: Sequence[Stream], costs: Sequence[CostTable], given: Mapping[Lengths, FrozenTable]
) -> list[BenchPiece[FrozenRow]]:
    """Both tables, this chat's alone, the frozen one alone; with each tree."""
    modes = ("dual", "dynamic", "frozen") if not given or (1, 3) in given else ()
    return [
        _frozen_piece(streams, costs, mode, (1, 3), tree_tokens, given)
        for tree_tokens in TREES
        for mode in modes
    ]


def frozen_lengths(
    streams: Sequence[Stream], costs: Sequence[CostTable], given: Mapping[Lengths, FrozenTable]
) -> list[BenchPiece[FrozenRow]]:
    """LL × FL with both tables, as in the paper's figure 4; with each tree."""
    lengths = sorted(given) or [(leader, follower) for leader in LEADERS for follower in FOLLOWERS]
    return [
        _frozen_piece(streams, costs, "dual", each, tree_tokens, given)
        for tree_tokens in TREES
        for each in lengths
    ]


def _frozen_piece(
    streams: Sequence[Stream],
    costs: Sequence[CostTable],
    mode: str,
    lengths: Lengths,
    tree_tokens: int,
    given: Mapping[Lengths, FrozenTable],
) -> BenchPiece[FrozenRow]:
    return BenchPiece(
        (mode, *lengths, tree_tokens), partial(_frozen, streams, costs, mode, lengths, tree_tokens, given)
    )


def _frozen(
    streams: Sequence[Stream],
    costs: Sequence[CostTable],
    mode: str,
    lengths: Lengths,
    tree_tokens: int,
    given: Mapping[Lengths, FrozenTable],
) -> FrozenRow:
    """With the table `given` for these lengths; without any that of each half comes from the other half."""
    leader, follower = lengths
    values: dict[str, object] = {
        "cacheback.mode": mode,
        "cacheback.leader_tokens": leader,
        "cacheback.follower_tokens": follower,
        "gate.mode": "always",
    }
    if tree_tokens:
        values |= {
            "cacheback.tree": "paper",
            "cacheback.tree_tokens": tree_tokens,
            "cacheback.reserved_tokens": tree_tokens // 6,
        }
    settings = _settings("cacheback", **values)
    tallies = {cost.name: ReplayTally() for cost in costs}
    for half in (0, 1):
        frozen = given.get(lengths) or FrozenTable.build(
            [stream.out for stream in streams[1 - half :: 2]],
            leader_tokens=leader,
            follower_tokens=follower,
            leader_capacity=settings.cacheback.leader_capacity,
            follower_capacity=settings.cacheback.follower_capacity,
        )
        for cost in costs:
            tally = _replay(streams[half::2], settings, cost, NgramTables(), frozen=frozen)
            tallies[cost.name].add(tally)
    some = next(iter(tallies.values()))
    speeds = {name: tally.speed for name, tally in tallies.items()}
    return FrozenRow(mode, leader, follower, tree_tokens, some.tokens / some.steps, speeds)


# ---- poison


class PoisonRow(Struct, frozen=True):
    """One drafter with something learned that is always wrong. Speeds over plain decoding.

    `each` starts every answer with all of the poison; `once` lets it heal from one to the next.
    """

    drafter: str
    poison: str
    cost: str
    clean: float
    each: float
    once: float

    @property
    def key(self) -> tuple[str, str, str]:
        return self.drafter, self.poison, self.cost


class _WrongContinuations:
    """A learned table that is sure of what never comes."""

    def lookup(self, context: Sequence[int]) -> Sequence[GramRow]:
        return [
            GramRow(order, 1000.0, ((_WRONG + order, 0.9),)) for order in range(min(4, len(context)), -1, -1)
        ]


Parts = dict[str, object]


def poison(streams: Sequence[Stream], costs: Sequence[CostTable]) -> list[BenchPiece[PoisonRow]]:
    """Each drafter that something outlives: with nothing learned, and with all of it wrong."""
    mod, auto = _settings("ngram-mod"), _settings("auto")
    slots = np.arange(mod.ngram_mod.slots, dtype=np.uint32)
    full = Entries(slots, np.full_like(slots, _WRONG), np.zeros(slots.size, np.uint8))

    def table() -> Parts:
        tables = NgramTables()
        tables.table(_FAMILY, mod.ngram_mod.n, mod.ngram_mod.slots).restore(full)
        return {"tables": tables}

    poisons: tuple[tuple[Settings, str, Callable[[], Parts]], ...] = (
        (mod, "every slot of its table", table),
        (auto, "every slot of the n-gram table", table),
        (auto, "a calibration that trusts everything", _trusting),
        (auto, "a learned table that is sure of what never comes", _wrong_continuations),
    )
    return [
        BenchPiece(
            (settings.drafting.drafter, name, cost.name),
            partial(_poisoned, streams, settings, name, cost, given),
        )
        for cost in costs
        for settings, name, given in poisons
    ]


def _poisoned(
    streams: Sequence[Stream], settings: Settings, name: str, cost: CostTable, given: Callable[[], Parts]
) -> PoisonRow:
    return PoisonRow(
        settings.drafting.drafter,
        name,
        cost.name,
        _all(streams, settings, cost, dict),
        _all(streams, settings, cost, given),
        _all(streams, settings, cost, given, once=True),
    )


def _trusting() -> Parts:
    """A calibration that saw every guess come, expected or not."""
    calibration = Calibration()
    state = calibration.state()
    state[:-1:3], state[1:-1:3], state[2:-1:3] = 60.0, 1.0, 60.0
    calibration.restore(state)
    return {"calibration": calibration}


def _wrong_continuations() -> Parts:
    return {"continuations": _WrongContinuations()}


def _all(
    streams: Sequence[Stream],
    settings: Settings,
    cost: CostTable,
    given: Callable[[], Parts],
    *,
    once: bool = False,
) -> float:
    """The speed over all streams, with what is given to each, or to the first and kept."""
    total, kept = ReplayTally(), given()
    for stream in streams:
        parts = kept if once else given()
        total.add(_one(stream, settings, cost, **{"tables": NgramTables(), **parts}))
    return total.speed


# ---- inside


def _settings(drafter: str, **values: object) -> Settings:
    return assign_all(Settings(), [("drafting.drafter", drafter), *values.items()])


def _replay(
    streams: Sequence[Stream],
    settings: Settings,
    cost: CostTable,
    tables: NgramTables,
    frozen: FrozenTable | None = None,
) -> ReplayTally:
    """Every stream as one request, with shared tables."""
    total = ReplayTally()
    for stream in streams:
        total.add(_one(stream, settings, cost, tables=tables, frozen=frozen))
    return total


def _one(stream: Stream, settings: Settings, cost: CostTable, **parts: object) -> ReplayTally:
    spec = drafter_spec(settings.drafting.drafter)
    resources = Resources(_CONTEXT, _FAMILY, trees=spec.trees, **parts)  # type: ignore[arg-type]
    planner = Planner(cost.cost) if spec.planned(settings) else None
    return replay_stream(spec.build(settings, resources), stream, cost.cost, settings.gate, planner)
