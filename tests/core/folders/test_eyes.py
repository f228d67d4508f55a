"""Whether a model sees, by its config and the names of its tensors."""

from __future__ import annotations

from typing import Any

import pytest

from core.folders.eyes import FAMILIES, VISION_PARTS, why_unseeing

WORDS = ("language_model.model.embed_tokens.weight", "my.vision_tower.weight")


def config_of(kind: str, **changed: Any) -> dict[str, Any]:
    return {"model_type": kind, "vision_config": {"depth": 1}, "text_config": {"hidden_size": 8}, **changed}


@pytest.mark.parametrize("kind", FAMILIES)
def test_a_family_sees_with_the_weights_of_its_part_for_images(kind: str) -> None:
    for part in VISION_PARTS:
        assert why_unseeing(config_of(kind), (*WORDS, f"{part}weight")) == ""
    assert "no weights" in why_unseeing(config_of(kind), WORDS)
    assert "no weights" in why_unseeing(config_of(kind), ())


@pytest.mark.parametrize("kind", [*FAMILIES, "llama"])
def test_what_has_no_part_for_images_is_told_before_its_type(kind: str) -> None:
    for nothing in (None, 7, "deep"):
        assert "text-only model" in why_unseeing(config_of(kind, vision_config=nothing), VISION_PARTS)


@pytest.mark.parametrize(
    "config",
    [config_of("pixtral"), config_of("gemma3", text_config=None), config_of("gemma3", text_config=3)],
)
def test_other_types_are_not_supported(config: dict[str, Any]) -> None:
    assert f"of the type {config['model_type']}" in why_unseeing(config, VISION_PARTS)
