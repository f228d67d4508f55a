"""Wired memory, with the system calls of a Mac recorded, and the memory that is left on this machine."""

from __future__ import annotations

import pytest

from core.models import memory


def test_the_limit_is_set_for_an_answer_and_restored_also_after_an_error() -> None:
    limits: list[int] = []

    def set_limit(size: int) -> int:
        limits.append(size)
        return 7

    with memory.wired(lambda: 1000, set_limit):
        assert limits == [1000]
    assert limits == [1000, 7]
    with pytest.raises(ValueError, match="stop"), memory.wired(lambda: 1000, set_limit):
        raise ValueError("stop")
    assert limits == [1000, 7] * 2


def test_nothing_is_wired_where_the_system_cannot() -> None:
    limits: list[int] = []

    def refuse(size: int) -> int:
        limits.append(size)
        raise RuntimeError("requires macOS 15")

    with memory.wired(lambda: 0, refuse):
        pass
    assert limits == []
    with memory.wired(lambda: 1000, refuse):
        pass
    assert limits == [1000]
    with memory.wired():
        assert memory.used_bytes() > 0


def test_what_is_left_is_within_the_limit() -> None:
    left = memory.left_bytes()
    assert 0 < left <= memory.limit_bytes() - memory.used_bytes() + (64 << 20)
