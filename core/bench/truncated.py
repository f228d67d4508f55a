"""Copies of a model folder that are other models of its family: fewer layers, or coarser weights.

They exist so that what two models do together runs for real where no second one is at hand. Untrained
for it, a copy with fewer layers says other things; one with coarser weights says nearly the same, as
people's 4-bit and 8-bit copies of one model do.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import mlx.core as mx

# Weights that share a scale: mlx-lm's own choice.
_GROUP = 64
_LAYER = re.compile(r"\.layers\.(\d+)\.")


def truncated_copy(folder: Path, layers: int, target: Path) -> Path:
    """Write the copy into `target` and return it; the tokenizer's files are copied as they are."""
    return _copy(folder, list(range(layers)), target, f"first {layers} layers")


def without_layers(folder: Path, gone: set[int], target: Path) -> Path:
    """Like `truncated_copy`, with all layers but those `gone`; it says other things, but makes sense."""
    count = _config(folder)["num_hidden_layers"]
    kept = [layer for layer in range(count) if layer not in gone]
    return _copy(folder, kept, target, f"without layers {', '.join(map(str, sorted(gone)))}")


def rounded_copy(folder: Path, bits: int, target: Path) -> Path:
    """Like `truncated_copy`, with every layer, and matrices as if stored in `bits` bits a weight."""
    config = _config(folder)
    stored = config.pop("quantization", None) or config.pop("quantization_config", None) or {}
    weights = _weights(folder)
    dense = {}
    for key, weight in weights.items():
        stem = key.removesuffix(".weight")
        if key.endswith((".scales", ".biases")):
            continue
        if f"{stem}.scales" in weights:
            scales, biases = weights[f"{stem}.scales"], weights[f"{stem}.biases"]
            group = stored["group_size"]
            # Some modules may have other bits than the rest: what a packed row holds says how many.
            packed_bits = weight.shape[-1] * 32 // (scales.shape[-1] * group)
            weight = mx.dequantize(weight, scales, biases, group, packed_bits)
        if weight.ndim == 2 and weight.shape[-1] % _GROUP == 0:
            packed = mx.quantize(weight, _GROUP, bits)
            weight = mx.dequantize(*packed, _GROUP, bits).astype(weight.dtype)
        dense[key] = weight
    return _written(folder, target, dense, config | {"draftlight_name": f"{bits} bits a weight"})


def _copy(folder: Path, kept: list[int], target: Path, name: str) -> Path:
    places = {layer: place for place, layer in enumerate(kept)}
    weights = {
        _LAYER.sub(lambda found: f".layers.{places[int(found[1])]}.", key): weight
        for key, weight in _weights(folder).items()
        if _layer(key) in (*kept, -1)
    }
    changes = {"num_hidden_layers": len(kept), "draftlight_name": name}
    return _written(folder, target, weights, _config(folder) | changes)


def _written(folder: Path, target: Path, weights: dict[str, mx.array], config: dict[str, Any]) -> Path:
    target.mkdir(parents=True, exist_ok=True)
    mx.save_safetensors(str(target / "model.safetensors"), weights, metadata={"format": "mlx"})
    (target / "config.json").write_text(json.dumps(config), encoding="utf-8")
    for path in folder.iterdir():
        if path.name.startswith(("tokenizer", "special_tokens", "vocab", "merges")):
            shutil.copy(path, target / path.name)
    return target


def _config(folder: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return config


def _weights(folder: Path) -> dict[str, mx.array]:
    """Every array of the folder, by name."""
    weights: dict[str, mx.array] = {}
    for path in sorted(folder.glob("model*.safetensors")):
        loaded = mx.load(str(path))
        assert isinstance(loaded, dict)
        weights |= loaded
    return weights


def _layer(name: str) -> int:
    found = _LAYER.search(name)
    return int(found.group(1)) if found else -1
