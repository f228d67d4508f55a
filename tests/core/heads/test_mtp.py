"""MTP heads: found in every layout, and equal to the published formula, written here in numpy."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from core.cli.models import _facts
from core.folders.catalogue import Catalogue
from core.folders.config import Machine
from core.folders.heads import heads
from core.heads.draft_head import DraftHead
from core.heads.head_loader import load_head
from core.kv.mlx_lm_caches import full_cache
from core.models.loader import load
from tests.core.headed_models import (
    CONFIGS,
    OWN,
    OWN_NAMES,
    PLACES,
    SEPARATE,
    Layout,
    Mode,
    Raw,
    model_of,
    separate_folder,
    write_headed_model,
)
from tests.core.toy import write_toy_model

HEADS = list(CONFIGS)
ROWS = 7


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path / "home"))


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


def _drawn() -> list[tuple[str, Layout]]:
    """Every kind of head, place, naming and form of weights, in random combinations."""
    rng = random.Random(57)
    modes: tuple[Mode, ...] = ("", "affine", "mxfp4", "mxfp8")
    names = [name for name in HEADS for _ in range(4)]
    places = [*PLACES * 4][: len(names)]
    rng.shuffle(places)
    return [
        (name, Layout(place, place != OWN and rng.random() < 0.6, modes[at % 4]))
        for at, (name, place) in enumerate(zip(names, places))
    ]


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "layout"), _drawn(), ids=str)
def test_the_head_of_every_layout_equals_the_formula(name: str, layout: Layout, tmp_path: Path) -> None:
    folder = tmp_path / "Tiny-8bit"
    raw = write_headed_model(folder, name, layout)
    entry = Catalogue(Machine(1 << 40, expands=True)).take(str(folder))
    assert (entry.problem, entry.heads[0].problem) == ("", "")
    assert entry.heads[0].size_bytes > 0
    model = load(str(folder)).model
    head = load_head(model, folder)
    assert isinstance(head, DraftHead), head
    parts = head.parts
    rng = np.random.default_rng(1)
    args = getattr(model, "language_model", model).args
    states = rng.normal(size=(ROWS, args.hidden_size))
    ids = mx.array([list(range(4, 4 + ROWS))])
    embeddings = parts.embed(ids)
    expected = formula(name, raw, args, np.array(embeddings[0], np.float64), states)
    output = np.array(parts.output(mx.eye(args.hidden_size)[None])[0], np.float64)
    cache = full_cache()
    # As it is used: some rows at once, then one at a time.
    rows = mx.array(states[None].astype(np.float32))
    got = [head.step(ids[:, :4], rows[:, :4], cache)[0]]
    got += [head.step(ids[:, at : at + 1], rows[:, at : at + 1], cache)[0] for at in range(4, ROWS)]
    logits = head.output(mx.concatenate(got, axis=1))[0][0]
    assert np.abs(np.array(logits) - expected @ output).max() < 1e-4


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-8])


def _changed(**tensors: Any) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        weights = dict(mx.load(str(file)))  # type: ignore[arg-type]
        prefix = "mtp." if "mtp.norm.weight" in weights else ""
        given = {key.replace("__", "."): value for key, value in tensors.items()}
        weights |= {prefix + key: value for key, value in given.items() if value is not None}
        gone = [prefix + key for key, value in given.items() if value is None]
        mx.save_safetensors(str(file), {key: value for key, value in weights.items() if key not in gone})

    return change


# What is wrong, the reason, and whether the files show it without a look at the numbers.
FAULTS: dict[str, tuple[Callable[[Path], None], str, bool]] = {
    "cut": (_cut, "is cut off", True),
    "fifo": (lambda file: (file.unlink(), os.mkfifo(file)), "not a regular file", True),  # type: ignore[dict-item]
    "part": (_changed(fc__weight=None), "has no projection", True),
    "size": (_changed(norm__weight=mx.ones(48)), "norm.weight has 48 rows, the model's 32", True),
    "rows": (_changed(layers__0__mlp__up_proj__weight=mx.ones((96, 32))), "96 rows, the model's 64", True),
    "columns": (_changed(fc__weight=mx.ones((32, 3))), "shape", False),
    "block": (_changed(layers__0__mlp__extra__weight=mx.ones((2, 2))), "any of the model's blocks", False),
    "nan": (_changed(fc__weight=mx.full((32, 64), mx.nan)), "NaN or infinity", False),
    "form": (_changed(fc__scales=mx.ones((32, 4))), "32 bits in groups of 16", False),
    "none": (_changed(fc__scales=mx.ones((32, 0))), "“projection.scales” is empty", False),
    "scalar": (_changed(fc__scales=mx.array(1.0)), "cannot be loaded", False),
}


@pytest.mark.sweep
@pytest.mark.parametrize("fault", FAULTS)
def test_a_damaged_or_foreign_head_leaves_the_model_working(fault: str, tmp_path: Path) -> None:
    place = random.Random(fault).choice([each for each in PLACES if each != OWN])
    folder = tmp_path / "Tiny-8bit"
    write_headed_model(folder, "qwen3_5", Layout(place, bare=True))
    spoil, reason, shown = FAULTS[fault]
    spoil(separate_folder(folder) / "model.safetensors" if place == SEPARATE else folder / place)
    entry = Catalogue(Machine(1 << 40, expands=True)).take(str(folder))
    assert entry.problem == ""
    assert (reason in entry.heads[0].problem) == shown == bool(entry.heads[0].problem)
    loaded = load(str(folder))
    assert loaded.info.has_head != shown
    why = load_head(loaded.model, folder)
    assert reason in str(why)
    name = separate_folder(folder).name if place == SEPARATE else place
    assert name in str(why)
    # A good head in another place is used instead.
    write_headed_model(
        folder, "qwen3_5", Layout("mtp.safetensors" if "/" in place else "mtp/model.safetensors")
    )
    assert not heads(folder)[0].problem
    assert isinstance(load_head(loaded.model, folder), DraftHead)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"hidden_size": 48}, "its hidden_size is 48, the model's 32"),
        ({"vocab_size": 9}, "its vocab_size is 9"),
        ({"model_type": "qwen3_5_moe"}, "is for models of the type qwen3_5_moe, not qwen3_5"),
        ({"model_type": "mimo_mtp"}, "is for models of the type mimo, not qwen3_5"),
        (None, "its tokenizer is another one"),
    ],
)
def test_a_separate_head_is_paired_by_type_sizes_and_tokenizer(
    change: dict[str, Any] | None, reason: str, tmp_path: Path
) -> None:
    """One that fits is used under any name; one of the model's name that does not fit says why."""
    folder = tmp_path / "Tiny-8bit"
    write_headed_model(folder, "qwen3_5", Layout(SEPARATE, bare=True))
    separate = separate_folder(folder)
    named_otherwise = separate.rename(tmp_path / "other")
    assert [head.problem for head in heads(folder)] == [""]
    named_otherwise.rename(separate)
    path = separate / ("config.json" if change else "tokenizer.json")
    found = json.loads(path.read_text())
    if change:
        found["text_config"] |= change
    else:
        found["model"]["vocab"]["another"] = 1 + max(found["model"]["vocab"].values())
    path.write_text(json.dumps(found))
    (head,) = heads(folder)
    assert reason in head.problem
    catalogue = Catalogue(Machine(1 << 40, expands=True))
    assert catalogue.take(str(folder)).heads[0].problem.endswith(f"{reason}.") or change
    row = catalogue.take(str(separate))
    assert row.problem == "A drafting head, not a complete model."
    assert row.hint == "It fits none of the models on this computer."
    separate.rename(tmp_path / "other")
    assert heads(folder) == ()


def test_a_model_of_a_type_without_heads_is_not_refused(tmp_path: Path) -> None:
    write_toy_model(tmp_path)
    for name in ("model-mtp.safetensors", "mtp.safetensors"):
        mx.save_safetensors(str(tmp_path / name), {"fc.weight": mx.ones((2, 2))})
    (head, _) = heads(tmp_path)
    assert "heads of the type llama are not supported" in head.problem
    own = dict(mx.load(str(tmp_path / "model.safetensors")))  # type: ignore[arg-type]
    mx.save_safetensors(str(tmp_path / "model.safetensors"), own | {"mtp.fc.weight": mx.ones((2, 2))})
    assert not load(str(tmp_path)).info.has_head


def test_fp8_weights_are_expanded(tmp_path: Path) -> None:
    model = model_of("qwen3_5")
    raw = write_headed_model(tmp_path, "qwen3_5")
    weights = {key: mx.array(value) for key, value in raw.items()}
    stored = mx.to_fp8(weights["fc.weight"] * 4)
    beside = {**weights, "fc.weight": stored, "fc.weight_scale_inv": mx.full((1, 1), 0.25)}
    mx.save_safetensors(str(tmp_path / "mtp.safetensors"), beside)
    head = load_head(model, tmp_path)
    assert isinstance(head, DraftHead), head
    module: Any = head.module
    assert mx.abs(module.projection.weight - weights["fc.weight"]).max().item() < 0.1


def test_the_catalogue_lists_and_offers_heads(tmp_path: Path) -> None:
    catalogue = Catalogue(Machine(1 << 40, expands=True))
    folder = tmp_path / "Qwen3.5-4B-MLX-4bit"
    write_headed_model(folder, "qwen3_5", Layout(SEPARATE))
    entry = catalogue.take(str(folder))
    assert "MTP head included" in _facts(entry)
    kinds = {"MTP head": "", "DFlash drafter": "z-lab/Qwen3.5-4B-DFlash"}
    assert {each.label: each.repository for each in entry.heads} == kinds
    assert catalogue.take(str(separate_folder(folder))).hint == "Qwen3.5 4B drafts with it."
    shutil.rmtree(separate_folder(folder))
    entry = catalogue.entry(str(folder))
    assert "MTP head included" not in _facts(entry)
    offers = {"MTP head": "mlx-community/Qwen3.5-4B-MTP-4bit", "DFlash drafter": "z-lab/Qwen3.5-4B-DFlash"}
    assert {each.label: each.repository for each in entry.heads} == offers
    renamed = folder.rename(tmp_path / "Tuned-4B")
    assert catalogue.take(str(renamed)).heads == ()
