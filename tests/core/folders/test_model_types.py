"""Defaults of model types: contexts and caches of configs that leave their values to the type."""

from __future__ import annotations

import dataclasses
import importlib
import json
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx_lm.models
import pytest
from mlx.utils import tree_flatten
from mlx_lm.models.cache import make_prompt_cache

from core.folders import config as model_types
from core.folders.config import Machine, context_tokens, is_supported, need_of, text_config
from core.models.loader import load
from tests.core.architectures import ARCHITECTURES, tiny
from tests.core.toy import toy_config, write_toy_model
from tests.tuning.model_types import installed, text_args

EXPANDS = Machine(1 << 34, True)
TYPES = sorted(
    found.name
    for found in pkgutil.iter_modules(mlx_lm.models.__path__)
    if found.name in model_types.types_table()["defaults"]
)
# Plausible values of required fields.
REQUIRED = {
    **dict.fromkeys(model_types.LAYER_NAMES, 4),
    **dict.fromkeys(model_types.HEAD_NAMES, 4),
    **dict.fromkeys(model_types.KV_HEAD_NAMES, 2),
    **dict.fromkeys(model_types.HIDDEN_NAMES, 64),
    **dict.fromkeys(model_types.INNER_NAMES, 128),
    **dict.fromkeys(model_types.STATE_NAMES, 16),
    "head_dim": 16,
    "kv_lora_rank": 8,
    "qk_rope_head_dim": 8,
    "hybrid_override_pattern": ["M", "*", "-"],
}


def minimal(name: str) -> dict[str, Any]:
    """A config of the type with nothing that it has a default for, and no length of the context."""
    try:
        module = importlib.import_module(f"mlx_lm.models.{name}")
    except SystemExit:
        pytest.skip("mlx-lm's module of this type needs a package that is not installed")
    args = text_args(module)
    missing = dataclasses.MISSING
    required = {
        field.name
        for field in dataclasses.fields(args)
        if field.default is missing and field.default_factory is missing
    }
    required |= {field.name for field in dataclasses.fields(args)} & {"hybrid_override_pattern"}
    return {"model_type": name, **{key: value for key, value in REQUIRED.items() if key in required}}


def test_the_table_is_that_of_the_installed_libraries() -> None:
    assert model_types.types_table() == installed(), "run python -m tests.tuning.model_types"


@pytest.mark.parametrize("name", TYPES)
def test_every_type_has_a_context_and_a_cache(name: str) -> None:
    assert is_supported(name)
    config = minimal(name)
    if "text_config" in importlib.import_module(f"mlx_lm.models.{name}").ModelArgs.__dataclass_fields__:
        config = {"model_type": name, "text_config": {**REQUIRED, **config}}
        del config["text_config"]["model_type"]
    args = text_args(importlib.import_module(f"mlx_lm.models.{name}"))
    default = getattr(args, "max_position_embeddings", None)
    if default is not None:
        assert context_tokens(config) >= default
    for key in model_types.CONTEXT_NAMES:
        assert context_tokens({**config, key: 12_345}) == 12_345
    need = need_of(config, 0, 0, EXPANDS)
    assert need.growing or need.windowed or need.state


@pytest.mark.parametrize("architecture", sorted(ARCHITECTURES))
def test_the_estimated_cache_is_what_the_model_keeps(architecture: str) -> None:
    config = dict(ARCHITECTURES[architecture].config)
    model = tiny(architecture)
    cache = make_prompt_cache(model)
    model(mx.arange(1, 257)[None], cache=cache)
    kept = sum(
        value.nbytes
        for entry in cache
        for _, value in tree_flatten(entry.state)
        if isinstance(value, mx.array)
    )
    need = need_of(config, 0, 0, EXPANDS)
    # A window's layer holds the chunk that it read, too.
    estimate = 256 * (need.growing + need.windowed) + need.state
    assert 0.4 * kept < estimate < 2.5 * kept


def test_gemma_3_leaves_nearly_everything_to_its_type() -> None:
    config = {
        "model_type": "gemma3",
        "text_config": {
            "model_type": "gemma3_text",
            "hidden_size": 2560,
            "intermediate_size": 10_240,
            "num_hidden_layers": 34,
            "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
            "sliding_window": 1024,
        },
    }
    assert context_tokens(config) == 131_072
    need = need_of(config, 0, 0, Machine(1 << 34, False))
    # 4 key-value heads of 256 dimensions; each sixth layer sees everything.
    assert need.growing == 2 * 4 * 256 * 2 * 5
    assert need.windowed == 2 * 4 * 256 * 2 * 29
    assert need.window_tokens == 1024


def test_kimi_linear_names_its_context_in_another_way() -> None:
    assert context_tokens({"model_type": "kimi_linear", "model_max_length": 1_048_576}) == 1_048_576


def test_a_value_in_the_config_beats_every_default() -> None:
    config = {"model_type": "gptj", "n_layer": 2, "n_head": 4, "n_embd": 64, "n_positions": 777}
    assert context_tokens(config) == 777
    assert need_of(config, 0, 0, EXPANDS).growing == 2 * 2 * 64 * 4


def test_a_loaded_model_has_the_context_of_its_type(tmp_path: Path) -> None:
    write_toy_model(tmp_path)
    config = toy_config(model_type="qwen2")
    del config["max_position_embeddings"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    from mlx_lm.models import qwen2

    weights = qwen2.Model(qwen2.ModelArgs.from_dict(config)).parameters()
    mx.save_safetensors(str(tmp_path / "model.safetensors"), dict(tree_flatten(weights)))
    assert load(str(tmp_path)).info.context_tokens == 32_768


def test_reading_a_folder_and_the_table_loads_no_model_library(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "none"}')
    (tmp_path / "tokenizer_config.json").write_text('{"chat_template_type": "deepseek_v32"}')
    code = (
        "import pathlib, sys, core.folders.folder; from core.folders.config import context_tokens;"
        "context_tokens({'model_type': 'gemma3'});"
        "assert core.folders.folder.has_template(pathlib.Path(sys.argv[1]));"
        "print(sorted({'mlx', 'mlx_lm', 'transformers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_unknown_type_is_not_supported() -> None:
    assert not is_supported("")
    assert not is_supported("abacus")
    assert not is_supported("base")
    assert is_supported("mistral")  # another name of a module


def test_text_config_keeps_what_is_given() -> None:
    given = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    assert text_config(given).items() >= given.items()
