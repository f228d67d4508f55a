"""Tiny random models that see, as real folders with the tensor names of published conversions; and images."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.utils import tree_flatten
from PIL import Image as Pillow
from tokenizers import Tokenizer

from core.documents.images import describe
from core.events import Image
from core.vision.eyes import processor_of
from core.vision.family import Family
from core.vision.qwen3_5 import family as qwen3_5_family
from tests.core.architectures import ARCHITECTURES, build
from tests.core.toy import SPECIALS, toy_tokenizer

CONTEXT_TOKENS = 2048
_MADE = {"qwen3_5": qwen3_5_family}
SIZES = {"qwen3_5": {"shortest_edge": 8 * 8 * 4, "longest_edge": 8 * 8 * 40}}
# The tokens around images, by family, with what the template writes for one.
TOKENS = {"qwen3_5": ("<|vision_start|>", "<|image_pad|>", "<|vision_end|>")}
WRITTEN = {"qwen3_5": "<|vision_start|><|image_pad|><|vision_end|>"}
TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{% if m['content'] is string %}{{ m['content'] }}{% else %}"
    "{% for part in m['content'] %}{% if part['type'] == 'image' %}PLACE{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
VOCABULARY = 272


def config_of(family: str) -> dict[str, Any]:
    """The configuration of a tiny model."""
    text = {**ARCHITECTURES["qwen3_5"].config, "vocab_size": VOCABULARY}
    text |= {"max_position_embeddings": CONTEXT_TOKENS, "head_dim": 16, "eos_token_id": 0}
    text["rope_parameters"] = {
        **{"type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.75},
        "mrope_section": [2, 2, 2],
    }
    vision = {
        **{"model_type": "qwen3_5", "depth": 2, "hidden_size": 32, "intermediate_size": 48, "num_heads": 2},
        **{"out_hidden_size": text["hidden_size"], "patch_size": 4, "spatial_merge_size": 2},
        **{"temporal_patch_size": 2, "num_position_embeddings": 36, "in_channels": 3},
        "deepstack_visual_indexes": [],
    }
    return {"model_type": family, "text_config": text, "vision_config": vision, "eos_token_id": 0}


def write_seeing_model(folder: Path, family: str = "qwen3_5", seed: int = 0) -> None:
    """Write a tiny model of `family` with its tower, tokenizer, template and processor into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    config = config_of(family)
    processor = {"size": SIZES[family], "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    model = build(config, 1.9, seed)
    weights = dict(tree_flatten(model.parameters()))
    mx.random.seed(seed + 1)
    tower: nn.Module = _MADE[family](config, processor).tower()
    eyes = {name: _random(value) for name, value in tree_flatten(tower.parameters())}
    weights |= {f"vision_tower.{name}": value for name, value in eyes.items()}
    place = "vision_tower.patch_embed.proj.weight"
    weights[place] = weights[place].reshape(-1, 3, 2, 4, 4).transpose(0, 2, 3, 4, 1)
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    write_seeing_tokenizer(folder, family)


def write_seeing_tokenizer(folder: Path, family: str) -> None:
    """The toy tokenizer with the family's tokens, and a template that writes images."""
    tokenizer: Tokenizer = toy_tokenizer()
    tokenizer.add_special_tokens([*SPECIALS, *TOKENS[family]])
    tokenizer.save(str(folder / "tokenizer.json"))
    names = dict.fromkeys(("eos_token", "pad_token", "unk_token"), "<|end|>")
    template = TEMPLATE.replace("PLACE", WRITTEN[family])
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", **names, "chat_template": template}
    settings["clean_up_tokenization_spaces"] = False
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def _random(value: mx.array) -> mx.array:
    found: mx.array = mx.random.normal(value.shape) * (0.2 if value.ndim > 1 else 0.1)
    return found + 1.0 if value.ndim == 1 else found


def made_family(folder: Path, family: str = "qwen3_5") -> Family:
    """The family of the model in `folder`."""
    return _MADE[family](json.loads((folder / "config.json").read_text()), processor_of(folder))


def image(folder: Path, seed: int, width: int = 40, height: int = 24, at: int = 0) -> Image:
    """An image of random squares, written to `folder`."""
    drawn = np.random.default_rng(seed).integers(0, 256, (max(1, height // 4), max(1, width // 4), 3), np.uint8)
    path = folder / f"image-{seed}-{width}x{height}.png"
    Pillow.fromarray(drawn).resize((width, height), Pillow.Resampling.NEAREST).save(path)
    found = describe(path)
    return Image(found.name, str(path), found.hash, found.width, found.height, at)
