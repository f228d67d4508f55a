"""Which models see images: by their configuration and the names of their tensors. No MLX."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

# The module of `core.vision` for each model type of config.json.
FAMILIES = {
    "gemma3": "gemma3",
    "gemma4": "gemma4",
    "qwen3_5": "qwen3_5",
    "qwen3_5_moe": "qwen3_5",
}
# Beginnings of the names of tensors of vision parts.
VISION_PARTS = ("vision_tower.", "visual.", "model.visual.", "model.vision_tower.", "multi_modal_projector.",
    "model.multi_modal_projector.", "embed_vision.", "model.embed_vision.", "vision_embedder.",
    "model.vision_embedder.", "model.language_model.visual.")  # fmt: skip


def why_unseeing(config: Mapping[str, Any], tensors: Iterable[str]) -> str:
    """Why a model with this configuration and these `tensors` cannot see images; empty if it can."""
    kind = config.get("model_type")
    if not isinstance(config.get("vision_config"), dict):
        return "it is a text-only model"
    if kind not in FAMILIES or not isinstance(config.get("text_config"), dict):
        return f"Draftlight does not support images for models of the type {kind}"
    if not any(name.startswith(VISION_PARTS) for name in tensors):
        return "its folder has no weights of its part for images; other conversions of the model have them"
    return ""
