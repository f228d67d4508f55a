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
    return _copy(folder, list(range(layers)), target, f"first {layers} layers")


def without_layers(folder: Path, gone: set[int], target: Path) -> Path:
    """Like `truncated_copy`, with all layers but those `gone`; it says other things, but makes sense."""
    count = json.loads((folder / "config.json").read_text(encoding="utf-8"))["num_hidden_layers"]
    kept = [layer for layer in range(count) if layer not in gone]
    return _copy(folder, kept, target, f"without layers {', '.join(map(str, sorted(gone)))}")


def _copy(folder: Path, kept: list[int], target: Path, name: str) -> Path:
    places = {layer: place for place, layer in enumerate(kept)}
    target.mkdir(parents=True, exist_ok=True)
    weights: dict[str, mx.array] = {}
    for path in sorted(folder.glob("model*.safetensors")):
        loaded = mx.load(str(path))
        assert isinstance(loaded, dict)
        weights |= {
            _LAYER.sub(lambda found: f".layers.{places[int(found[1])]}.", key): value
            for key, value in loaded.items()
            if _layer(key) in (*kept, -1)
        }
    mx.save_safetensors(str(target / "model.safetensors"), weights, metadata={"format": "mlx"})
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {"num_hidden_layers": len(kept), "draftlight_name": name}
    (target / "config.json").write_text(json.dumps(config), encoding="utf-8")
    for path in folder.iterdir():
        if path.name.startswith(("tokenizer", "special_tokens", "vocab", "merges")):
            shutil.copy(path, target / path.name)
    return target


def _layer(name: str) -> int:
    found = _LAYER.search(name)
    return int(found.group(1)) if found else -1
