"""Copies of a model folder that are other models of its family: fewer layers, or coarser weights.

They exist so that what two models do together runs for real where no second one is at hand. Untrained
for it, a copy with fewer layers says other things; one with coarser weights says nearly the same, as
people's 4-bit and 8-bit copies of one model do.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import mlx.core as mx

# Weights that share a scale: mlx-lm's own choice.
_GROUP = 64
_LAYER = re.compile(r"\.layers\.(\d+)\.")


def truncated_copy(folder: Path, layers: int, target: Path) -> Path:
    """Write the copy into `target` and return it; the tokenizer's files are copied as they are."""
    return _copy(folder, list(range(layers)), target, f"first {layers} layers")


def without_layers(folder: Path, gone: set[int], target: Path) -> Path:
    """Like `truncated_copy`, with all layers but those `gone`; it says other things, but makes sense."""
    count = json.loads((folder / "config.json").read_text(encoding="utf-8"))["num_hidden_layers"]
    kept = [layer for layer in range(count) if layer not in gone]
    return _copy(folder, kept, target, f"without layers {', '.join(map(str, sorted(gone)))}")


def rounded_copy(folder: Path, bits: int, target: Path) -> Path:
    """Like `truncated_copy`, with every layer, and matrices as if stored in `bits` bits a weight."""

    def rounded(weight: mx.array) -> mx.array:
        if weight.ndim != 2 or weight.shape[-1] % _GROUP:
            return weight
        packed = mx.quantize(weight, _GROUP, bits)
        return mx.dequantize(*packed, _GROUP, bits).astype(weight.dtype)

    count = json.loads((folder / "config.json").read_text(encoding="utf-8"))["num_hidden_layers"]
    return _copy(folder, list(range(count)), target, f"{bits} bits a weight", rounded)


def _copy(
    folder: Path,
    kept: list[int],
    target: Path,
    name: str,
    change: Callable[[mx.array], mx.array] = lambda weight: weight,
) -> Path:
    places = {layer: place for place, layer in enumerate(kept)}
    target.mkdir(parents=True, exist_ok=True)
    weights: dict[str, mx.array] = {}
    for path in sorted(folder.glob("model*.safetensors")):
        loaded = mx.load(str(path))
        assert isinstance(loaded, dict)
        weights |= {
            _LAYER.sub(lambda found: f".layers.{places[int(found[1])]}.", key): change(value)
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
