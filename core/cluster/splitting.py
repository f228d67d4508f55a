"""How a model is split over machines, and whether it can be: what its type has, and what divides.

    tensor    each layer's heads and inner rows over all machines (mlx-lm's `shard`)
    pipeline  some layers on each (mlx-lm's `pipeline`); for types whose tensors cannot be split

mlx-lm takes heads that do not divide and fails at the first token, so they are counted here.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from core.errors import ClusterError
from core.models.library.model_types import text_config
from core.models.library.need import layer_kinds

# What has to divide by the number of machines, as configs call it, and in words.
_DIVIDES = (
    ("num_attention_heads", "attention heads"),
    ("num_key_value_heads", "key/value heads"),
    ("hidden_size", "hidden dimensions"),
    ("intermediate_size", "inner dimensions"),
    ("linear_num_key_heads", "linear key heads"),
    ("linear_num_value_heads", "linear value heads"),
)
_MOST_MACHINES = 16


def abilities(config: dict[str, Any]) -> tuple[str, ...]:
    """Of `tensor` and `pipeline` those that mlx-lm has for this type of model."""
    from mlx_lm.utils import _get_classes

    try:
        model_class, _ = _get_classes(config)
    except ValueError:
        return ()
    module = importlib.import_module(model_class.__module__)
    parts = [each for each in vars(module).values() if isinstance(each, type) and issubclass(each, nn.Module)]
    pipeline = any(hasattr(each, "pipeline") for each in parts)
    return ("tensor",) * hasattr(model_class, "shard") + ("pipeline",) * pipeline


def why_not(split: str, config: dict[str, Any], size: int) -> str:
    """Why a model with that config cannot be split so over `size` machines; empty if it can."""
    name = str(config.get("model_type", "?"))
    has = abilities(config)
    if split not in has:
        other = f"; it can be split by {has[0]}" if has else ""
        return f"models of the type “{name}” cannot be split by {split}{other}"
    text = text_config(config)
    if split == "pipeline":
        kinds = layer_kinds(text)
        if len(kinds) < size:
            return f"it has {len(kinds)} layers for {size} machines"
        # What of a block is kept is decided on one machine, by the caches of its layers.
        if len({frozenset(stage) for stage in _stages(kinds, size)}) > 1:
            return (
                f"its {len(kinds)} layers are of several kinds, not all of which {size} machines would have"
            )
        return ""
    for key, words in _DIVIDES:
        count = text.get(key)
        if isinstance(count, int) and count % size:
            return f"it has {count:,} {words}, which do not divide by {size} machines{_instead(text)}"
    return ""


def _stages(kinds: Sequence[str], size: int) -> list[Sequence[str]]:
    """As mlx-lm's `pipeline` cuts them: the last layers on the first machine, more on the first ones."""
    base, extra = divmod(len(kinds), size)
    stages, end = [], len(kinds)
    for rank in range(size):
        start = end - base - (rank < extra)
        stages.append(kinds[start:end])
        end = start
    return stages


def _instead(text: dict[str, Any]) -> str:
    counts = [text[key] for key, _ in _DIVIDES if isinstance(text.get(key), int) and text[key]]
    sizes = [n for n in range(2, _MOST_MACHINES + 1) if all(count % n == 0 for count in counts)]
    return f" ({', '.join(map(str, sizes))} would do)" if sizes else ""


def choose(split: str, config: dict[str, Any], size: int) -> tuple[str, str]:
    """The split for `auto`, or the one that was asked for; and why not, empty if it can be done."""
    if split != "auto":
        return split, why_not(split, config, size)
    against = why_not("tensor", config, size)
    if against and not why_not("pipeline", config, size):
        return "pipeline", ""
    return "tensor", against


def split_model(model: nn.Module, group: mx.distributed.Group, split: str) -> None:
    """Leave of `model`, whose weights are not read yet, the part of this machine. Raises `ClusterError`."""
    try:
        if split == "pipeline":
            model.model.pipeline(group)
        else:
            model.shard(group)
    except Exception as error:  # whatever a model's code raises
        raise ClusterError(
            f"The model cannot be split by {split} ({type(error).__name__}: {error}).",
            "Choose another split, another number of machines or another model.",
        ) from error
