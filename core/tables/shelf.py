"""Where a model's rehearsal is kept: its answers, and beside them the table made of those.

Nothing is created here.
"""

from __future__ import annotations

import re
from pathlib import Path

from core.paths import tables_dir

SUFFIX = ".grams.safetensors"


def rehearsal_paths(model: str) -> tuple[Path, Path]:
    """The file of the answers of the model of that name, and that of the table."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", model).strip(".-") or "model"
    folder = tables_dir() / "built"
    return folder / f"{name}.answers.jsonl", folder / f"{name}{SUFFIX}"
