"""Tiny random models that see, as real folders with the tensor names of published conversions; and images."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.utils import tree_flatten
from PIL import Image as Pillow
from tokenizers import Tokenizer

from core.documents.images import describe
from core.events import Image, Message, Role
from core.vision.eyes import processor_of
from core.vision.family import Family
from core.vision.gemma3 import family as gemma3_family
from core.vision.gemma4 import family as gemma4_family
from core.vision.qwen3_5 import family as qwen3_5_family
from tests.core.architectures import ARCHITECTURES, build
from tests.core.toy import SPECIALS, toy_tokenizer

CONTEXT_TOKENS = 2048
_MADE = {
    "qwen3_5": qwen3_5_family,
    "qwen3_5_moe": qwen3_5_family,
    "gemma3": gemma3_family,
    "gemma4": gemma4_family,
    "gemma4 both ways": gemma4_family,
}
_QWEN = {"size": {"shortest_edge": 8 * 8 * 4, "longest_edge": 8 * 8 * 40}}
PROCESSORS: dict[str, dict[str, Any]] = {
    "qwen3_5": _QWEN,
    "qwen3_5_moe": _QWEN,
    "gemma3": {"size": {"height": 32, "width": 32}},
    "gemma4": {"max_soft_tokens": 12},
    "gemma4 both ways": {"max_soft_tokens": 12},
}
# The tokens around images, by family, with what the template writes for one.
_GEMMA4 = ("<|image>", "<|image|>", "<image|>")
_PADS = ("<|vision_start|>", "<|image_pad|>", "<|vision_end|>")
TOKENS = {
    "qwen3_5": _PADS,
    "qwen3_5_moe": _PADS,
    "gemma3": ("<start_of_image>", "<image_soft_token>", "<end_of_image>"),
    "gemma4": _GEMMA4,
    "gemma4 both ways": _GEMMA4,
}
WRITTEN = {
    "qwen3_5": "".join(_PADS),
    "qwen3_5_moe": "".join(_PADS),
    "gemma3": "<start_of_image>",
    "gemma4": "<|image|>",
    "gemma4 both ways": "<|image|>",
}
TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{% if m['content'] is string %}{{ m['content'] }}{% else %}"
    "{% for part in m['content'] %}{% if part['type'] == 'image' %}PLACE{% else %}{{ part['text'] }}"
    "{% endif %}"
    "{% endfor %}{% endif %}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
VOCABULARY = 272
GROUP = 32


def config_of(family: str) -> dict[str, Any]:
    """The configuration of a tiny model."""
    if family.startswith("gemma"):
        return _gemma_config(family)
    text = {**ARCHITECTURES["qwen3_5"].config, "vocab_size": VOCABULARY}
    text |= {"max_position_embeddings": CONTEXT_TOKENS, "head_dim": 16, "eos_token_id": 0}
    text["model_type"] = f"{family}_text"
    if family == "qwen3_5_moe":
        text |= {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
        text["shared_expert_intermediate_size"] = 32
    text["rope_parameters"] = {
        "type": "default",
        "rope_theta": 10000.0,
        "partial_rotary_factor": 0.75,
        "mrope_section": [2, 2, 2],
    }
    vision = {
        "model_type": family,
        "depth": 2,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_heads": 2,
        "out_hidden_size": text["hidden_size"],
        "patch_size": 4,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "num_position_embeddings": 36,
        "in_channels": 3,
        "deepstack_visual_indexes": [],
    }
    return {"model_type": family, "text_config": text, "vision_config": vision, "eos_token_id": 0}


def _gemma_config(family: str) -> dict[str, Any]:
    kind = family.split()[0]
    text: dict[str, Any] = {
        "model_type": f"{kind}_text",
        "hidden_size": 64,
        "num_hidden_layers": 4,
        "vocab_size": VOCABULARY,
        "intermediate_size": 96,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "sliding_window": 24,
        "sliding_window_pattern": 2,
        "max_position_embeddings": CONTEXT_TOKENS,
        "rms_norm_eps": 1e-6,
        "eos_token_id": 0,
    }
    vision: dict[str, Any] = {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "patch_size": 4,
    }
    if kind == "gemma3":
        text |= {"query_pre_attn_scalar": 16, "mm_tokens_per_image": 16, "rope_theta": 1e6}
        vision |= {"model_type": "siglip_vision_model", "image_size": 32}
    else:
        text |= {"global_head_dim": 32, "vocab_size_per_layer_input": VOCABULARY}
        text |= {"num_kv_shared_layers": 1, "hidden_size_per_layer_input": 8}
        # Both have defaults, which differ between mlx-lm and mlx-vlm.
        text["rope_parameters"] = {
            "full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 1e6, "rope_type": "proportional"},
            "sliding_attention": {"partial_rotary_factor": 1.0, "rope_theta": 1e4, "rope_type": "default"},
        }
        vision |= {"model_type": "gemma4_vision", "num_key_value_heads": 2, "head_dim": 16}
        vision |= {"global_head_dim": 16, "pooling_kernel_size": 3, "default_output_length": 12}
        vision |= {"position_embedding_size": 64, "use_clipped_linears": "both" in family}
        if "both" in family:
            text |= {"use_bidirectional_attention": "vision", "hidden_size_per_layer_input": 0}
            vision["standardize"] = True
    found = {"model_type": kind, "text_config": text, "vision_config": vision, "eos_token_id": 0}
    return {**found, "vocab_size": VOCABULARY, "mm_tokens_per_image": 16}


def starter_size() -> tuple[dict[str, Any], dict[str, Any]]:
    """Configurations of a Qwen3.5 of the starter model's size and its processor, for measuring time."""
    config = config_of("qwen3_5")
    text = {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "head_dim": 64}
    text |= {"num_attention_heads": 9, "num_key_value_heads": 3, "full_attention_interval": 4}
    text |= {"linear_key_head_dim": 64, "linear_value_head_dim": 64, "max_position_embeddings": 8192}
    config["text_config"] |= text
    config["text_config"]["rope_parameters"]["mrope_section"] = [8, 8, 8]
    vision = {"depth": 12, "hidden_size": 768, "intermediate_size": 3072, "num_heads": 12, "patch_size": 16}
    config["vision_config"] |= {**vision, "num_position_embeddings": 2304, "out_hidden_size": 576}
    return config, {"size": {"shortest_edge": 256 * 256, "longest_edge": 2048 * 2048}}


def write_seeing_model(
    folder: Path,
    family: str = "qwen3_5",
    seed: int = 0,
    *,
    stored: str = "full",
    sized: tuple[dict[str, Any], dict[str, Any]] | None = None,
) -> None:
    """Write a model of `family` with its tower, tokenizer, template and processor into `folder`.

    `sized`: configurations of the model and its processor; by default they are tiny.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config, given = sized or (config_of(family), PROCESSORS[family])
    if stored == "4-bit":
        config["quantization"] = {"group_size": GROUP, "bits": 4}
    processor = {**given, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    model = build(config, 1.6, seed)
    weights = dict(tree_flatten(model.parameters()))
    weights.pop("language_model.lm_head.weight", None)  # the embedding, to which it is tied
    mx.random.seed(seed + 1)
    tower: nn.Module = _MADE[family](config, processor).tower()
    eyes = {name: _random(value) for name, value in tree_flatten(tower.parameters())}
    for name, value in eyes.items():
        weights |= dict([_published(config["model_type"], name, value)])
    weights = _stored(weights, stored)
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    write_seeing_tokenizer(folder, family)


def _published(kind: str, name: str, value: mx.array) -> tuple[str, mx.array]:
    """A tower's parameter as a tensor of a published conversion."""
    if kind == "gemma4":
        return (name if name.startswith("embed_vision.") else f"vision_tower.{name}"), value
    if kind == "gemma3":
        if name == "embeddings.patch_embedding.weight":
            value = value.reshape(-1, 4, 4, 3)
        if name.startswith("projector."):
            return f"multi_modal_{name}", value
        return f"vision_tower.vision_model.{name}", value
    if name == "patch_embed.proj.weight":
        side = math.isqrt(value.shape[1] // 6)
        value = value.reshape(-1, 3, 2, side, side).transpose(0, 2, 3, 4, 1)
    return f"vision_tower.{name}", value


def write_seeing_tokenizer(folder: Path, family: str) -> None:
    """The toy tokenizer with the family's tokens, and a template that writes images."""
    tokenizer: Tokenizer = toy_tokenizer()
    tokenizer.add_special_tokens([*SPECIALS, *TOKENS[family]])
    tokenizer.save(str(folder / "tokenizer.json"))
    names = dict.fromkeys(("eos_token", "pad_token", "unk_token"), "<|end|>")
    template = TEMPLATE.replace("PLACE", WRITTEN[family])
    settings: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **names,
        "chat_template": template,
    }
    settings["clean_up_tokenization_spaces"] = False
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


# ---- cases of the oracle (tests/tuning/vision_oracle.py)

RECORDED = Path(__file__).parent / "vision" / "recorded.json"
# A conversation: for each turn its role and its parts, texts and the width and height of images.
Part = str | tuple[int, int]
CONVERSATIONS: dict[str, list[tuple[Role, list[Part]]]] = {
    "before": [("user", [(40, 24), "What is it?"])],
    "between": [("user", ["See ", (64, 32), " and ", (17, 90)]), ("assistant", ["Two."]), ("user", ["And?"])],
    "two turns": [
        ("user", [(40, 24), "One?"]),
        ("assistant", ["A line."]),
        ("user", ["Now ", (33, 33), "?"]),
    ],
}
STORED = ("full", "4-bit", "bfloat16")
FAMILIES = tuple(_MADE)
CASES = {
    f"{family}, {stored}, {talk}": (family, stored, talk)
    for family in FAMILIES
    for stored in STORED
    for talk in CONVERSATIONS
    if stored == "full" or talk == "between"
}


def messages_of(folder: Path, talk: str) -> tuple[Message, ...]:
    """The conversation `talk`, whose images are written to `folder`."""
    found: list[Message] = []
    for role, parts in CONVERSATIONS[talk]:
        text, images = "", list[Image]()
        for part in parts:
            if isinstance(part, str):
                text += part
            else:
                images.append(image(folder, part[0], *part, at=len(text)))
        found.append(Message(role, text, images=tuple(images)))
    return tuple(found)


def write_case(folder: Path, name: str) -> None:
    """The model, the images and the conversation of a case, for the oracle."""
    family, stored, talk = CASES[name]
    write_seeing_model(folder, family, stored=stored)
    turns = []
    for message in messages_of(folder, talk):
        parts: list[dict[str, str]] = []
        at = 0
        for each in message.images:
            parts += [{"type": "text", "text": message.content[at : each.at]}]
            parts += [{"type": "image", "path": each.name}]
            at = each.at
        parts.append({"type": "text", "text": message.content[at:]})
        kept = [part for part in parts if part.get("text") != ""]
        turns.append({"role": message.role, "content": kept})
    (folder / "conversation.json").write_text(json.dumps(turns))


def _stored(weights: dict[str, mx.array], stored: str) -> dict[str, mx.array]:
    """The tensors as a conversion stores them; a tower keeps full precision in conversions of 4 bits."""
    if stored == "bfloat16":
        return {name: value.astype(mx.bfloat16) for name, value in weights.items()}
    found = dict(weights)
    for name, value in weights.items() if stored == "4-bit" else ():
        is_part = name.startswith("language_model.") and name.endswith("weight") and value.ndim >= 2
        if is_part and value.shape[-1] % GROUP == 0:
            stem = name.removesuffix(".weight")
            packed = mx.quantize(value, GROUP, 4)
            found |= dict(zip((name, f"{stem}.scales", f"{stem}.biases"), packed))
    return found


def _random(value: mx.array) -> mx.array:
    if value.ndim == 0:  # a bound
        return mx.sign(value) * 1.5
    found: mx.array = mx.random.normal(value.shape) * (0.2 if value.ndim > 1 else 0.1)
    return found + 1.0 if value.ndim == 1 else found


def made_family(folder: Path, family: str = "qwen3_5") -> Family:
    """The family of the model in `folder`."""
    return _MADE[family](json.loads((folder / "config.json").read_text()), processor_of(folder))


def family_without_folder(family: str) -> Family:
    """The family of the tiny model that `family` names."""
    return _MADE[family](config_of(family), PROCESSORS[family])


def image(folder: Path, seed: int, width: int = 40, height: int = 24, at: int = 0) -> Image:
    """An image of random squares, written to `folder`."""
    squares = (max(1, height // 4), max(1, width // 4), 3)
    drawn = np.random.default_rng(seed).integers(0, 256, squares, np.uint8)
    path = folder / f"image-{seed}-{width}x{height}.png"
    Pillow.fromarray(drawn).resize((width, height), Pillow.Resampling.NEAREST).save(path)
    found = describe(path)
    return Image(found.name, str(path), found.hash, found.width, found.height, at)
