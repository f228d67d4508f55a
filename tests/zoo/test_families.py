"""Every family of the zoo is like its references: rendering, stopping, thoughts, calls and second turns."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.thinned import thinned
from tests.zoo.explained import EXPLAINED, unexplained
from tests.zoo.families import FAMILIES, Family, family
from tests.zoo.folder import write_family
from tests.zoo.real import FOLDER, real_families
from tests.zoo.trial import try_family

# Those whose demands cover most of the others'; all of them are a sweep.
FAST = ("chatml", "gemma3", "gpt-oss", "mistral", "qwen3.5")

pytestmark = pytest.mark.filterwarnings("ignore:`rope_scaling` is deprecated:FutureWarning")


@pytest.mark.parametrize("name", thinned([each.name for each in FAMILIES], FAST))
def test_a_family_is_like_its_references(name: str, tmp_path: Path) -> None:
    _check(family(name), tmp_path)


@pytest.mark.sweep
@pytest.mark.parametrize("name", [each.name for each in real_families()] or [""])
def test_a_public_template_is_like_its_references(name: str, tmp_path: Path) -> None:
    if not name:
        pytest.skip(f"{FOLDER} is absent: it is not part of the repository")
    _check(next(each for each in real_families() if each.name == name), tmp_path)


def test_every_explanation_is_of_a_family() -> None:
    names = {each.name for each in (*FAMILIES, *real_families())}
    missing = {name for name, _ in EXPLAINED if name not in names}
    assert not missing or not FOLDER.is_dir()


def _check(tried: Family, folder: Path) -> None:
    write_family(tried, folder)
    found = try_family(tried, folder, stops=not tried.source)
    assert unexplained(tried.name, found.faults) == []
