"""A family's model folder: config, tokenizer, template and tiny random weights, as a download has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
from mlx.utils import tree_flatten

from tests.attack.support.tiny_configs import tiny_config
from tests.attack.support.tiny_models import tiny_model_of
from tests.zoo.families import Family
from tests.zoo.tokenizers import tokenizer

CONTEXT_TOKENS = 8192
# What configs call the context.
_CONTEXTS = ("max_position_embeddings", "model_max_length", "max_seq_len", "n_positions")


def write_family(family: Family, folder: Path, seed: int = 1) -> None:
    """Write the model folder. Raises `NotBuiltError` if the tiny model of that type cannot be built."""
    folder.mkdir(parents=True, exist_ok=True)
    made = tokenizer(family.tokenizer, family.tokens, family.bos if family.adds_bos else "")
    ids = {each.text: made.token_to_id(each.text) for each in family.tokens}
    config = _config(family, made.get_vocab_size())
    model = tiny_model_of(lambda: json.loads(json.dumps(config)), seed)
    weights: dict[str, mx.array] = dict(tree_flatten(model.parameters()))  # type: ignore[arg-type]
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    config["model_type"] = family.model_type
    if stops := family.config_stops.split():
        config["eos_token_id"] = _ids(stops, ids)
    if stops := family.text_stops.split():
        config.setdefault("text_config", {})["eos_token_id"] = _ids(stops, ids)
    _write(folder / "config.json", config)
    if stops := family.generation_stops.split():
        _write(folder / "generation_config.json", {"eos_token_id": _ids(stops, ids)})
    made.save(str(folder / "tokenizer.json"))
    named = {"bos_token": family.bos or None, "eos_token": family.eos, "pad_token": family.eos}
    _write(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "clean_up_tokenization_spaces": False,
            **{name: token for name, token in named.items() if token},
        },
    )
    (folder / "chat_template.jinja").write_text(family.template_text)


def _config(family: Family, vocabulary: int) -> dict[str, Any]:
    config = tiny_config(family.base or family.model_type)
    rows = vocabulary + family.more_rows
    for part in (config, config.get("text_config")):
        if isinstance(part, dict):
            part |= {name: rows for name in ("vocab_size", "vocab_size_per_layer_input") if name in part}
            part |= {name: CONTEXT_TOKENS for name in _CONTEXTS if name in part}
    text = config.get("text_config", config)
    text.update(family.config)
    for name in [name for name, value in family.config.items() if value is None]:
        del text[name]
    return config


def _ids(stops: list[str], ids: dict[str, int]) -> int | list[int]:
    found = [ids[stop] for stop in stops]
    return found[0] if len(found) == 1 else found


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content))
