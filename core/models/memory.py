"""Memory used by the process, and its limit. A separate module, because it imports MLX at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import mlx.core as mx

from core.folders.config import Machine
from core.system.macos import footprint_bytes
from core.system.metal import Fault, fault_of

_MEMINFO = Path("/proc/meminfo")


def used_bytes() -> int:
    """This process's memory, with its tables and caches; at least what MLX holds, which the system may not
    count.
    """
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return max(footprint_bytes(), mlx_bytes())
    resident_bytes = int(statm.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return max(resident_bytes, mlx_bytes())


def mlx_bytes() -> int:
    """MLX's memory, with the freed buffers that it keeps."""
    return int(mx.get_active_memory() + mx.get_cache_memory())


def limit_bytes() -> int:
    """On Metal, the recommended working set; on a CPU, the machine's memory."""
    if on_gpu() and (size := recommended_bytes()):
        return size
    return physical_bytes()


def physical_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def on_gpu() -> bool:
    return bool(mx.default_device() == mx.gpu)


def left_bytes() -> int:
    """Memory that this process may still allocate, without what MLX caches for reuse.

    On Metal, what MLX leaves of the recommended working set, which is for Metal alone; on a CPU, what the
    system has available without swapping.
    """
    if on_gpu():
        mx.clear_cache()
        return limit_bytes() - mlx_bytes()
    left = limit_bytes() - used_bytes()
    if _MEMINFO.exists():
        lines = _MEMINFO.read_text(encoding="ascii").splitlines()
        available = (int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
        left = min(left, *available)
    return left


def recommended_bytes() -> int:
    """The recommended working set of the GPU; 0 without Metal."""
    return int(mx.device_info().get("max_recommended_working_set_size", 0))


_WIRED_SHARE = 0.65  # of the machine's memory, at most: near the recommended set macOS panicked (mlx#3186)
_CACHE_SHARE = 0.125  # of the recommended set: freed buffers that MLX keeps


@contextmanager
def wired(
    need_bytes: int,
    recommended: Callable[[], int] = recommended_bytes,
    set_limit: Callable[[int], int] = mx.set_wired_limit,
) -> Iterator[None]:
    """Keeps `need_bytes` of MLX's memory resident while an answer is computed, or less to leave a reserve.

    Without it macOS may evict weights between two steps. No effect without Metal, or before macOS 15.
    """
    size = min(need_bytes, recommended(), int(_WIRED_SHARE * physical_bytes()))
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
        try:
            mx.synchronize()  # the limit must not change while an evaluation runs
        finally:
            set_limit(before)


def limit_cache() -> None:
    """Bound the freed buffers that MLX keeps on Metal; its default is as large as its memory limit."""
    if size := recommended_bytes():
        mx.set_cache_limit(int(_CACHE_SHARE * size))


def machine() -> Machine:
    """The machine that models must fit."""
    return Machine(limit_bytes(), mx.default_device() == mx.cpu)


def fault(error: BaseException) -> Fault:
    """The fault of the machine that `error` reports, such as too little memory; empty for any other error."""
    if isinstance(error, MemoryError):
        return "memory"
    return fault_of(str(error)) if isinstance(error, RuntimeError) else ""
