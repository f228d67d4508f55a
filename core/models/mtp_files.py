"""The tensors of a model's MTP head, found by name in its files. No MLX.

A head predicts the token after the next one (multi-token prediction). Its tensors are in the model's own
files under the names of the published repositories, or in a file such as `mtp.safetensors` beside them,
there also without the prefix. mlx-lm drops or ignores them. A config can declare a head whose tensors were
left out, so only tensors count.

Names here are `embedding_norm`, `hidden_norm`, `projection`, `norm`, and `block.` followed by the name of a
tensor in one of the model's own blocks. Copies of the embedding and the output layer are left out: a head
shares those of its model. Of several heads the first one counts. Sources: the repositories of Qwen3-Next,
Qwen3.5, DeepSeek-V3, GLM-4.5 and MiMo-7B.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from core.errors import ModelError
from core.models.config import text_config
from core.models.json_files import read_object


class _Names(Struct, frozen=True):
    """Where a model type keeps its head: `prefix` (a pattern; `{}` is the number of layers), the names of the
    parts, and the prefix of the block's tensors. `left_out`: tensors that the model has itself.
    """

    prefix: str
    embedding_norm: str
    hidden_norm: str
    projection: str
    norm: str
    block: str = ""
    left_out: tuple[str, ...] = ()


_QWEN = _Names(r"mtp", "pre_fc_norm_embedding", "pre_fc_norm_hidden", "fc", "norm", "layers.0.")
_DEEPSEEK = _Names(
    r"layers\.{}",
    "enorm",
    "hnorm",
    "eh_proj",
    "shared_head.norm",
    left_out=("embed_tokens.", "shared_head.head."),
)
_MIMO = _Names(r"mtp_layers\.0", "token_layernorm", "hidden_layernorm", "input_proj", "final_layernorm")
_TYPES = {
    "qwen3_next": _QWEN,
    "qwen3_5": _QWEN,
    "qwen3_5_moe": _QWEN,
    "qwen3_5_text": _QWEN,
    "qwen3_5_moe_text": _QWEN,
    "deepseek_v3": _DEEPSEEK,
    "glm4_moe": _DEEPSEEK,
    "mimo": _MIMO,
}
# Besides the block, without which there is no head.
PARTS = ("embedding_norm", "hidden_norm", "projection", "norm")


class HeadTensor(Struct, frozen=True):
    """A tensor of the head: `name` here, and `stored` in `file`."""

    name: str
    file: Path
    stored: str
    size_bytes: int


def head_tensors(folder: Path, config: dict[str, Any]) -> tuple[HeadTensor, ...]:
    """The tensors of the head of the model in `folder`; empty if there is none, or not a whole one.

    Raises `ModelError` if a file's header is damaged.
    """
    names = _TYPES.get(str(config.get("model_type")))
    return () if names is None else _tensors(sorted(folder.glob("*.safetensors")), names, config)


def _tensors(files: Sequence[Path], names: _Names, config: dict[str, Any]) -> tuple[HeadTensor, ...]:
    from core.models.folder import read_header

    given = text_config(config).get("num_hidden_layers")
    layers = int(given) if isinstance(given, int) else 0
    found: dict[str, HeadTensor] = {}
    for file in files:
        for tensor in read_header(file):
            name = _own_name(tensor.name, names, layers, separate="mtp" in file.stem.lower())
            if name:
                found.setdefault(name, HeadTensor(name, file, tensor.name, tensor.size_bytes))
    stems = {name.rpartition(".")[0] for name in found}
    whole = all(part in stems for part in PARTS) and any(stem.startswith("block.") for stem in stems)
    return tuple(found.values()) if whole else ()


def head_bytes(folder: Path) -> int:
    """Bytes of the tensors of the head in `folder`; 0 without a head or with damaged files."""
    try:
        config = read_object(folder / "config.json")
        return sum(tensor.size_bytes for tensor in head_tensors(folder, config))
    except (ModelError, OSError, ValueError):
        return 0


def _own_name(stored: str, names: _Names, layers: int, *, separate: bool) -> str:
    """The name here of the tensor `stored`; empty if it is not one of the head. `separate`: in a file of its
    own, where the prefix may be missing.
    """
    inside = re.search(rf"(?:^|\.){names.prefix.replace('{}', str(layers))}\.(.+)$", stored)
    if inside is None and not separate:
        return ""
    name = inside[1] if inside else stored
    if name.startswith(names.left_out):
        return ""
    for part in PARTS:
        own = f"{getattr(names, part)}."
        if name.startswith(own):
            return f"{part}.{name.removeprefix(own)}"
    return f"block.{name.removeprefix(names.block)}" if name.startswith(names.block) else ""
