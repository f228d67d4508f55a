"""Assistants of Gemma 4: a few layers without keys of their own, which attend into the model's cache.

With e(t) the model's embedding of token t, h the model's state before it after the final norm and p the
position of the newest token in the cache:

    x = pre_projection([e(t), h])
    y = N(layers(x))        a layer attends to the keys of the model's last layer of its type that computes
                            keys; the query has position p
    logits = output layer(y)

A further guess takes post_projection(y) in place of h, the guessed token, and the same p, because the cache
does not grow. Large vocabularies are scored in part: of `num_centroids` groups of tokens, those with the
highest scores `centroids(y)`.

Implementations differ in p: for vLLM's `gemma4_mtp` and mlx-vlm's drafter it is the position of the newest
token in the cache, as here; the generators of transformers 5.24 and OpenVINO have the position of the token
t, one more. With random weights the first guesses are the same in half of the contexts; which one the
published weights were trained for is not known here. While a plain step runs ahead, the cache has one token
more than the state; such a guess is not verified.

Layers are mlx-lm's own. Sources: the repositories of google/gemma-4-*-it-assistant, transformers'
`gemma4_assistant`, vLLM and mlx-vlm. Worker's main thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.gemma4_text import DecoderLayer, ModelArgs

from core.heads.draft_head import DraftHead, Weights, filled
from core.kv.mlx_lm_caches import columns_of, is_window, window_in_order
from core.models.parts import SplitModel

# Tensors that files may contain and no layer has.
_LEFT_OUT = ("rotary_emb", ".k_proj.", ".v_proj.", ".k_norm.", ".v_norm.")


class _Body(nn.Module):  # type: ignore[misc]
    def __init__(self, args: ModelArgs) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(args.vocab_size, args.hidden_size)
        self.layers = [DecoderLayer(args, number) for number in range(args.num_hidden_layers)]
        self.norm = nn.RMSNorm(args.hidden_size, eps=args.rms_norm_eps)


class _Groups(nn.Module):  # type: ignore[misc]
    """`token_ordering`: the ids of the first group, of the second, and so on; groups have equal sizes."""

    def __init__(self, args: ModelArgs, groups: int) -> None:
        super().__init__()
        self.centroids = nn.Linear(args.hidden_size, groups, bias=False)
        self.token_ordering = mx.zeros((args.vocab_size,), dtype=mx.int32)


class Assistant(nn.Module):  # type: ignore[misc]
    """Names are those of the files. `size`: of the model's states; `groups`: 0 if all tokens are scored."""

    def __init__(self, args: ModelArgs, size: int, groups: int, top_groups: int, *, own_output: bool) -> None:
        super().__init__()
        self.model = _Body(args)
        self.pre_projection = nn.Linear(2 * size, args.hidden_size, bias=False)
        self.post_projection = nn.Linear(args.hidden_size, size, bias=False)
        if own_output:
            self.lm_head = nn.Linear(args.hidden_size, args.vocab_size, bias=False)
        if groups:
            self.masked_embedding = _Groups(args, groups)
        self._top_groups = top_groups

    def __call__(self, embeddings: mx.array, states: mx.array, keys: dict[str, _Keys]) -> mx.array:
        """The hidden state [1, 1, hidden] of one token. `keys`: of each type of layer."""
        hidden = self.pre_projection(mx.concatenate([embeddings, states], axis=-1))
        for layer in self.model.layers:
            held = keys[layer.layer_type]
            hidden, _, _ = layer(hidden, None, held, shared_kv=(held.keys, held.values), offset=held.position)
        found: mx.array = self.model.norm(hidden)
        return found

    def logits(self, hidden: mx.array) -> tuple[mx.array, mx.array | None]:
        """Logits [1, 1, k] of one token, and the ids of their columns if they are not all."""
        if "masked_embedding" not in self:
            output = self.lm_head if "lm_head" in self else self.model.embed_tokens.as_linear
            return output(hidden), None
        groups = self.masked_embedding
        scores = groups.centroids(hidden)[0, -1]
        best = mx.argpartition(scores, kth=-self._top_groups)[-self._top_groups :]
        ids = groups.token_ordering.reshape(len(scores), -1)[best].flatten()
        return hidden @ self.model.embed_tokens(ids).T, ids


class _Keys:
    """Keys and values of a cache entry that nothing is appended to, as an entry of mlx-lm.

    `position`: of the newest of them. Of a sliding window, those that a plain step would see.
    """

    def __init__(self, entry: Any) -> None:
        self.position = int(entry.offset) - 1
        if is_window(entry):
            self.keys, self.values = (held[..., -entry.max_size :, :] for held in window_in_order(entry))
            return
        count = columns_of(entry)
        if hasattr(entry, "bits"):  # tells mlx-lm's attention that keys are quantised
            self.bits, self.group_size = entry.bits, entry.group_size
        self.keys, self.values = (_first(held, count) for held in (entry.keys, entry.values))

    def update_and_fetch(self, keys: Any, values: Any) -> tuple[Any, Any]:
        return keys, values


def _first(held: Any, count: int) -> Any:
    if isinstance(held, mx.array):
        return held[..., :count, :]
    return tuple(part[..., :count, :] for part in held)


def assistant(parts: SplitModel, weights: Weights, config: dict[str, Any]) -> DraftHead:
    """The assistant with the `config` and tensors of its folder. Raises `ValueError` if they do not fit."""
    inner = config["text_config"]
    # Whatever the config says, no layer computes keys or has separate inputs.
    fixed = {"num_kv_shared_layers": inner["num_hidden_layers"], "hidden_size_per_layer_input": 0}
    args = ModelArgs.from_dict({**inner, **fixed, "enable_moe_block": False})
    tied = bool(config.get("tie_word_embeddings", True))
    groups = int(config["num_centroids"]) if config.get("use_ordered_embeddings") else 0
    if groups and not tied:
        raise ValueError("an output layer that is not tied to the embedding cannot be scored in groups")
    if groups and args.vocab_size % groups:
        raise ValueError(f"{args.vocab_size:,} tokens are not {groups:,} groups of equal size")
    target = parts.owner
    size, top = int(target.args.hidden_size), int(config.get("centroid_intermediate_top_k", 32))
    head = Assistant(args, size, groups, min(top, groups), own_output=not tied)
    dropped = (*_LEFT_OUT, *(("lm_head.",) if tied else ()))
    kept = {name: value for name, value in weights.items() if not any(part in name for part in dropped)}
    if groups:
        name = "masked_embedding.token_ordering"
        kept[name] = kept[name].astype(mx.int32)
    head = filled(head, kept)
    sources = _sources(target, {layer.layer_type for layer in head.model.layers})
    scale = float(target.model.embed_scale)

    def step(ids: mx.array, states: mx.array, cache: Sequence[Any]) -> tuple[mx.array, mx.array]:
        keys = {kind: _Keys(cache[number]) for kind, number in sources.items()}
        hidden = head(parts.embed(ids) * scale, states, keys)
        return hidden, head.post_projection(hidden)

    return DraftHead(head, parts, step, head.logits)


def _sources(target: Any, kinds: set[str]) -> dict[str, int]:
    """For each type of layer, the last layer of the model that has a cache entry."""
    entries = len(target.make_cache())
    found = {layer.layer_type: number for number, layer in enumerate(target.model.layers[:entries])}
    if missing := sorted(kinds - found.keys()):
        raise ValueError(f"the model has no layers of the type {missing[0]}")
    return {kind: found[kind] for kind in kinds}
