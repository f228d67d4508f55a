"""Memory used by the process, and its limit. A separate module, because it imports MLX at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import mlx.core as mx

from core.models.config import Machine

_MEMINFO = Path("/proc/meminfo")


def used_bytes() -> int:
    """On Metal, MLX's memory; on a CPU, the process's resident memory."""
    if mx.default_device() == mx.gpu:
        return int(mx.get_active_memory() + mx.get_cache_memory())
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return int(mx.get_active_memory())


def limit_bytes() -> int:
    """On Metal, the recommended working set; on a CPU, the machine's memory."""
    if mx.default_device() == mx.gpu and (size := recommended_bytes()):
        return size
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def left_bytes() -> int:
    """Memory that this process may still allocate, without what MLX caches for reuse.

    On Metal, what the process leaves of the recommended working set; on a CPU, what the system has available
    without swapping.
    """
    if mx.default_device() == mx.gpu:
        mx.clear_cache()
    left = limit_bytes() - used_bytes()
    if mx.default_device() != mx.gpu and _MEMINFO.exists():
        lines = _MEMINFO.read_text(encoding="ascii").splitlines()
        available = (int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
        left = min(left, *available)
    return left


def recommended_bytes() -> int:
    """The recommended working set of the GPU; 0 without Metal."""
    return int(mx.device_info().get("max_recommended_working_set_size", 0))


@contextmanager
def wired(
    recommended: Callable[[], int] = recommended_bytes, set_limit: Callable[[int], int] = mx.set_wired_limit
) -> Iterator[None]:
    """Keeps MLX's memory resident, up to the recommended working set, while an answer is computed.

    As `mlx_lm.generate.wired_limit` does (mlx-lm 0.32): without it macOS may compress or evict weights
    between two steps. No effect without Metal, or where the system does not support it (before macOS 15).
    """
    size = recommended()
    try:
        before = set_limit(size) if size else None
    except (RuntimeError, ValueError):
        before = None
    if before is None:
        yield
        return
    try:
        yield
    finally:
        mx.synchronize()  # the limit must not change while an evaluation runs
        set_limit(before)


def machine() -> Machine:
    """The machine that models must fit."""
    return Machine(limit_bytes(), mx.default_device() == mx.cpu)


def is_exhausted(error: BaseException) -> bool:
    """Whether `error` means that MLX or Python ran out of memory; MLX reports it only in the message."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or "malloc" in text or "out of memory" in text
