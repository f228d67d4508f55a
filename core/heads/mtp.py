"""MtpHead: a model's MTP head, on mlx-lm's own blocks. It guesses the token after the next one.

With e(t) the embedding of token t, h the hidden state before it and N RMS norms:

    x = projection([N_embedding(e(t)), N_hidden(h)])      MiMo: the hidden state first
    y = N(block(x))                                        the block attends to earlier rows of the head
    logits = output layer(y)

h is the model's hidden state after its final norm. A further guess takes y of the row before it in place of
h, and the guessed token. Sources: DeepSeek-V3 (arXiv 2412.19437, section 2.2), the published code of
Qwen3-Next, GLM-4.5 and MiMo (arXiv 2505.07608); guesses after the first one as in vLLM and SGLang, which run
one head repeatedly.

Embedding and output layer are the model's. The block is an object of the class of the model's own layers, the
first of them with the same tensors. Worker's main thread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten
from mlx_lm.models.base import create_attention_mask

from core.heads.draft_head import DraftHead, Weights, filled
from core.kv.mlx_lm_caches import full_cache
from core.models.parts import SplitModel

# Qwen stores norms as w − 1, mlx-lm as w; the weights of trained norms are about 1.
_STORES_LESS_ONE = ("qwen",)
_HALF = 0.5
_HIDDEN_FIRST = ("mimo",)
# Rows and columns of the blocks of fp8 weights that have a common scale.
_FP8_BLOCK = 128


class MtpHead(nn.Module):  # type: ignore[misc]
    """`size`: of a hidden state. `hidden_first`: order of the projection's inputs."""

    def __init__(self, block: nn.Module, size: int, eps: float, *, hidden_first: bool) -> None:
        super().__init__()
        self.embedding_norm = nn.RMSNorm(size, eps=eps)
        self.hidden_norm = nn.RMSNorm(size, eps=eps)
        self.projection = nn.Linear(2 * size, size, bias=False)
        self.block = block
        self.norm = nn.RMSNorm(size, eps=eps)
        self._hidden_first = hidden_first

    def __call__(self, embeddings: mx.array, states: mx.array, cache: Any = None) -> mx.array:
        """The head's hidden states [1, n, size] from `embeddings` of tokens and `states` before them, both
        [1, n, size]. Rows are appended to the cache entry `cache`.
        """
        both = [self.embedding_norm(embeddings), self.hidden_norm(states)]
        joined = mx.concatenate(both[::-1] if self._hidden_first else both, axis=-1)
        rows: mx.array = self.projection(joined)
        # The masks of blocks with latent attention are arrays.
        mask = create_attention_mask(rows, cache, return_array=True)
        hidden: mx.array = self.norm(self.block(rows, mask, cache))
        return hidden


def mtp_head(parts: SplitModel, weights: Weights, config: dict[str, Any]) -> DraftHead:
    """The head with tensors named as in `mtp_files`; `config` is the model's.

    Raises ValueError if the tensors fit none of the model's blocks.
    """
    owner, model_type = parts.owner, str(config.get("model_type"))
    if reason := parts.why_other_output():
        raise ValueError(reason)
    weights = _stacked(_without_fp8(weights))
    if any("kv_b_proj" in name for name in weights):
        weights = _with_latent_attention(parts.model, weights)
    if model_type.startswith(_STORES_LESS_ONE):
        weights = _with_whole_norms(weights)
    args = owner.args
    head = MtpHead(
        _block(owner, weights),
        int(args.hidden_size),
        float(args.rms_norm_eps),
        hidden_first=model_type.startswith(_HIDDEN_FIRST),
    )
    head = filled(head, weights)

    def step(ids: mx.array, states: mx.array, cache: Sequence[Any]) -> tuple[mx.array, mx.array]:
        hidden = head(parts.embed(ids), states, cache[0])
        return hidden, hidden

    return DraftHead(head, parts, step, lambda hidden: (parts.output(hidden), None), full_cache)


def _block(owner: Any, weights: Weights) -> nn.Module:
    """A new block of the first of the model's layers that has the tensors of the head's block."""
    wanted = _plain_names(name.removeprefix("block.") for name in weights if name.startswith("block."))
    layers = owner.model.layers
    for number, layer in enumerate(layers):
        if layer is None or _plain_names(name for name, _ in tree_flatten(layer.parameters())) != wanted:
            continue
        kind: Any = type(layer)
        try:
            made: nn.Module = kind(owner.args, number)
        except TypeError:  # a type with one kind of layer
            made = kind(owner.args)
        return made
    raise ValueError("its tensors are not those of any of the model's blocks")


def _plain_names(names: Any) -> set[str]:
    return {name for name in names if not name.endswith((".scales", ".biases"))}


def _without_fp8(weights: Weights) -> Weights:
    """fp8 weights with a scale for each block of 128 × 128, as bfloat16."""
    plain = {name: value for name, value in weights.items() if not name.endswith(".weight_scale_inv")}
    for name, scale in weights.items():
        if name.endswith(".weight_scale_inv"):
            stored = name.removesuffix("_scale_inv")
            values = mx.from_fp8(weights[stored], dtype=mx.bfloat16)
            rows, columns = values.shape
            grown = mx.repeat(mx.repeat(scale, _FP8_BLOCK, axis=0), _FP8_BLOCK, axis=1)
            plain[stored] = (values * grown[:rows, :columns]).astype(mx.bfloat16)
    return plain


def _stacked(weights: Weights) -> Weights:
    """Experts in mlx-lm's form: one array per projection."""
    stacked: Weights = {}
    experts: dict[str, dict[int, mx.array]] = {}
    for name, value in weights.items():
        if single := re.fullmatch(r"(.+\.mlp)\.experts\.(\d+)\.(.+)", name):
            experts.setdefault(f"{single[1]}.switch_mlp.{single[3]}", {})[int(single[2])] = value
        elif name.endswith(".experts.gate_up_proj"):
            base = name.replace(".experts.gate_up_proj", ".switch_mlp")
            half = value.shape[-2] // 2
            stacked[f"{base}.gate_proj.weight"] = value[..., :half, :]
            stacked[f"{base}.up_proj.weight"] = value[..., half:, :]
        elif name.endswith(".experts.down_proj"):
            stacked[name.replace(".experts.down_proj", ".switch_mlp.down_proj.weight")] = value
        else:
            stacked[name] = value
    return stacked | {name: mx.stack([rows[at] for at in sorted(rows)]) for name, rows in experts.items()}


def _with_latent_attention(model: Any, weights: Weights) -> Weights:
    """The projection `kv_b_proj` in mlx-lm's two parts, made by the model's own `sanitize`, as of layer 0."""
    layer = "model.layers.0."
    block = {f"{layer}{name.removeprefix('block.')}": v for name, v in weights.items() if "block." in name}
    changed = model.sanitize(block)
    others = {name: value for name, value in weights.items() if "block." not in name}
    return others | {f"block.{name.removeprefix(layer)}": value for name, value in changed.items()}


def _with_whole_norms(weights: Weights) -> Weights:
    norms = {name: value for name, value in weights.items() if name.endswith("norm.weight")}
    every = mx.concatenate([value.astype(mx.float32) for value in norms.values()])
    if (mx.median(every) >= _HALF).item():
        return weights
    return weights | {name: value + 1.0 for name, value in norms.items()}
