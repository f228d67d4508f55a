"""Empty heads: a model whose heads do not divide by the number of processes, made to.

The starter has 9 heads and 3 key/value heads, so only three processes can share it as it is, and two cores
have two. With a further group of heads whose weights are all 0 it says the same: what they attend to is
multiplied by 0. It is for measuring only; nothing of this is in the product.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import mlx.core as mx

from core.errors import ModelError

_CONFIG, _WEIGHTS = "config.json", "model.safetensors"


def with_empty_heads(folder: Path, out: Path, size: int) -> int:
    """Write the model of `folder` to `out` with as many heads as `size` divides; how many were added.

    0: it divides as it is, and nothing is written. Raises `ModelError` for one that is not made like Llama.
    """
    config = json.loads((folder / _CONFIG).read_text())
    heads, groups = config.get("num_attention_heads"), config.get("num_key_value_heads")
    if not (isinstance(heads, int) and isinstance(groups, int)):
        raise ModelError("Its config names no number of heads.")
    wanted = -(-groups // size) * size
    if wanted == groups:
        return 0
    added = (wanted - groups) * (heads // groups)
    weights: dict[str, mx.array] = mx.load(str(folder / _WEIGHTS))  # type: ignore[assignment]
    grown = {name: _grown(name, each, heads + added, heads, wanted, groups) for name, each in weights.items()}
    if all(grown[name] is weights[name] for name in weights):
        raise ModelError("It has no layers with a self_attn like Llama's.")
    shutil.copytree(folder, out, ignore=shutil.ignore_patterns(_CONFIG, _WEIGHTS, "draftlight-manifest.json"))
    mx.save_safetensors(str(out / _WEIGHTS), grown, metadata={"format": "mlx"})
    config["head_dim"] = config.get("head_dim") or config["hidden_size"] // heads
    config |= {"num_attention_heads": heads + added, "num_key_value_heads": wanted}
    (out / _CONFIG).write_text(json.dumps(config))
    return added


def _grown(
    name: str, array: mx.array, heads: int, heads_before: int, groups: int, groups_before: int
) -> mx.array:
    """With zeros for the heads that are new, quantised or not: their scales and biases are 0, too."""
    part = name.rpartition(".self_attn.")[2] if ".self_attn." in name else ""
    axis, count, before = {
        "q_proj": (0, heads, heads_before),
        "k_proj": (0, groups, groups_before),
        "v_proj": (0, groups, groups_before),
        "o_proj": (1, heads, heads_before),
    }.get(part.partition(".")[0], (0, 1, 1))
    if count == before or axis >= array.ndim:
        return array
    shape = list(array.shape)
    if shape[axis] % before:
        raise ModelError(f"{name} has a shape of {array.shape}, which is not made of {before} heads.")
    shape[axis] = shape[axis] // before * (count - before)
    return mx.concatenate([array, mx.zeros(shape, array.dtype)], axis)
