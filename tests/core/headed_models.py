"""Tiny random models with a random MTP head, as folders, in every layout that repositories have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import mlx.core as mx
import numpy as np
from mlx.utils import tree_flatten

from core.heads.mtp import _stacked
from tests.core.architectures import ARCHITECTURES, VOCABULARY, _config, build
from tests.core.toy import write_tokenizer

CONTEXT_TOKENS = 2048
Raw = dict[str, Any]
OWN, SEPARATE = "the model's own file", "a separate folder"
PLACES = (
    OWN,
    "mtp.safetensors",
    "model-mtp.safetensors",
    "model_mtp-00001-of-00001.safetensors",
    "mtp/model.safetensors",
    "mtp/weights.safetensors",
    SEPARATE,
)
Mode = Literal["", "affine", "mxfp4", "mxfp8"]


class Layout(NamedTuple):
    """`bare`: without the prefix, norms and experts as mlx-lm has them. `mode`: of quantised weights."""

    place: str = "mtp.safetensors"
    bare: bool = False
    mode: Mode = ""


BESIDE = Layout()

_LINEAR = {
    "full_attention_interval": 2,
    "linear_num_value_heads": 4,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "linear_conv_kernel_dim": 4,
}
_EXPERTS = {
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "shared_expert_intermediate_size": 32,
    "moe_intermediate_size": 32,
    "norm_topk_prob": True,
}
_QWEN3_NEXT = _config(
    "qwen3_next",
    2,
    **_LINEAR,
    **_EXPERTS,
    decoder_sparse_step=1,
    mlp_only_layers=[],
    partial_rotary_factor=0.5,
)
_QWEN3_5_MOE = {**ARCHITECTURES["qwen3_5"].config, **_EXPERTS, "model_type": "qwen3_5_moe"}
_GLM = _config(
    "glm4_moe",
    2,
    moe_intermediate_size=32,
    norm_topk_prob=True,
    n_group=1,
    topk_group=1,
    n_shared_experts=1,
    n_routed_experts=4,
    routed_scaling_factor=1.5,
    num_experts_per_tok=2,
    first_k_dense_replace=1,
    rope_scaling=None,
    use_qk_norm=True,
    attention_bias=True,
    partial_rotary_factor=0.5,
    tie_word_embeddings=False,
)
_MIMO = _config("mimo", 2, num_nextn_predict_layers=1)
_DEEPSEEK = {**ARCHITECTURES["deepseek_v3"].config, "q_lora_rank": 32, "kv_lora_rank": 32}

# The config and the scale of weights, as in `architectures`.
CONFIGS: Mapping[str, tuple[Mapping[str, Any], float]] = {
    "qwen3_next": (_QWEN3_NEXT, 1.6),
    "qwen3_5": (ARCHITECTURES["qwen3_5"].config, 1.6),
    "qwen3_5_moe": (_QWEN3_5_MOE, 1.6),
    "glm4_moe": (_GLM, 2.4),
    "deepseek_v3": (_DEEPSEEK, 2.5),
    "mimo": (_MIMO, 2.4),
}
PREFIX = {"qwen": "mtp.", "glm4": "model.layers.2.", "deep": "model.layers.2.", "mimo": "model.mtp_layers.0."}
OWN_NAMES = {
    "qwen": {
        "embedding_norm": "pre_fc_norm_embedding",
        "hidden_norm": "pre_fc_norm_hidden",
        "projection": "fc",
        "norm": "norm",
        "block": "layers.0",
    },
    "glm4": {
        "embedding_norm": "enorm",
        "hidden_norm": "hnorm",
        "projection": "eh_proj",
        "norm": "shared_head.norm",
    },
    "mimo": {
        "embedding_norm": "token_layernorm",
        "hidden_norm": "hidden_layernorm",
        "projection": "input_proj",
        "norm": "final_layernorm",
    },
}
OWN_NAMES["deep"] = OWN_NAMES["glm4"]


def model_of(name: str) -> Any:
    """The model without its head."""
    config, scale = CONFIGS[name]
    return build({**config, "max_position_embeddings": CONTEXT_TOKENS}, scale)


def raw_head(name: str, model: Any, seed: int = 0) -> Raw:
    """Random tensors of the head, numpy float32, named and shaped as in the published repository."""
    rng = np.random.default_rng(seed)
    owner = getattr(model, "language_model", model)
    kind = name[:4]
    own = OWN_NAMES[kind]
    size = owner.args.hidden_size
    raw: Raw = {}

    def random(*shape: int) -> Any:
        return (rng.normal(size=shape) * 1.5 / np.sqrt(shape[-1])).astype(np.float32)

    def norm(length: int) -> Any:
        less = 1.0 if kind == "qwen" else 0.0
        return (rng.uniform(0.7, 1.3, length) - less).astype(np.float32)

    raw[f"{own['projection']}.weight"] = random(size, 2 * size)
    for part in ("embedding_norm", "hidden_norm", "norm"):
        raw[f"{own[part]}.weight"] = norm(size)
    layer = next(each for each in reversed(owner.model.layers) if hasattr(each, "self_attn"))
    block = f"{own['block']}." if "block" in own else ""
    for path, value in tree_flatten(layer.parameters()):
        if path.endswith("norm.weight"):
            raw[block + path] = norm(value.shape[0])
        elif ".switch_mlp." in path:
            for expert in range(value.shape[0]):
                raw[block + path.replace("switch_mlp", f"experts.{expert}")] = random(*value.shape[1:])
        elif "embed_q" not in path and "unembed_out" not in path:
            raw[block + path] = random(*value.shape)
    if kind == "deep":
        args = owner.args
        rows = args.num_attention_heads * (args.qk_nope_head_dim + args.v_head_dim)
        raw["self_attn.kv_b_proj.weight"] = random(rows, args.kv_lora_rank)
    if kind in ("deep", "glm4"):  # copies that a head does not need
        raw["embed_tokens.weight"] = raw["shared_head.head.weight"] = random(VOCABULARY, size)
    return raw


def separate_folder(folder: Path) -> Path:
    """Where a model's head is in the layout `SEPARATE`."""
    return folder.with_name(f"{folder.name}-MTP-4bit")


def write_headed_model(folder: Path, name: str, layout: Layout = BESIDE, seed: int = 0) -> Raw:
    """Writes the model with its head; returns `raw_head`, rounded if quantised."""
    model = model_of(name)
    raw = raw_head(name, model, seed)
    head = {key: mx.array(value) for key, value in raw.items()}
    if layout.bare and name.startswith("qwen"):
        head = {key: value + 1.0 if "norm" in key else value for key, value in head.items()}
    if layout.mode:
        head = _quantised(head, raw, layout.mode)
    if layout.bare:
        head = _stacked(head)
    else:
        head = {PREFIX[name[:4]] + key: value for key, value in head.items()}
    weights = dict(tree_flatten(model.parameters()))
    config = {**CONFIGS[name][0], "max_position_embeddings": CONTEXT_TOKENS}
    file = folder / layout.place
    if layout.place == SEPARATE:
        file = separate_folder(folder) / "model.safetensors"
        file.parent.mkdir(parents=True)
        kind = "qwen3_5" if name.startswith("qwen") else name
        own = {"model_type": f"{kind}_mtp", "text_config": {**config, "num_hidden_layers": 1}}
        (file.parent / "config.json").write_text(json.dumps(own))
        write_tokenizer(file.parent)
    if layout.place == OWN:
        weights |= head
    else:  # with copies of the model's tensors, and a part of a second head
        others = ("lm_head.weight", "model.embed_tokens.weight", "model.layers.3.mlp.up_proj.weight")
        head |= dict.fromkeys(others, mx.eye(2))
        file.parent.mkdir(parents=True, exist_ok=True)
        mx.save_safetensors(str(file), head)
    folder.mkdir(parents=True, exist_ok=True)
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    (folder / "config.json").write_text(json.dumps(config))
    write_tokenizer(folder)
    return raw


def _quantised(head: dict[str, mx.array], raw: Raw, mode: Mode) -> dict[str, mx.array]:
    """In groups of 32; `raw` receives what is left of the weights."""
    form: dict[str, Any] = {"group_size": 32, "bits": 4 if mode == "mxfp4" else 8, "mode": mode}
    found = dict(head)
    for key, value in head.items():
        if value.ndim == 2 and key.endswith("_proj.weight") and "kv_b" not in key:
            parts = mx.quantize(value, **form)
            names = (key, *(f"{key.removesuffix('.weight')}.{part}" for part in ("scales", "biases")))
            found |= dict(zip(names, parts))
            raw[key] = np.array(mx.dequantize(*parts, **form, dtype=mx.float32))
    return found
