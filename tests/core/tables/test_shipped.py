"""The tables that ship: they load for the family they were made for, and are as small as promised."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.models.loader import load_family
from core.system.paths import resources_dir
from core.tables.prebuilt import FROZEN, GRAMS, built_dir, prebuilt_listing

MOST_BYTES = 3_000_000


def test_they_load_for_the_starters_family() -> None:
    family = load_family("starter")
    whose = {"family": family.family, "family_name": family.family_name, "vocabulary": family.vocabulary}
    folder = resources_dir() / "tables"
    grams = [GRAMS.load(path, **whose) for path in folder.glob(f"*{GRAMS.suffix}")]  # type: ignore[arg-type]
    frozen = [FROZEN.load(path, **whose) for path in folder.glob("*.frozen.safetensors")]  # type: ignore[arg-type]
    assert [len(table) > 20_000 for table in grams] == [True]
    assert [len(table) > 5_000 for table in frozen] == [True]
    start = family.tokenizer.encode("<|im_start|>assistant\n", add_special_tokens=False)
    seen = grams[0].lookup(start)[0]
    said = [family.tokenizer.decode([token]) for token, _ in seen.followers]
    assert seen.order >= 2
    assert "The" in said, "answers begin like that"
    assert sum(path.stat().st_size for path in folder.glob("*.safetensors")) <= MOST_BYTES


def test_they_are_listed_with_what_they_were_learned_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path))
    tables, refused = prebuilt_listing()
    assert refused == ()
    family = load_family("starter").family
    assert {(table.drafter, table.family, table.shipped) for table in tables} == {
        ("auto", family, True),
        ("cacheback", family, True),
    }
    for table in tables:
        assert table.size_bytes == (resources_dir() / "tables" / table.file).stat().st_size
        assert table.entries > 5_000
        assert table.learned_from
    built_dir().mkdir(parents=True)
    (built_dir() / f"bad{GRAMS.suffix}").write_bytes(b"nothing")
    tables, refused = prebuilt_listing()
    assert len(tables) == 2
    assert refused == (f"bad{GRAMS.suffix} is damaged: it ends too early.",)
