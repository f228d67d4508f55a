"""`draftlight bench tables`: what tables give, how large they should be, what saving them costs.

Parts: `conversation` (the real model, cold against warm), and on recorded streams `sizes`,
`cacheback` and `poison`, which need no model and do not drift; `timing` measures saving and loading
100,000 entries. Tables are kept in folders of their own: nobody's are touched.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import msgspec
from msgspec import Struct

from core.bench.cost_table import cost_table
from core.bench.environment import Environment, describe
from core.bench.table_conversation import WarmRow, cold_and_warm, read_edits
from core.bench.table_replay import (
    FrozenRow,
    PoisonRow,
    SizeRow,
    fill,
    frozen_lengths,
    frozen_modes,
    poison,
    table_sizes,
)
from core.errors import RequestError
from core.rehearsal.streams import read_streams
from core.settings import Settings, assign_all
from core.settings.drafting import NgramMod
from core.tables.folder import TableFolder
from core.tables.memory import TableMemory

PARTS = ("conversation", "sizes", "cacheback", "poison", "timing")
_FAMILY = "0" * 64
_ENTRIES = 100_000
_REPEATS = 7


class TimingRow(Struct, frozen=True):
    """100,000 entries in a table of that size, medians. `snapshot_ms` is all that the engine waits for."""

    slots: int
    entries: int
    size_bytes: int
    snapshot_ms: float
    save_ms: float
    load_ms: float


class TableResults(Struct, frozen=True):
    """All of one run of the bench; parts that did not run are empty."""

    bench: str
    environment: Environment
    streams: str
    conversation: tuple[WarmRow, ...] = ()
    sizes: tuple[SizeRow, ...] = ()
    modes: tuple[FrozenRow, ...] = ()
    lengths: tuple[FrozenRow, ...] = ()
    poison: tuple[PoisonRow, ...] = ()
    timing: tuple[TimingRow, ...] = ()


def run(options: argparse.Namespace) -> int:
    """Measure and write `results.json` and `report.md`; status 1 if a warm answer differed."""
    parts = options.parts.split(",")
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise RequestError(f"There is no part called “{unknown[0]}”.", f"Choose from {', '.join(PARTS)}.")
    if options.streams is None and {"sizes", "cacheback", "poison"} & set(parts):
        raise RequestError("These parts replay recorded streams, and none were given.", "Add --streams F.")
    from core.models.runtime import prepare

    blas = prepare()
    streams = read_streams(options.streams) if options.streams else []
    costs = [cost_table("cpu"), cost_table("apple")]
    results = TableResults(
        "tables",
        describe(blas),
        options.streams.name if options.streams else "",
        tuple(_conversation(options)) if "conversation" in parts else (),
        tuple(table_sizes(streams, costs[0])) if "sizes" in parts else (),
        tuple(frozen_modes(streams, costs)) if "cacheback" in parts else (),
        tuple(frozen_lengths(streams, costs[:1])) if "cacheback" in parts else (),
        tuple(poison(streams, costs)) if "poison" in parts else (),
        tuple(_timing(slots) for slots in (2**18, 2**20, NgramMod().slots)) if "timing" in parts else (),
    )
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "results.json").write_bytes(msgspec.json.format(msgspec.json.encode(results)))
    report = write_report(results)
    (options.out / "report.md").write_text(report, encoding="utf-8")
    print(report)
    return 0 if all(row.equal for row in results.conversation) else 1


def _conversation(options: argparse.Namespace) -> Sequence[WarmRow]:
    from core.bench.truncated import without_layers
    from core.engine import Engine
    from core.models.loader import LoadedModel, load

    loaded = load(options.model)
    edits = read_edits()
    with tempfile.TemporaryDirectory() as scratch:
        # A middle layer less is a model that says other things and still makes sense.
        layer = loaded.info.layers // 2
        cousin = load(str(without_layers(Path(loaded.info.path), {layer}, Path(scratch) / "cousin")))

        def with_model(model: LoadedModel, memory: TableMemory) -> Engine:
            engine = Engine(memory)
            engine.use(model)
            return engine

        teachers = {
            "the same questions": (lambda memory: with_model(loaded, memory), edits.turns),
            "other questions on the file": (lambda memory: with_model(loaded, memory), edits.earlier),
            f"the same questions, by a copy without layer {layer}": (
                lambda memory: with_model(cousin, memory),
                edits.turns,
            ),
        }
        rows = []
        for drafter in options.drafters.split(","):
            settings = assign_all(
                Settings(), [("drafting.drafter", drafter), ("sampling.max_tokens", options.max_tokens)]
            )
            for row in cold_and_warm(
                lambda memory: with_model(loaded, memory),
                teachers,
                edits,
                settings,
                cost_table("cpu"),
                options.pairs,
            ):
                print(_warm_line(row), file=sys.stderr, flush=True)
                rows.append(row)
    return rows


def _timing(slots: int) -> TimingRow:
    with tempfile.TemporaryDirectory() as home:
        snapshots, saves, loads = [], [], []
        entries = size_bytes = 0
        for repeat in range(_REPEATS):
            memory = TableMemory(TableFolder(Path(home)))
            memory.open(_FAMILY, "Bench", 1 << 20, "bench")
            table = memory.tables.table(_FAMILY, NgramMod().n, slots)
            table.decay_at = 2.0
            rng = random.Random(repeat)
            while table.used < _ENTRIES:
                fill(table, 1000, rng, token=repeat)
            memory.learned(Settings())
            started = time.perf_counter()
            table.copy()
            snapshots.append(time.perf_counter() - started)
            done = memory.save()
            saves.append(done.took_s)
            entries = done.entries
            memory.close()
            fresh = TableMemory(TableFolder(Path(home)))
            started = time.perf_counter()
            fresh.open(_FAMILY, "Bench", 1 << 20, "bench")
            loads.append(time.perf_counter() - started)
            size_bytes = fresh.listing()[0][0].size_bytes
            fresh.reset(_FAMILY)
            fresh.close()
    snapshot_ms, save_ms, load_ms = (1000 * median(times) for times in (snapshots, saves, loads))
    return TimingRow(slots, entries, size_bytes, snapshot_ms, save_ms, load_ms)


# ---- the report


def write_report(results: TableResults) -> str:
    """The results as Markdown."""
    lines = ["# Tables", "", results.environment.line, ""]
    if results.conversation:
        lines += [
            "## Cold and warm: four edits of one file",
            "",
            "Turn 0 is the whole conversation. “cost” is the speed-up at the CPU's cost table.",
            "",
            "| drafter | table warmed by | turn | tokens | accepted cold | warm | tok/s cold | warm"
            " | speed-up | cost | output |",
            "|---|---|---|---|---|---|---|---|---|---|---|",
            *(_warm_line(row) for row in results.conversation),
            "",
        ]
    if results.sizes:
        lines += [
            "## Table size, ngram-mod at the CPU's cost table",
            "",
            f"{results.streams}: every answer given, tokens of other chats, every answer given again.",
            "",
            "| slots | other tokens | first time | again | accepted again | occupancy | overwrites |",
            "|---|---|---|---|---|---|---|",
        ]
        lines += [
            f"| 2^{row.slots.bit_length() - 1} | {row.other_tokens:,} | {row.first:.3f} | {row.again:.3f}"
            f" | {row.acceptance:.0%} | {row.occupancy:.2%} | {row.overwrites:,} |"
            for row in results.sizes
        ]
        lines += [""]
    for title, rows in (("Cacheback's tables", results.modes), ("LL × FL, both tables", results.lengths)):
        if rows:
            names = list(rows[0].speeds)
            lines += [f"## {title}", "", "Frozen tables of each half of the streams from the other half.", ""]
            lines += ["| tables | LL | FL | tree | mean a step | " + " | ".join(names) + " |"]
            lines += ["|---|---|---|---|---|" + "---|" * len(names)]
            lines += [
                f"| {row.mode} | {row.leader_tokens} | {row.follower_tokens} | {row.tree_tokens}"
                f" | {row.mean_per_step:.2f} | "
                + " | ".join(f"{row.speeds[name]:.3f}" for name in names)
                + " |"
                for row in rows
            ]
            lines += [""]
    if results.poison:
        lines += [
            "## Poison",
            "",
            "Speed over plain decoding: with nothing learned, with all of the poison in each answer, and with"
            " it in the first only.",
            "",
            "| drafter | always wrong | cost | clean | in each | at first |",
            "|---|---|---|---|---|---|",
        ]
        lines += [
            f"| {r.drafter} | {r.poison} | {r.cost} | {r.clean:.3f} | {r.each:.3f} | {r.once:.3f} |"
            for r in results.poison
        ]
        lines += [""]
    if results.timing:
        lines += ["## Saving and loading", ""]
        lines += ["| slots | entries | KiB | snapshot ms | save ms | load ms |", "|---|---|---|---|---|---|"]
        lines += [
            f"| 2^{r.slots.bit_length() - 1} | {r.entries:,} | {r.size_bytes / 1024:,.0f}"
            f" | {r.snapshot_ms:.1f} | {r.save_ms:.1f} | {r.load_ms:.1f} |"
            for r in results.timing
        ]
        lines += [""]
    return "\n".join(lines)


def _warm_line(row: WarmRow) -> str:
    return (
        f"| {row.drafter} | {row.warmed_by} | {row.turn} | {row.tokens}"
        f" | {row.cold_acceptance:.0%} ({row.cold_accepted})"
        f" | {row.warm_acceptance:.0%} ({row.warm_accepted}) | {row.cold_tokens_per_s:.1f}"
        f" | {row.warm_tokens_per_s:.1f} | {row.speed_up:.2f} | {row.steps_saved:.2f}"
        f" | {'equal' if row.equal else '**different**'} |"
    )
