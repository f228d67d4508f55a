"""Suggested: a few models that are worth downloading, with what each would need of this machine.

One tokenizer family in many sizes, so that the smallest drafts for all others. Shapes are those of
the models' own configs; sizes on the disk are worked out from them (4 bits in groups of 64 take 4.5
bits a parameter), so they are near and not exact. Nothing here asks the hub.
"""

from __future__ import annotations

from msgspec import Struct

from core.events import ModelEntry
from core.models.library.need import Machine, need_of

_BITS_A_PARAMETER = 4.5
_CONTEXT_TOKENS = 40_960


class _Shape(Struct, frozen=True):
    """One size of Qwen3. `parameters` in millions."""

    name: str
    parameters: int
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    inner: int


_QWEN3 = (
    _Shape("0.6B", 596, 28, 1024, 16, 8, 3072),
    _Shape("1.7B", 1_721, 28, 2048, 16, 8, 6144),
    _Shape("4B", 4_022, 36, 2560, 32, 8, 9728),
    _Shape("8B", 8_191, 36, 4096, 32, 8, 12288),
    _Shape("14B", 14_768, 40, 5120, 40, 8, 17408),
    _Shape("30B-A3B", 30_532, 48, 2048, 32, 4, 6144),
    _Shape("32B", 32_762, 64, 5120, 64, 8, 25600),
)


def suggested(machine: Machine) -> tuple[ModelEntry, ...]:
    """From the smallest to the largest; `reference` is the hub name, there is no path."""
    return tuple(_entry(shape, machine) for shape in _QWEN3)


def _entry(shape: _Shape, machine: Machine) -> ModelEntry:
    config = {
        "num_hidden_layers": shape.layers,
        "hidden_size": shape.hidden,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": 128,
        "intermediate_size": shape.inner,
    }
    parameters = shape.parameters * 1_000_000
    size_bytes = int(parameters * _BITS_A_PARAMETER / 8)
    return ModelEntry(
        f"mlx-community/Qwen3-{shape.name}-4bit",
        f"Qwen3 {shape.name.replace('-', ' ')}",
        "download",
        "",
        "qwen3_moe" if "A3B" in shape.name else "qwen3",
        family_name="Qwen3",
        parameters=parameters,
        disk_bytes=size_bytes,
        bits=4,
        group_size=64,
        dtype="bfloat16",
        context_tokens=_CONTEXT_TOKENS,
        layers=shape.layers,
        need=need_of(config, parameters, size_bytes, machine),
    )
