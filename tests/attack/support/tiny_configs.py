"""Tiny configs: a small config for every model type of mlx-lm, and variants of some.

Each field of a type's own dataclass gets a small value by its name (tiny_configs.json); what a name cannot
tell is the type's own there. No shape here is a real checkpoint's: two to six layers, windows of 16 and a
vocabulary of 260, so that short runs cross every wrap. A type that mlx-lm adds is tried without a word here.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import json
import pkgutil
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

VOCABULARY = 260
CONTEXT_TOKENS = 1024
WINDOW_TOKENS = 16

# Files that hold parts of models, and none that could be loaded by itself.
_PARTS = frozenset(
    {
        *(
            "activations",
            "base",
            "bitlinear_layers",
            "cache",
            "gated_delta",
            "llama4_text",
            "mla",
            "pipeline",
        ),
        *("rope_utils", "ssm", "switch_layers"),
    }
)
_read = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
_BY_NAME: Mapping[str, Any] = {name: value for names, value in _read["by_name"] for name in names.split()}
# Where the type's code wants other values than the field's name tells.
_OWN: Mapping[str, Mapping[str, Any]] = _read["own"]
# Changes, and the types that have a variant with them.
_KINDS: Mapping[str, tuple[Mapping[str, Any], str]] = _read["kinds"]
# Why there is no tiny model of a type here.
NOT_BUILT: Mapping[str, str] = {
    "bitnet": "its matrix product is written for Metal alone",
    "olmo": "mlx-lm needs another package for it (ai2-olmo)",
    "phi3small": "its block-sparse attention ends MLX's CPU build with a segmentation fault",
    "prism_hadamard_qwen35": "it reads packed checkpoints only, with tables that go with them",
}


def variants() -> list[str]:
    """All that there are to try: `TYPE`, then `TYPE+KIND`; types that cannot be built are not among them."""
    types = [each for each in model_types() if each not in NOT_BUILT]
    return types + [f"{each}+{kind}" for kind, (_, names) in _KINDS.items() for each in names.split()]


def variant_config(variant: str) -> dict[str, Any]:
    """The config of one of `variants()`."""
    model_type, _, kind = variant.partition("+")
    return tiny_config(model_type, _KINDS[kind][0] if kind else None)


def model_types() -> list[str]:
    """Every model type that mlx-lm brings, by the names of its files; nothing is imported."""
    found = importlib.util.find_spec("mlx_lm")
    places = [f"{place}/models" for place in (found.submodule_search_locations if found else None) or ()]
    names = (module.name for module in pkgutil.iter_modules(places))
    return sorted(name for name in names if name not in _PARTS)


def tiny_config(model_type: str, changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A config of that type. `changes` win over everything else, in the text's part if it has one."""
    module = importlib.import_module(f"mlx_lm.models.{model_type}")
    config = _filled(model_type, module.ModelArgs)
    if "text_config" in _fields(module.ModelArgs):
        text_type = _OWN.get(model_type, {}).get("text_config", model_type)
        text_module = importlib.import_module(f"mlx_lm.models.{text_type}")
        found = [getattr(text_module, name, None) for name in (*_TEXT_CLASSES, "ModelArgs")]
        text_class = next(each for each in found if each)
        config["text_config"] = {**_filled(text_type, text_class), **deepcopy(dict(changes or {}))}
        return config
    return {**config, **deepcopy(dict(changes or {}))}


# What mlx-lm calls the dataclass of the text's part, where that is in the same file.
_TEXT_CLASSES = ("TextConfig", "TextArgs", "TextModelArgs")


def _filled(model_type: str, arguments: Any) -> dict[str, Any]:
    fields = _fields(arguments)
    config = {name: deepcopy(value) for name, value in _BY_NAME.items() if name in fields}
    return {**config, "model_type": model_type, **deepcopy(dict(_OWN.get(model_type, {})))}


def _fields(arguments: Any) -> frozenset[str]:
    return frozenset(field.name for field in dataclasses.fields(arguments))
