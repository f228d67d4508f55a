"""Limits of Metal's command buffers that a trial found, kept for later processes."""

from __future__ import annotations

import importlib.metadata

from msgspec import Struct

from core.system.files import load_json, save_json
from core.system.macos import sysctl, system_build
from core.system.paths import cache_dir


class BufferLimits(Struct, frozen=True):
    """Operations and megabytes after which MLX ends a command buffer; 0: MLX's own for the chip."""

    operations: int = 0
    megabytes: int = 0

    @property
    def environment(self) -> dict[str, str]:
        """The variables that MLX reads once, when it is loaded."""
        if not self.operations:
            return {}
        return {
            "MLX_MAX_OPS_PER_BUFFER": str(self.operations),
            "MLX_MAX_MB_PER_BUFFER": str(self.megabytes),
        }


class _Saved(Struct, frozen=True):
    """The limits that a trial (`core.machine.buffers`) found on the machine `key`."""

    key: str
    limits: BufferLimits


def _key() -> str:
    chip = sysctl("machdep.cpu.brand_string")
    return f"{chip} {system_build()} mlx {importlib.metadata.version('mlx')}"


def save_limits(limits: BufferLimits) -> None:
    """Keep limits for the processes that are started later."""
    save_json(cache_dir() / "metal-buffers.json", _Saved(_key(), limits))


def load_limits() -> BufferLimits:
    """The limits of the latest trial on this chip, system and mlx version; MLX's own without one."""
    saved = load_json(cache_dir() / "metal-buffers.json", _Saved)
    return saved.limits if saved is not None and saved.key == _key() else BufferLimits()


def mlx_environment() -> dict[str, str]:
    """Variables that MLX reads once. M5 otherwise multiplies float32 with 11 bits (mlx#4411)."""
    return {"MLX_ENABLE_TF32": "0", **load_limits().environment}
