"""The tables that ship: they load for the family they were made for, and are as small as promised."""

from __future__ import annotations

from core.models.loader import load_family
from core.paths import resources_dir
from core.tables.built import SUFFIX
from core.tables.frozen_file import load_frozen
from core.tables.gram_file import load_grams

MOST_BYTES = 3_000_000


def test_they_load_for_the_starters_family() -> None:
    family = load_family("starter")
    whose = {"family": family.family, "family_name": family.family_name, "vocabulary": family.vocabulary}
    folder = resources_dir() / "tables"
    grams = [load_grams(path, **whose) for path in folder.glob(f"*{SUFFIX}")]  # type: ignore[arg-type]
    frozen = [load_frozen(path, **whose) for path in folder.glob("*.frozen.safetensors")]  # type: ignore[arg-type]
    assert [len(table) > 20_000 for table in grams] == [True]
    assert [len(table) > 5_000 for table in frozen] == [True]
    start = family.tokenizer.encode("<|im_start|>assistant\n", add_special_tokens=False)
    seen = grams[0].look(start)[0]
    said = [family.tokenizer.decode([token]) for token, _ in seen.followers]
    assert seen.order >= 2
    assert "The" in said, "answers begin like that"
    assert sum(path.stat().st_size for path in folder.glob("*.safetensors")) <= MOST_BYTES
