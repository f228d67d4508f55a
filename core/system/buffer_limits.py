"""Limits of Metal's command buffers that a trial found, kept for later processes."""

from __future__ import annotations

import importlib.metadata

from msgspec import Struct

from core.system.files import JsonStore
from core.system.macos import sysctl, system_build


class BufferLimits(Struct, frozen=True):
    """Operations and megabytes after which MLX ends a command buffer; 0: MLX's own for the chip."""

    operations: int = 0
    megabytes: int = 0

    @property
    def environment(self) -> dict[str, str]:
        """The variables that MLX reads once, when it is loaded."""
        if not self.operations:
            return {}
        operations, megabytes = str(self.operations), str(self.megabytes)
        return {"MLX_MAX_OPS_PER_BUFFER": operations, "MLX_MAX_MB_PER_BUFFER": megabytes}


class _Saved(Struct, frozen=True):
    """Limits that trials (`core.machine.buffers`) found on the machine `key`, by model type.

    A process reads its limits once, before it knows its model, so it takes those of `last`, the type that was
    loaded last.
    """

    key: str
    limits: dict[str, BufferLimits]
    last: str


def _key() -> str:
    chip = sysctl("machdep.cpu.brand_string")
    return f"{chip} {system_build()} mlx {importlib.metadata.version('mlx')}"


_STORE = JsonStore("metal-buffers", _Saved)


def _saved() -> _Saved:
    """The trials on this chip, system and mlx version."""
    return _STORE.load(_key()) or _Saved(_key(), {}, "")


def save_limits(model_type: str, limits: BufferLimits) -> None:
    """Keep limits for the processes that are started later."""
    _STORE.save(_Saved(_key(), {**_saved().limits, model_type: limits}, model_type))


def use_limits_of(model_type: str) -> None:
    """A model of this type was loaded: the next process takes its limits."""
    saved = _saved()
    if model_type in saved.limits and model_type != saved.last:
        _STORE.save(_Saved(saved.key, saved.limits, model_type))


def load_limits() -> BufferLimits:
    """The limits of the model type that was loaded or measured last; MLX's own if there is none."""
    saved = _saved()
    return saved.limits.get(saved.last, BufferLimits())


def mlx_environment() -> dict[str, str]:
    """Variables that MLX reads once. M5 otherwise multiplies float32 with 11 bits (mlx#4411)."""
    return {"MLX_ENABLE_TF32": "0", **load_limits().environment}
