"""Memory used by the process, and its limit. A separate module, because it imports MLX at once."""

from __future__ import annotations

import os
from pathlib import Path

import mlx.core as mx

from core.models.library.config import Machine


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
    if mx.default_device() == mx.gpu:
        size = mx.device_info().get("max_recommended_working_set_size", 0)
        if size:
            return int(size)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def machine() -> Machine:
    """The machine that models must fit."""
    return Machine(limit_bytes(), mx.default_device() == mx.cpu)


def is_exhausted(error: BaseException) -> bool:
    """Whether `error` means that MLX or Python ran out of memory; MLX reports it only in the message."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or "malloc" in text or "out of memory" in text
