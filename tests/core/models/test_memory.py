"""Wired memory, with the system calls of a Mac recorded, and the memory that is left on this machine."""

from __future__ import annotations

import ctypes
import gc
import sys

import mlx.core as mx
import numpy as np
import pytest

from core.drafting.ngram_mod import Entries, NgramTable
from core.models import memory


class Limits(list[int]):
    """`mx.set_wired_limit`, recorded; it returns the limit before, 7."""

    def set(self, size: int) -> int:
        self.append(size)
        return 7


@pytest.mark.parametrize(
    ("need", "recommended", "wired"),
    [(1000, 5000, 1000), (9000, 5000, 5000), (9000, 8000, 6500), (9, 0, None)],
)
def test_what_an_answer_needs_is_wired_and_a_reserve_is_left(
    monkeypatch: pytest.MonkeyPatch, need: int, recommended: int, wired: int | None
) -> None:
    monkeypatch.setattr(memory, "physical_bytes", lambda: 10_000)
    limits = Limits()
    with memory.wired(need, lambda: recommended, limits.set):
        assert limits == ([] if wired is None else [wired])
    assert limits == ([] if wired is None else [wired, 7])


def test_the_limit_is_restored_after_an_error_also_one_of_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits()

    def failed() -> None:
        raise RuntimeError("[METAL] Command buffer execution failed")

    with pytest.raises(ValueError, match="stop"), memory.wired(1000, lambda: 2000, limits.set):
        raise ValueError("stop")
    monkeypatch.setattr(mx, "synchronize", failed)
    with pytest.raises(RuntimeError, match="METAL"), memory.wired(1000, lambda: 2000, limits.set):
        pass
    assert limits == [1000, 7] * 2


def test_nothing_is_wired_where_the_system_cannot() -> None:
    limits: list[int] = []

    def refuse(size: int) -> int:
        limits.append(size)
        raise RuntimeError("requires macOS 15")

    with memory.wired(1000, lambda: 1000, refuse):
        pass
    assert limits == [1000]
    with memory.wired(1000):
        assert memory.used_bytes() > 0


def test_the_cache_of_freed_buffers_is_bounded_on_metal(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[int] = []
    monkeypatch.setattr(mx, "set_cache_limit", limits.append)
    memory.limit_cache()
    monkeypatch.setattr(memory, "recommended_bytes", lambda: 8000)
    memory.limit_cache()
    assert limits == [1000]


@pytest.mark.parametrize("metal", [False, True])
def test_tables_count_with_everything_else(monkeypatch: pytest.MonkeyPatch, metal: bool) -> None:
    monkeypatch.setattr(memory, "on_gpu", lambda: metal)
    gc.collect()
    if sys.platform == "linux":  # else the table may take what other tests have freed
        ctypes.CDLL(None).malloc_trim(0)
    before = memory.used_bytes()
    slots = np.arange(2**22, dtype=np.uint32)
    table = NgramTable(16, len(slots))
    table.restore(Entries(slots, slots % 1000, np.zeros(len(slots), np.uint8)))
    assert memory.used_bytes() - before >= 4 * table.used - 2**20
    kept = mx.zeros(2**24)
    mx.eval(kept)
    assert memory.used_bytes() >= kept.nbytes


def test_what_is_left_is_within_the_limit() -> None:
    left = memory.left_bytes()
    assert 0 < left <= memory.limit_bytes() - memory.used_bytes() + (64 << 20)
