"""MTP heads: found in every layout, and equal to the published formula, written here in numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.models.cache import KVCache

from core.cli.models import _facts
from core.models.catalogue import Catalogue
from core.models.config import Machine
from core.models.loader import load
from core.models.mtp import MtpHead, load_head
from core.models.mtp_files import head_bytes, head_tensors
from core.models.parts import SplitModel, split
from tests.core.heads import CONFIGS, OWN_NAMES, Raw, model_of, raw_head, write_headed_model

HEADS = list(CONFIGS)
ROWS = 7


def norm(x: Any, weight: Any, eps: float = 1e-5) -> Any:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def silu(x: Any) -> Any:
    return x / (1 + np.exp(-x))


def softmax(x: Any) -> Any:
    grown = np.exp(x - x.max(-1, keepdims=True))
    return grown / grown.sum(-1, keepdims=True)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def rotated(x: Any, inverse: Any, *, pairs: bool = False) -> Any:
    """[rows, heads, size] with the frequencies `inverse`, of numbers in halves or in neighbouring pairs."""
    angles = np.arange(x.shape[0])[:, None, None] * inverse
    cos, sin = np.cos(angles), np.sin(angles)
    count = len(inverse)
    out = x.copy()
    one, two = (
        (slice(0, 2 * count, 2), slice(1, 2 * count, 2))
        if pairs
        else (slice(0, count), slice(count, 2 * count))
    )
    out[..., one] = x[..., one] * cos - x[..., two] * sin
    out[..., two] = x[..., one] * sin + x[..., two] * cos
    return out


def attended(q: Any, k: Any, v: Any, scale: float) -> Any:
    """Causal attention, [rows, heads, size] each; keys are shared by groups of heads."""
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    scores = np.einsum("qhd,khd->hqk", q, k) * scale
    scores = np.where(np.tri(len(q), dtype=bool)[None], scores, -np.inf)
    return np.einsum("hqk,khd->qhd", softmax(scores), v).reshape(len(q), -1)


def swiglu(w: Raw, path: str, x: Any) -> Any:
    gate, up, down = (w[f"{path}.{name}_proj.weight"] for name in ("gate", "up", "down"))
    return (silu(x @ gate.T) * (x @ up.T)) @ down.T


def frequencies(base: float, size: int) -> Any:
    return base ** -(np.arange(0, size, 2) / size)


def latent_attention(w: Raw, args: Any, x: Any) -> Any:
    """DeepSeek V2 (arXiv 2405.04434), with the frequencies of YaRN."""
    heads, nope, rope = args.num_attention_heads, args.qk_nope_head_dim, args.qk_rope_head_dim
    q = norm(x @ w["q_a_proj.weight"].T, w["q_a_layernorm.weight"], 1e-6) @ w["q_b_proj.weight"].T
    q = q.reshape(len(x), heads, nope + rope)
    latent, key = np.split(x @ w["kv_a_proj_with_mqa.weight"].T, [args.kv_lora_rank], -1)
    both = norm(latent, w["kv_a_layernorm.weight"], 1e-6) @ w["kv_b_proj.weight"].T
    both = both.reshape(len(x), heads, nope + args.v_head_dim)
    scaling = args.rope_scaling
    factor, original = scaling["factor"], scaling["original_max_position_embeddings"]
    plain = frequencies(args.rope_theta, rope)

    def turns(count: float) -> float:
        return rope * np.log(original / (count * 2 * np.pi)) / (2 * np.log(args.rope_theta))

    low, high = max(np.floor(turns(32)), 0), min(np.ceil(turns(1)), rope - 1)
    ramp = np.clip((np.arange(rope // 2) - low) / max(high - low, 1e-3), 0, 1)
    inverse = plain / factor * ramp + plain * (1 - ramp)
    q_rope = rotated(q[..., nope:], inverse, pairs=True)
    k_rope = np.repeat(rotated(key[:, None], inverse, pairs=True), heads, 1)
    grown = 0.1 * scaling["mscale_all_dim"] * np.log(factor) + 1
    out = attended(
        np.concatenate([q[..., :nope], q_rope], -1),
        np.concatenate([both[..., :nope], k_rope], -1),
        both[..., nope:],
        (nope + rope) ** -0.5 * grown * grown,
    )
    return out @ w["o_proj.weight"].T


def attention(kind: str, w: Raw, args: Any, x: Any) -> Any:
    heads, size = args.num_attention_heads, x.shape[-1] // args.num_attention_heads
    q, k, v = (x @ w[f"{n}_proj.weight"].T + w.get(f"{n}_proj.bias", 0.0) for n in "qkv")
    gate = None
    if kind == "qwen":
        q, gate = np.split(q.reshape(len(x), heads, -1), 2, -1)
    q, k, v = (each.reshape(len(x), -1, size) for each in (q, k, v))
    if "q_norm.weight" in w:
        q, k = norm(q, w["q_norm.weight"]), norm(k, w["k_norm.weight"])
    part = size if kind == "mimo" else size // 2
    inverse = frequencies(10000.0, part)
    out = attended(rotated(q, inverse), rotated(k, inverse), v, size**-0.5)
    if gate is not None:
        out = out * sigmoid(gate.reshape(len(x), -1))
    return out @ w["o_proj.weight"].T


def mixture(kind: str, w: Raw, args: Any, x: Any) -> Any:
    if "mlp.gate.weight" not in w:
        return swiglu(w, "mlp", x)
    scores = x @ w["mlp.gate.weight"].T
    likely = softmax(scores) if kind == "qwen" else sigmoid(scores)
    ranked = likely + w.get("mlp.gate.e_score_correction_bias", 0.0)
    if kind == "deep":  # the best of two groups of two
        groups = ranked.reshape(len(x), 2, 2).sum(-1)
        ranked = np.where(np.repeat(groups == groups.max(-1, keepdims=True), 2, -1), ranked, 0.0)
    out = np.zeros_like(x)
    for row in range(len(x)):
        best = np.argsort(-ranked[row])[:2]
        share = likely[row, best] / likely[row, best].sum()
        for weight, expert in zip(share, best):
            out[row] += weight * swiglu(w, f"mlp.experts.{expert}", x[row])
    if kind == "qwen":
        return out + sigmoid(x @ w["mlp.shared_expert_gate.weight"].T) * swiglu(w, "mlp.shared_expert", x)
    return out * args.routed_scaling_factor + swiglu(w, "mlp.shared_experts", x)


def formula(name: str, raw: Raw, args: Any, embeddings: Any, states: Any) -> Any:
    """The head's hidden states in float64, from raw tensors."""
    kind, own = name[:4], OWN_NAMES[name[:4]]
    whole = 1.0 if kind == "qwen" else 0.0
    w = {key: (v + whole if "norm" in key else v).astype(np.float64) for key, v in raw.items()}
    both = [
        norm(embeddings, w[f"{own['embedding_norm']}.weight"]),
        norm(states, w[f"{own['hidden_norm']}.weight"]),
    ]
    x = np.concatenate(both[::-1] if kind == "mimo" else both, -1) @ w[f"{own['projection']}.weight"].T
    prefix = f"{own['block']}." if "block" in own else ""
    block = {key.removeprefix(prefix): value for key, value in w.items() if key.startswith(prefix)}
    part = {key.removeprefix("self_attn."): value for key, value in block.items()}
    inner = norm(x, block["input_layernorm.weight"])
    x = x + (latent_attention(part, args, inner) if kind == "deep" else attention(kind, part, args, inner))
    x = x + mixture(kind, block, args, norm(x, block["post_attention_layernorm.weight"]))
    return norm(x, w[f"{own['norm']}.weight"])


@pytest.mark.parametrize("layout", ["raw", "beside", "bare", "quantised"])
@pytest.mark.parametrize("name", HEADS)
def test_the_head_equals_the_formula(name: str, layout: Any, tmp_path: Path) -> None:
    raw = write_headed_model(tmp_path, name, layout)
    model = model_of(name)
    head = load_head(model, tmp_path)
    assert isinstance(head, MtpHead), head
    parts = split(model)
    assert isinstance(parts, SplitModel)
    rng = np.random.default_rng(1)
    args = getattr(model, "language_model", model).args
    states = rng.normal(size=(ROWS, args.hidden_size))
    embeddings = parts.embed(mx.array([list(range(4, 4 + ROWS))]))
    expected = formula(name, raw, args, np.array(embeddings[0], np.float64), states)
    output = np.array(parts.output(mx.eye(args.hidden_size)[None])[0], np.float64)
    cache = KVCache()
    # As it is used: some rows at once, then one at a time.
    rows = mx.array(states[None].astype(np.float32))
    got = [head(embeddings[:, :4], rows[:, :4], cache)]
    got += [head(embeddings[:, at : at + 1], rows[:, at : at + 1], cache) for at in range(4, ROWS)]
    logits = parts.output(mx.concatenate(got, axis=1))[0]
    assert np.abs(np.array(logits) - expected @ output).max() < 1e-4


@pytest.mark.parametrize("name", ["qwen3_5", "qwen3_5_moe", "mimo"])
def test_a_model_with_a_head_in_its_own_files_loads(name: str, tmp_path: Path) -> None:
    write_headed_model(tmp_path, name, "raw")
    assert head_bytes(tmp_path) > 0
    loaded = load(str(tmp_path))
    assert isinstance(load_head(loaded.model, tmp_path), MtpHead)


def test_a_declared_head_whose_tensors_are_missing_is_none(tmp_path: Path) -> None:
    write_headed_model(tmp_path, "qwen3_5")
    (tmp_path / "mtp.safetensors").unlink()
    assert not head_tensors(tmp_path, {**CONFIGS["qwen3_5"][0], "mtp_num_hidden_layers": 1})
    assert load_head(model_of("qwen3_5"), tmp_path) == "its files contain no MTP head"


def test_a_head_that_does_not_fit_says_why(tmp_path: Path) -> None:
    model = model_of("qwen3_5")
    raw = raw_head("qwen3_5", model)
    write_headed_model(tmp_path, "qwen3_5")
    for spoiled, reason in (
        (
            {"layers.0.mlp.extra.weight": np.ones((2, 2), np.float32)},
            "not those of any of the model's blocks",
        ),
        ({"fc.weight": np.ones((3, 3), np.float32)}, "shape"),
        ({"fc.weight": raw["fc.weight"] * np.nan}, "NaN or infinity"),
    ):
        weights = {key: mx.array(value) for key, value in (raw | spoiled).items()}
        mx.save_safetensors(str(tmp_path / "mtp.safetensors"), weights)
        assert reason in str(load_head(model, tmp_path))


def test_fp8_weights_are_expanded(tmp_path: Path) -> None:
    model = model_of("qwen3_5")
    raw = write_headed_model(tmp_path, "qwen3_5")
    weights = {key: mx.array(value) for key, value in raw.items()}
    stored = mx.to_fp8(weights["fc.weight"] * 4)
    beside = {**weights, "fc.weight": stored, "fc.weight_scale_inv": mx.full((1, 1), 0.25)}
    mx.save_safetensors(str(tmp_path / "mtp.safetensors"), beside)
    head = load_head(model, tmp_path)
    assert isinstance(head, MtpHead), head
    assert mx.abs(head.projection.weight - weights["fc.weight"]).max().item() < 0.1


def test_the_catalogue_lists_the_head(tmp_path: Path) -> None:
    catalogue = Catalogue(Machine(1 << 40, expands=True))
    write_headed_model(tmp_path / "with", "mimo")
    write_headed_model(tmp_path / "without", "mimo")
    (tmp_path / "without" / "mtp.safetensors").unlink()
    found = {name: catalogue.take(str(tmp_path / name)) for name in ("with", "without")}
    assert found["with"].head_bytes > 0
    assert "MTP head included" in _facts(found["with"])
    assert found["without"].head_bytes == 0
    assert "MTP head included" not in _facts(found["without"])
