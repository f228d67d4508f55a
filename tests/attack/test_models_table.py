"""docs/models.md and the list of tried model types say what the campaign's outcomes say."""

from __future__ import annotations

import msgspec

from core.system.paths import resources_dir
from tests.attack.campaign import Outcome
from tests.attack.models_table import DOCUMENT, PARTS, YES, agreeing, agreeing_in, document
from tests.attack.support.tiny_configs import NOT_BUILT, model_types, variants
from tests.core.architectures import ARCHITECTURES

ALL = dict.fromkeys(PARTS, YES)
OUTCOMES = [
    Outcome(0, notes={**ALL, "architecture": "one"}),
    Outcome(1, notes={**ALL, "architecture": "two", "trees": "no", "sparse prefill": "no gaps"}),
    Outcome(2, notes={**ALL, "architecture": "two+dynamic", "chains": "by length"}),
    Outcome(3, notes={**ALL, "architecture": "three"}),
    Outcome(4, notes={**ALL, "architecture": "three+sliding", "chains": "its mask"}),
    Outcome(5, "another token from token 3 on", notes={**ALL, "architecture": "four"}),
    Outcome(6, notes={"architecture": "five", "not built": "its figures"}),
]


def test_a_type_is_known_to_agree_if_all_of_its_variants_do() -> None:
    assert agreeing(OUTCOMES) == {"one", "two"}
    assert agreeing_in(document(OUTCOMES)) == {"one", "two"}


def test_the_document_has_reasons_differences_and_what_was_not_tried() -> None:
    text = document(OUTCOMES)
    assert "| `two` | yes | no (" in text
    for said in ("no gaps", "its mask", "another token from token 3 on", "- `five`: its figures", *NOT_BUILT):
        assert said in text


def test_types_known_to_be_fine_are_those_of_the_document() -> None:
    held = msgspec.json.decode((resources_dir() / "decoding" / "tried.json").read_bytes(), type=list[str])
    assert set(held) == agreeing_in(DOCUMENT.read_text()) | set(ARCHITECTURES)


def test_every_type_of_mlx_lm_is_tried_or_has_a_reason() -> None:
    types = set(model_types())
    assert len(variants()) >= 128
    assert set(NOT_BUILT) <= types
    assert {each.partition("+")[0] for each in variants()} == types - set(NOT_BUILT)
