"""A tiny random llama as a real MLX model folder: real loader, real tokenizer, milliseconds a step."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
from mlx.utils import tree_flatten
from mlx_lm.models import llama
from mlx_lm.models.cache import make_prompt_cache
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from core.kv.cached_sequence import CachedSequence

CONTEXT_TOKENS = 512
SPECIALS = ["<|end|>", "<|user|>", "<|assistant|>", "<|system|>"]
TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def toy_tokenizer() -> Tokenizer:
    """Byte-level, one token a byte, plus the specials."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate([*SPECIALS, *letters])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(SPECIALS)
    return tokenizer


def toy_config(**changes: Any) -> dict[str, Any]:
    """A two-layer llama with grouped queries."""
    return {
        "model_type": "llama",
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "max_position_embeddings": CONTEXT_TOKENS,
        "vocab_size": 260,
        "tie_word_embeddings": True,
        "eos_token_id": 0,
        **changes,
    }


def toy_model(seed: int = 0, **changes: Any) -> llama.Model:
    """The model alone. Larger weights than usual make its choices varied and its margins wide."""
    mx.random.seed(seed)
    model = llama.Model(llama.ModelArgs.from_dict(toy_config(**changes)))
    model.update(_scaled(model.parameters()))
    mx.eval(model.parameters())
    return model


def toy_sequence(model: Any) -> CachedSequence:
    """An empty sequence for `model`."""
    new_cache: Callable[[], list[Any]] = lambda: make_prompt_cache(model)  # noqa: E731
    return CachedSequence(new_cache)


def write_toy_model(folder: Path, seed: int = 0, **changes: Any) -> None:
    """Write the model, its config and its tokenizer into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    model = toy_model(seed, **changes)
    weights = dict(tree_flatten(model.parameters()))
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    (folder / "config.json").write_text(json.dumps(toy_config(**changes)))
    write_tokenizer(folder)


def write_tokenizer(folder: Path) -> None:
    """The toy tokenizer's files."""
    toy_tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        json.dumps(
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "eos_token": "<|end|>",
                # Classes of some model types would add tokens of their own, which no row is for.
                "pad_token": "<|end|>",
                "unk_token": "<|end|>",
                "clean_up_tokenization_spaces": False,
                "chat_template": TEMPLATE,
            }
        )
    )


def _scaled(parameters: Any) -> Any:
    if isinstance(parameters, dict):
        return {key: _scaled(value) for key, value in parameters.items()}
    if isinstance(parameters, list):
        return [_scaled(value) for value in parameters]
    return parameters * 3.0 if parameters.ndim == 2 else parameters
