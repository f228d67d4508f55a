"""A copy of a model folder with its first layers only: a draft model of the same family.

Untrained for it, such a copy guesses badly; it exists so that the two-model path runs for real
where no second model is at hand.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import mlx.core as mx

_LAYER = re.compile(r"\.layers\.(\d+)\.")


def truncated_copy(folder: Path, layers: int, target: Path) -> Path:
    """Write the copy into `target` and return it; the tokenizer's files are copied as they are."""
    target.mkdir(parents=True, exist_ok=True)
    weights: dict[str, mx.array] = {}
    for path in sorted(folder.glob("model*.safetensors")):
        loaded = mx.load(str(path))
        assert isinstance(loaded, dict)
        weights |= {name: value for name, value in loaded.items() if _layer(name) < layers}
    mx.save_safetensors(str(target / "model.safetensors"), weights, metadata={"format": "mlx"})
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {"num_hidden_layers": layers, "draftlight_name": f"first {layers} layers"}
    (target / "config.json").write_text(json.dumps(config), encoding="utf-8")
    for path in folder.iterdir():
        if path.name.startswith(("tokenizer", "special_tokens", "vocab", "merges")):
            shutil.copy(path, target / path.name)
    return target


def _layer(name: str) -> int:
    found = _LAYER.search(name)
    return int(found.group(1)) if found else -1
