"""docs/models.md and the list of tried model types say what the campaign's outcomes say."""

from __future__ import annotations

import msgspec

from core.system.paths import resources_dir
from tests.attack.models_table import DOCUMENT, agreeing_in
from tests.attack.support.tiny_configs import NOT_BUILT, model_types, variants
from tests.core.architectures import ARCHITECTURES


def test_types_known_to_be_fine_are_those_of_the_document() -> None:
    held = msgspec.json.decode((resources_dir() / "decoding" / "tried.json").read_bytes(), type=list[str])
    assert set(held) == agreeing_in(DOCUMENT.read_text()) | set(ARCHITECTURES)


def test_every_type_of_mlx_lm_is_tried_or_has_a_reason() -> None:
    types = set(model_types())
    assert len(variants()) >= 128
    assert set(NOT_BUILT) <= types
    assert {each.partition("+")[0] for each in variants()} == types - set(NOT_BUILT)
