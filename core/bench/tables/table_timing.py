"""What saving and loading 100,000 entries takes, in a folder of its own."""

from __future__ import annotations

import random
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median

from msgspec import Struct

from core.bench.pieces import BenchPiece
from core.bench.tables.table_replay import fill
from core.settings import Settings
from core.settings.drafting import NgramMod
from core.tables.folder import TableFolder
from core.tables.memory import TableMemory

_FAMILY = "0" * 64
_ENTRIES = 100_000
_REPEATS = 7
SIZES = (2**18, 2**20, NgramMod().slots)


class TimingRow(Struct, frozen=True):
    """100,000 entries in a table of that size, medians. `snapshot_ms` is all that the engine waits for."""

    slots: int
    entries: int
    size_bytes: int
    snapshot_ms: float
    save_ms: float
    load_ms: float

    @property
    def key(self) -> tuple[int]:
        return (self.slots,)


def timings() -> list[BenchPiece[TimingRow]]:
    """Every size."""
    return [BenchPiece((slots,), partial(_timing, slots)) for slots in SIZES]


def _timing(slots: int) -> TimingRow:
    """Save and load a table of that many slots, a few times over."""
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
            memory.answer_finished(Settings())
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
