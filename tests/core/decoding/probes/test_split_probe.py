"""try_splits finds models whose answers depend on how many tokens are read at once."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import mlx.nn as nn
import pytest
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import _get_classes

from core.decoding.probes.split_probe import Splits, try_splits
from tests.core.architectures import ARCHITECTURES, build, tiny
from tests.thinned import thinned

PLAMO3 = {
    "model_type": "plamo3",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "sliding_window_pattern": 2,
    "vocab_size": 260,
}
INTERNLM2 = {
    "model_type": "internlm2",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5,
    "vocab_size": 260,
    "rope_scaling": {"type": "dynamic", "factor": 2.0},
}
# Its code forbids ids up to 100,351.
PHI3SMALL = {
    "model_type": "phi3small",
    "hidden_size": 32,
    "dense_attention_every_n_layers": 2,
    "ff_intermediate_size": 64,
    "gegelu_limit": 20.0,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "layer_norm_epsilon": 1e-5,
    "vocab_size": 100352,
}


def tried(model: nn.Module, context_tokens: int = 4096) -> Splits:
    def new_cache() -> list[Any]:
        return list(make_prompt_cache(model))

    trials = try_splits(model, new_cache, context_tokens)
    while True:
        try:
            next(trials)
        except StopIteration as done:
            found: Splits = done.value
            return found


@pytest.mark.parametrize("name", thinned(ARCHITECTURES, keep=["llama", "qwen3_5"]))
def test_nothing_is_found_where_there_is_nothing(name: str) -> None:
    assert tried(tiny(name), 131072) == Splits()


@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize(("window", "agreed"), [(16, 0), (2048, 1024)])
def test_a_mask_wider_than_its_window_is_found(window: int, agreed: int, dtype: mx.Dtype) -> None:
    model = build({**PLAMO3, "window_size": window}, 2.0)
    model.set_dtype(dtype)
    found = tried(model)
    assert found.agreed_tokens == agreed
    assert f"near {max(64, window):,} tokens" in found.reason


@pytest.mark.parametrize(("length", "agreed"), [(64, 0), (32768, 16384)])
def test_keys_that_depend_on_the_length_are_found(length: int, agreed: int) -> None:
    found = tried(build({**INTERNLM2, "max_position_embeddings": length}, 2.0), 2 * length)
    assert found.agreed_tokens == agreed
    assert f"near {length:,} tokens" in found.reason


def test_lengths_beyond_the_context_do_not_matter() -> None:
    assert tried(build({**INTERNLM2, "max_position_embeddings": 2048}, 2.0), 1024) == Splits()


def test_a_mask_that_hides_nothing_is_found() -> None:
    """mlx-lm adds this model's mask, which says yes and no, to the scores: a block's rows see each other."""
    mx.random.seed(0)
    model_class, args_class = _get_classes(PHI3SMALL)
    found = tried(model_class(args_class.from_dict(PHI3SMALL)))
    assert found.agreed_tokens == 0
    assert "near 64 tokens" in found.reason


def test_a_model_that_fails_at_a_block_is_refused() -> None:
    class OneByOne(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = tiny("llama")
            self.layers = self.inner.layers

        def __call__(self, ids: mx.array, cache: Any = None) -> mx.array:
            if ids.shape[1] == 6:
                raise ValueError("no blocks of six")
            return self.inner(ids, cache=cache)

    found = tried(OneByOne())
    assert found.agreed_tokens == 0
    assert "no blocks of six" in found.reason
