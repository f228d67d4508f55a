"""Models of one name are told apart by what they differ in, wherever several are listed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from app.windows.models.facts import drafts, rows
from app.windows.models.names import names_of
from core.events import ModelEntry
from tests.app.windows.models.test_facts import LARGE, SMALL, state

GIB = 2**30


def model(reference: str, name: str = "Qwen3 4B", bits: int = 4, gib: float = 2.0) -> ModelEntry:
    return ModelEntry(reference, name, "folder", reference, bits=bits, disk_bytes=int(gib * GIB))


def test_a_name_that_only_one_has_stays_as_it_is() -> None:
    assert names_of([LARGE, SMALL]) == {"owner/large": "large", "owner/small": "small"}


@pytest.mark.parametrize(
    ("models", "marks"),
    [
        ([model("a/q", bits=4), model("b/q", bits=8)], ["4-bit", "8-bit"]),
        ([model("a/q", gib=2), model("b/q", gib=3)], ["2.0 GB", "3.0 GB"]),
        ([model("mlx-community/q"), model("Qwen/q")], ["mlx-community", "Qwen"]),
        ([model("/home/me/old/q"), model("/home/me/new/q")], ["old", "new"]),
        ([model("/home/me/models/mine"), model("starter")], ["mine", "starter"]),
        ([model("/home/me/models/one"), model("/home/me/models/two")], ["one", "two"]),
        ([model("/home/me/old/4/q"), model("/home/me/new/4/q")], ["old/4", "new/4"]),
        ([model("starter"), model("Qwen/q")], ["starter", "Qwen"]),
        # One difference for all of them: two of three in 4 bits are not told apart by that.
        ([model("a/q"), model("b/q"), model("c/q", bits=8)], ["a", "b", "c"]),
    ],
)
def test_models_of_one_name(models: list[ModelEntry], marks: list[str]) -> None:
    assert list(names_of(models).values()) == [f"Qwen3 4B ({mark})" for mark in marks]


def test_case_alone_tells_nothing_apart() -> None:
    assert set(names_of([model("a/q", "qwen"), model("b/q", "Qwen")]).values()) == {"qwen (a)", "Qwen (b)"}


def test_lists_say_it_too() -> None:
    listed = state(LARGE, SMALL, replace(SMALL, reference="other/small", bits=8))
    assert [row.name for row in rows(listed, 8192)] == ["large", "small (4-bit)", "small (8-bit)"]
    assert {each.name for each in drafts(LARGE, listed, 8192)} == {"small (4-bit)", "small (8-bit)"}
