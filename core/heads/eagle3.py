"""EAGLE-3 heads: one decoder layer on states of three of the model's layers, with a separate output layer.

With g the fused states before token t, e(t) its embedding and N RMS norms:

    g = fc([states of the three layers])             optionally normalised before
    x = [N_embedding(e(t)), N_hidden(g)]
    a = r + attention(x)                              r is g, or N_hidden(g)
    y = a + mlp(N(a))                                 the layer attends to earlier rows of the head
    logits = output layer(N_last(y))                  for a part of the vocabulary: i has the id i + d2t[i]

A further guess takes y in place of g, and the guessed token. Further layers, if any, are plain ones.

Layouts: SpecForge's and SafeAILab's (`midlayer.`, a flat config), vLLM's (`layers.0.`), and that of
speculators (the layer's config within `transformer_layer_config`). The config numbers the three states in one
of two ways: if the numbers begin with 1, the states are outputs of these layers, otherwise inputs (SGLang
distinguishes them in the same way). Without numbers they are the inputs of layers 2, n/2 and n − 3. The
embedding is the model's unless the head has one of another size, or a trained one. Sources: arXiv 2503.01840,
the code of SpecForge, vLLM, SGLang, and mlx-vlm's drafter. Worker's main thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.base import create_attention_mask
from mlx_lm.models.llama import ModelArgs, TransformerBlock

from core.folders.config import is_number
from core.heads.draft_head import DraftHead, Weights, filled, rope_settings
from core.kv.mlx_lm_caches import full_cache
from core.models.parts import SplitModel

_LEFT_OUT = ("t2d", "rotary_emb.inv_freq")


class _FirstLayer(TransformerBlock):  # type: ignore[misc]
    """A Llama's layer that also attends with embeddings. `normed`: adds to the normed states."""

    def __init__(self, args: ModelArgs, *, normed: bool) -> None:
        super().__init__(args)
        self.hidden_norm = nn.RMSNorm(args.hidden_size, eps=args.rms_norm_eps)
        for name in ("q_proj", "k_proj", "v_proj"):
            rows = self.self_attn[name].weight.shape[0]
            self.self_attn[name] = nn.Linear(2 * args.hidden_size, rows, bias=args.attention_bias)
        self._normed = normed

    def __call__(self, states: mx.array, embeddings: mx.array, mask: Any, entry: Any) -> mx.array:
        inner = self.hidden_norm(states)
        both = mx.concatenate([self.input_layernorm(embeddings), inner], axis=-1)
        states = (inner if self._normed else states) + self.self_attn(both, mask, entry)
        found: mx.array = states + self.mlp(self.post_attention_layernorm(states))
        return found


class Eagle3(nn.Module):  # type: ignore[misc]
    """Names are those of the files, with vLLM's for the layers. `width`: of the fused states before `fc`."""

    def __init__(self, args: ModelArgs, width: int, *, normed: bool) -> None:
        super().__init__()
        self.fc = nn.Linear(width, args.hidden_size, bias=False)
        more = [TransformerBlock(args) for _ in range(args.num_hidden_layers - 1)]
        self.layers = [_FirstLayer(args, normed=normed), *more]
        self.norm = nn.RMSNorm(args.hidden_size, eps=args.rms_norm_eps)

    def fuse(self, states: mx.array) -> mx.array:
        found: mx.array = self.fc(self.input_norm(states) if "input_norm" in self else states)
        return found

    def __call__(self, embeddings: mx.array, states: mx.array, cache: Sequence[Any]) -> mx.array:
        mask = create_attention_mask(states, cache[0])
        first, *others = self.layers
        found: mx.array = first(states, embeddings, mask, cache[0])
        for layer, entry in zip(others, cache[1:], strict=True):
            found = layer(found, mask, entry)
        return found


def eagle3(parts: SplitModel, weights: Weights, config: dict[str, Any]) -> DraftHead:
    """The head with the `config` and tensors of its folder. Raises `ValueError` if they do not fit."""
    inner = {"num_hidden_layers": 1, **config, **config.get("transformer_layer_config", {})}
    args = ModelArgs.from_dict(inner | rope_settings(inner))
    weights = {_own_name(name): each for name, each in weights.items() if not name.endswith(_LEFT_OUT)}
    taken = taken_layers(config, len(parts.owner.model.layers))
    width = len(taken) * int(parts.owner.args.hidden_size)
    # vLLM's default for the nested layout.
    normed = bool(config.get("norm_before_residual", "transformer_layer_config" in config))
    head = Eagle3(args, width, normed=normed)
    drafted = int(config.get("draft_vocab_size") or args.vocab_size)
    moved = weights.pop("d2t", None)
    if "input_norm.weight" in weights:
        head.input_norm = nn.RMSNorm(width, eps=args.rms_norm_eps)
    same_size = args.hidden_size == parts.owner.args.hidden_size
    if same_size and not config.get("embed_requires_grad"):  # copies of the model's
        weights = {name: each for name, each in weights.items() if not name.startswith("embed_tokens.")}
    if "embed_tokens.weight" in weights:
        head.embed_tokens = nn.Embedding(args.vocab_size, args.hidden_size)
    if "lm_head.weight" in weights:
        head.lm_head = nn.Linear(args.hidden_size, drafted, bias=False)
    elif moved is not None:
        raise ValueError("it has no output layer for its part of the vocabulary")
    if not same_size and "embed_tokens" not in head:
        raise ValueError("it has no embedding of its hidden size")
    head = filled(head, weights)
    embed = head.embed_tokens if "embed_tokens" in head else parts.embed
    output = head.lm_head if "lm_head" in head else parts.output
    columns = None if moved is None else mx.arange(drafted, dtype=mx.int32) + moved.astype(mx.int32)

    def step(ids: mx.array, states: mx.array, cache: Sequence[Any]) -> tuple[mx.array, mx.array]:
        hidden = head(embed(ids), states, cache)
        return hidden, hidden

    def logits(hidden: mx.array) -> tuple[mx.array, mx.array | None]:
        return output(head.norm(hidden)), columns

    return DraftHead(head, parts, step, logits, partial(full_cache, len(head.layers)), taken, head.fuse)


def _own_name(name: str) -> str:
    name = name.removeprefix("model.")
    return f"layers.0.{name.removeprefix('midlayer.')}" if name.startswith("midlayer.") else name


def taken_layers(config: dict[str, Any], layers: int) -> tuple[int, ...]:
    """The layers of a model with `layers` of them, from 0, whose results the head takes."""
    nested = config.get("eagle_config")
    given = config.get("eagle_aux_hidden_state_layer_ids") or (
        nested.get("eagle_aux_hidden_state_layer_ids") if isinstance(nested, dict) else None
    )
    if not given:
        given = [2, layers // 2, layers - 3]
    if not isinstance(given, list) or not all(map(is_number, given)):
        raise ValueError("its layer numbers are not numbers")
    found = tuple(given) if given[0] == 1 else tuple(number - 1 for number in given)
    if wrong := [number for number in found if not 0 <= number < layers]:
        raise ValueError(f"it takes the states of layer {wrong[0]}; the model's are 0 to {layers - 1}")
    return found
