"""Writes resources/models/types.json: the defaults of the installed mlx-lm's and transformers' model types.

python -m tests.tuning.model_types
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import pkgutil
from types import ModuleType
from typing import Any

from core.folders.config import CONTEXT_NAMES, NAMES, TYPES_FILE, is_number
from core.system.paths import resources_dir


def installed() -> dict[str, Any]:
    """Builds the table from the installed mlx-lm and transformers; imports both."""
    import mlx_lm.models
    from mlx_lm.utils import MODEL_ARCHITECTURE_REMAPPING, MODEL_REMAPPING

    defaults: dict[str, dict[str, int]] = {}
    text: dict[str, str] = {}
    inner: dict[str, dict[str, int]] = {}
    for found in pkgutil.iter_modules(mlx_lm.models.__path__):
        try:
            module = importlib.import_module(f"mlx_lm.models.{found.name}")
        except SystemExit:  # olmo without its package; the loader reports it
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
    found = {key: int(value) for key, value in fields.items() if key in NAMES and is_number(value)}
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
    """The module of a wrapper's language model, if its config does not name the type."""
    found = [each for each in vars(module).values() if inspect.ismodule(each) and hasattr(each, "ModelArgs")]
    base = [each.__module__ for each in module.Model.__mro__ if each.__module__.startswith("mlx_lm.models.")]
    names = [*(each.__name__ for each in found), *base[1:]]
    return names[0].rpartition(".")[2] if names else module.__name__.rpartition(".")[2]


def _inner(args: Any) -> dict[str, int]:
    """The `text_config` that a wrapper creates from an empty one."""
    try:
        made = args(model_type="", text_config={}).text_config
    except Exception:  # wrappers that need more
        return {}
    return {key: value for key, value in sorted(made.items()) if key in NAMES and is_number(value)}


def main() -> None:
    """Write the table."""
    path = resources_dir() / TYPES_FILE
    path.write_text(json.dumps(installed(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
