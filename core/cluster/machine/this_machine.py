"""What this machine is: versions, chip, memory, what MLX has here."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

from core.cluster.machine.digest import model_digest
from core.cluster.messages import Seen
from core.errors import ModelError
from core.models.library.places import find
from core.models.starter import STARTER, ensure_starter


def seen(busy: bool = False) -> Seen:
    """Without a model."""
    from core.cluster.machine.joining import backends
    from core.models.runtime.memory import machine

    here = machine()
    return Seen(
        version("draftlight"),
        version("mlx"),
        version("mlx-lm"),
        chip(),
        os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        here.limit_bytes,
        backends(),
        here.expands,
        busy,
    )


def folder_of(model: str, folder: str = "") -> Path:
    """Where `model` is here, or `folder` if that is given. Raises `ModelError`."""
    if folder:
        return Path(folder).expanduser()
    if model == STARTER:
        return ensure_starter(lambda stage, fraction: None)
    if found := find(model):
        return found
    raise ModelError(
        f"It has no model “{model}”.",
        f"Copy the model's folder there, or run: draftlight models download {model}",
    )


def digest_of(model: str, folder: str = "") -> str:
    """Of the model's files here. Raises `ModelError`."""
    return model_digest(folder_of(model, folder))


def chip() -> str:
    """Name of the processor."""
    if platform.system() == "Darwin":
        found = subprocess.run(
            ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"],
            capture_output=True,
            text=True,
            check=False,
        )
        return found.stdout.strip() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
