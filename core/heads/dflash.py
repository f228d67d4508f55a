"""DFlash drafters: a few layers that guess a block of tokens at once, from states of the model's layers.

With c the fused states of the context and e the embeddings of the newest token and of masks after it:

    c = N_hidden(fc([states of the layers]))
    y = N(layers(e))               a layer attends to keys and values of c, and of the whole block both ways
    logits = output layer(y)       the row of the i-th mask guesses the i-th token after the newest

Layers are those of Qwen3. Embedding and output layer are the model's. With a sliding window W a layer sees
the last W − 1 rows of c. With a `draft_window_size` of D all layers see the last D rows of c (mlx-vlm: D to
D + 64). If the config says that blocks are causal (`causal`, `dflash_query_causal`), a row attends to c and
to the block up to itself; a window of W then moves with the row. Sources: z-lab's repositories
(`dflash_config` in the config; its numbers are of layers whose results are taken) and mlx-vlm's drafter.
Worker's main thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.base import create_causal_mask
from mlx_lm.models.qwen3 import ModelArgs, TransformerBlock

from core.folders.config import is_number
from core.heads.draft_head import DraftHead, Weights, filled, rope_settings
from core.kv.mlx_lm_caches import full_cache
from core.models.parts import SplitModel


class DFlash(nn.Module):  # type: ignore[misc]
    """Names are those of the files. `width`: of the states of all layers.

    `windows`: of each layer, or 0; `rows`: of c that all layers see, or 0 to use their windows.
    """

    def __init__(
        self, args: ModelArgs, width: int, windows: Sequence[int], *, rows: int = 0, causal: bool = False
    ) -> None:
        super().__init__()
        self.fc = nn.Linear(width, args.hidden_size, bias=False)
        self.hidden_norm = nn.RMSNorm(args.hidden_size, eps=args.rms_norm_eps)
        self.layers = [TransformerBlock(args) for _ in windows]
        self.norm = nn.RMSNorm(args.hidden_size, eps=args.rms_norm_eps)
        self._windows, self._rows, self._causal = tuple(windows), rows, causal

    def fuse(self, states: mx.array) -> mx.array:
        found: mx.array = self.hidden_norm(self.fc(states))
        return found

    def append(self, states: mx.array, cache: Sequence[Any]) -> None:
        """Appends the keys and values of fused states [1, n, size] to the entries of `cache`."""
        for layer, entry in zip(self.layers, cache, strict=True):
            entry.update_and_fetch(*_keys(layer.self_attn, states, entry.offset))

    def __call__(self, embeddings: mx.array, cache: Sequence[Any]) -> mx.array:
        """The hidden states of a block after the rows in `cache`, to which nothing is appended."""
        hidden = embeddings
        for layer, entry, window in zip(self.layers, cache, self._windows, strict=True):
            attention, inner = layer.self_attn, layer.input_layernorm(hidden)
            queries = attention.q_norm(_heads(attention.q_proj(inner), attention.n_heads)).swapaxes(1, 2)
            seen = self._rows or (window - 1 if window else entry.offset)
            first = max(0, entry.offset - seen)
            held = (entry.keys, entry.values)
            keys, values = (
                mx.concatenate([old[..., first : entry.offset, :], new], axis=2)
                for old, new in zip(held, _keys(attention, inner, entry.offset))
            )
            out = mx.fast.scaled_dot_product_attention(
                attention.rope(queries, offset=entry.offset),
                keys,
                values,
                scale=attention.scale,
                mask=self._mask(queries.shape[2], entry.offset - first, window),
            )
            hidden = hidden + attention.o_proj(out.swapaxes(1, 2).reshape(*inner.shape[:2], -1))
            hidden = hidden + layer.mlp(layer.post_attention_layernorm(hidden))
        found: mx.array = self.norm(hidden)
        return found

    def _mask(self, rows: int, before: int, window: int) -> mx.array | None:
        """The mask of a block of `rows` after `before` rows of c; None: all rows see each other."""
        if not self._causal:
            return None
        found: mx.array = create_causal_mask(rows, before, window or None)
        return found


def _heads(x: mx.array, count: int) -> mx.array:
    return x.reshape(*x.shape[:2], count, -1)


def _keys(attention: Any, x: mx.array, offset: int) -> tuple[mx.array, mx.array]:
    """Keys, rotated from `offset` on, and values, each [1, heads, n, size]."""
    keys = attention.k_norm(_heads(attention.k_proj(x), attention.n_kv_heads)).swapaxes(1, 2)
    values = _heads(attention.v_proj(x), attention.n_kv_heads).swapaxes(1, 2)
    return attention.rope(keys, offset=offset), values


def dflash(parts: SplitModel, weights: Weights, config: dict[str, Any]) -> DraftHead:
    """The drafter with the `config` and tensors of its folder. Raises `ValueError` if they do not fit."""
    own = {**config, **config.get("dflash_config", {})}
    args = ModelArgs.from_dict({**own, **rope_settings(own), "tie_word_embeddings": True})
    if own.get("attention_sink_bias"):
        raise ValueError("attention sinks are not supported")
    layers = len(parts.owner.model.layers)
    taken = own.get("target_layer_ids")
    if not isinstance(taken, list) or not taken or not all(is_number(each) for each in taken):
        raise ValueError("its config names no layers (target_layer_ids)")
    if wrong := [number for number in taken if not 0 <= number < layers]:
        raise ValueError(f"it takes the states of layer {wrong[0]}; the model's are 0 to {layers - 1}")
    size, mask = int(own["block_size"]), int(own["mask_token_id"])
    if size < 2:
        raise ValueError(f"its block_size is {size}, and it must guess one token at least")
    if not 0 <= mask < args.vocab_size:
        raise ValueError(f"its mask_token_id {mask:,} is not one of {args.vocab_size:,} ids")
    width = len(taken) * int(parts.owner.args.hidden_size)
    kinds = own.get("layer_types") or ["full_attention"] * args.num_hidden_layers
    windows = [int(own["sliding_window"]) if kind == "sliding_attention" else 0 for kind in kinds]
    causal = bool(own.get("causal", own.get("dflash_query_causal")))
    body = DFlash(args, width, windows, rows=int(own.get("draft_window_size") or 0), causal=causal)
    head = filled(body, {k.removeprefix("model."): v for k, v in weights.items()})
    scale = float(getattr(parts.owner.model, "embed_scale", 1.0))
    cap = own.get("final_logit_softcapping")

    def step(ids: mx.array, states: mx.array, cache: Sequence[Any]) -> tuple[mx.array, mx.array]:
        head.append(states, cache)
        return states, states

    def output(hidden: mx.array) -> tuple[mx.array, mx.array | None]:
        logits = parts.output(hidden)
        return (mx.tanh(logits / cap) * cap if cap else logits), None

    def block(ids: mx.array, states: mx.array, cache: Sequence[Any], count: int) -> mx.array:
        head.append(states, cache)
        masks = mx.full((1, max(size - 1, count)), mask, dtype=ids.dtype)
        hidden = head(parts.embed(mx.concatenate([ids, masks], axis=1)) * scale, cache)
        return output(hidden[:, 1 : count + 1])[0]

    new_cache = partial(full_cache, len(windows))
    return DraftHead(head, parts, step, output, new_cache, tuple(taken), head.fuse, block, size - 1)
