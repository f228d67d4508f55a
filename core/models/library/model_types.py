"""Model types: which ones mlx-lm can load, and the values that a config leaves to its type's defaults.

A config.json omits what equals the defaults of its type: gemma-3-4b's names no context length, and
neither heads nor layers. The defaults are those of mlx-lm's ModelArgs, with which the model will run. For
the length of the context it is the larger of mlx-lm's and transformers' default: mlx-lm's is often only
the start of the rotary table.

They are read from resources/models/types.json, so that listing models loads neither library. After an
update of mlx-lm or transformers write it again:

    python -m core.models.library.model_types
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import pkgutil
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from core.system.paths import resources_dir

# Names of the same value in different types' configs.
CONTEXT_NAMES = ("max_position_embeddings", "max_seq_len", "n_positions", "model_max_length", "seq_length")
LAYER_NAMES = ("num_hidden_layers", "n_layers", "n_layer", "num_layers", "num_transformer_layers")
HEAD_NAMES = ("num_attention_heads", "n_heads", "n_head", "num_heads", "num_query_heads")
KV_HEAD_NAMES = ("num_key_value_heads", "num_kv_heads", "n_kv_heads")
HIDDEN_NAMES = ("hidden_size", "d_model", "n_embd", "model_dim", "hidden_dim")
INNER_NAMES = ("intermediate_size", "moe_intermediate_size")
WINDOW_NAMES = ("sliding_window", "attention_window_size", "sliding_window_size", "window_size")
STATE_NAMES = ("mamba_d_state", "ssm_state_size", "state_size", "mamba_state_dim")
_SYNONYMS = (CONTEXT_NAMES, LAYER_NAMES, HEAD_NAMES, KV_HEAD_NAMES, HIDDEN_NAMES, WINDOW_NAMES, STATE_NAMES)
_OTHER_NAMES = (
    "head_dim",
    "kv_lora_rank",
    "qk_rope_head_dim",
    "full_attention_interval",
    "attn_layer_period",
    "attn_layer_offset",
    "sliding_window_pattern",
    "layer_group_size",
    "linear_num_value_heads",
    "linear_key_head_dim",
    "linear_value_head_dim",
    "mamba_expand",
    "expand",
)
_NAMES = frozenset(name for names in (*_SYNONYMS, INNER_NAMES, _OTHER_NAMES) for name in names)


def is_supported(model_type: str) -> bool:
    """Whether mlx-lm has a module for the type."""
    return _module_of({"model_type": model_type}) in types_table()["defaults"]


def text_config(config: dict[str, Any]) -> dict[str, Any]:
    """The part of `config` about the language model, with its type's defaults for what is missing."""
    inner = config.get("text_config")
    inner = inner if isinstance(inner, dict) else {}
    given = {**config, **inner}
    for names in _SYNONYMS:
        if any(_is_number(given.get(name)) for name in names):
            given = dict.fromkeys(names) | given
    table = types_table()
    outer, kind = _module_of(config), _module_of(inner)
    if kind not in table["defaults"]:
        kind = table["text"].get(outer, outer)
    defaults = {**table["defaults"].get(kind, {}), **table["inner"].get(outer, {})}
    if not any(_is_number(given.get(name)) for name in CONTEXT_NAMES):
        contexts = [table["defaults"].get(each, {}).get(CONTEXT_NAMES[0], 0) for each in (kind, outer)]
        given[CONTEXT_NAMES[0]] = max(contexts) or None
    return {**defaults, **given}


def _module_of(config: dict[str, Any]) -> str:
    """The module of mlx-lm that loads `config`."""
    kind = str(config.get("model_type", ""))
    architectures = config.get("architectures")
    for kind_then, architecture, module in types_table()["architectures"]:
        if kind == kind_then and isinstance(architectures, list) and architecture in architectures:
            return str(module)
    return str(types_table()["aliases"].get(kind, kind))


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


@lru_cache(maxsize=1)
def types_table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(_path().read_text(encoding="utf-8"))
    return table


def _path() -> Path:
    return resources_dir() / "models" / "types.json"


def installed() -> dict[str, Any]:
    """The table as the installed mlx-lm and transformers have it; imports both."""
    import mlx_lm.models
    from mlx_lm.utils import MODEL_ARCHITECTURE_REMAPPING, MODEL_REMAPPING

    defaults: dict[str, dict[str, int]] = {}
    text: dict[str, str] = {}
    inner: dict[str, dict[str, int]] = {}
    for found in pkgutil.iter_modules(mlx_lm.models.__path__):
        try:
            module = importlib.import_module(f"mlx_lm.models.{found.name}")
        except SystemExit:  # olmo, without its package: the loader says so
            defaults[found.name] = {}
            continue
        if not hasattr(module, "Model"):
            continue
        own = text_args(module)
        defaults[found.name] = _defaults(own, found.name)
        if own is module.ModelArgs and "text_config" in inspect.signature(own).parameters:
            text[found.name] = _text_module(module)
            inner[found.name] = _inner(own)
    return {
        "aliases": dict(sorted(MODEL_REMAPPING.items())),
        "architectures": sorted([*key, module] for key, module in MODEL_ARCHITECTURE_REMAPPING.items()),
        "text": text,
        "inner": {name: values for name, values in inner.items() if values},
        "defaults": defaults,
    }


def text_args(module: ModuleType) -> Any:
    """The arguments of the language model: `ModelArgs`, or those of its `text_config`."""
    return next(
        (
            getattr(module, name)
            for name in ("TextArgs", "TextConfig", "TextModelArgs")
            if hasattr(module, name)
        ),
        module.ModelArgs,
    )


def _defaults(args: Any, name: str) -> dict[str, int]:
    fields: dict[str, Any] = {field.name: field.default for field in dataclasses.fields(args)}
    found = {key: int(value) for key, value in fields.items() if key in _NAMES and _is_number(value)}
    context = max((found.pop(each) for each in CONTEXT_NAMES if each in found), default=0)
    if context := max(context, _transformers_context(name)):
        found["max_position_embeddings"] = context
    return dict(sorted(found.items()))


def _transformers_context(name: str) -> int:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    try:
        config = CONFIG_MAPPING[name]().get_text_config()
    except Exception:  # types that it does not have, and those without defaults
        return 0
    value = getattr(config, "max_position_embeddings", None)
    return value if isinstance(value, int) else 0


def _text_module(module: ModuleType) -> str:
    """The module that a wrapper makes its language model of, if its config does not say."""
    found = [each for each in vars(module).values() if inspect.ismodule(each) and hasattr(each, "ModelArgs")]
    base = [each.__module__ for each in module.Model.__mro__ if each.__module__.startswith("mlx_lm.models.")]
    names = [*(each.__name__ for each in found), *base[1:]]
    return names[0].rpartition(".")[2] if names else module.__name__.rpartition(".")[2]


def _inner(args: Any) -> dict[str, int]:
    """What a wrapper writes into an empty `text_config`."""
    try:
        made = args(model_type="", text_config={}).text_config
    except Exception:  # wrappers that need more
        return {}
    return {key: value for key, value in sorted(made.items()) if key in _NAMES and _is_number(value)}


def main() -> None:
    """Write the table."""
    _path().parent.mkdir(exist_ok=True)
    _path().write_text(json.dumps(installed(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
