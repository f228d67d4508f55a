"""The suggested models: each row has its pages, loads with the installed mlx-lm, and fits some Mac."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from mlx_lm.utils import _get_classes

from core.events import fit_of
from core.folders.catalogue import Suggestion, suggested, suggested_heads, suggestions
from core.folders.config import Machine
from core.folders.eyes import FAMILIES
from core.folders.places import HEAD_KINDS, is_hub_name

ROOT = Path(__file__).parents[3]
# Recommended working set of Macs with 8, 16, 24, 32, 48 and 64 GB: two thirds, from 36 GB on three quarters.
_LIMITS_GB = (5.7, 11.4, 17.2, 22.9, 38.7, 51.5)


@pytest.mark.parametrize("row", suggestions(), ids=lambda row: row.name)
def test_a_row_is_complete_and_its_type_loads(row: Suggestion) -> None:
    assert is_hub_name(row.repository)
    model_class, arguments = _get_classes({"model_type": row.type})
    assert model_class.__module__.startswith("mlx_lm.models.")
    assert arguments
    assert row.sources
    assert all(source.startswith("https://") for source in row.sources)
    assert date(2026, 1, 1) <= date.fromisoformat(row.taken_on) <= date.today()
    assert set(row.estimated) <= set(Suggestion.__struct_fields__) - {"size_bytes"}
    # A quantised weight takes its bits, and scales and biases; embeddings and vision layers may take more.
    bits = 8 * row.size_bytes / row.parameters
    assert row.bits <= bits <= 2 * row.bits
    assert row.size_bytes < row.memory_bytes < 2.1 * row.size_bytes
    assert row.good_at


@pytest.mark.parametrize("row", suggestions(), ids=lambda row: row.name)
def test_a_row_sees_if_its_type_has_a_tower_here_and_its_size_has_room_for_one(row: Suggestion) -> None:
    assert row.sees is (row.type in FAMILIES)
    # Half a bit of scales and biases for each weight of the text; towers are not quantised.
    left_bytes = row.size_bytes - row.parameters * (row.bits + 0.5) / 8
    assert not row.sees or left_bytes > 300_000_000
    (entry,) = (each for each in suggested(Machine(64 << 30, False)) if each.reference == row.repository)
    assert entry.sees is row.sees


def test_offered_heads_have_their_pages_and_a_kind_that_is_read() -> None:
    assert {row.kind for row in suggested_heads()} == set(HEAD_KINDS)
    for row in suggested_heads():
        assert min(source.startswith("https://") for source in row.sources)
        assert date(2026, 1, 1) <= date.fromisoformat(row.taken_on) <= date.today()
        assert row.size_bytes or not row.estimated


def test_the_first_row_that_fits_is_the_largest_need_that_a_mac_has_room_for() -> None:
    chosen = []
    for limit_gb in _LIMITS_GB:
        limit = int(limit_gb * 1e9)
        entries = suggested(Machine(limit_bytes=limit, expands=False))
        fitting = [each for each in entries if fit_of(each.need.total_at(8192), limit) == "fits"]
        assert fitting, f"nothing for a working set of {limit_gb} GB"
        chosen.append(fitting[0].need.total_at(8192))
    assert chosen == sorted(chosen)
    assert len(set(chosen)) >= 4


def test_weights_are_expanded_on_a_cpu() -> None:
    (metal, cpu) = (suggested(Machine(64 << 30, expands)) for expands in (False, True))
    for packed, expanded in zip(metal, cpu):
        assert expanded.need.weights == 4 * packed.parameters > packed.need.weights == packed.disk_bytes


def test_no_other_list_of_suggestions_is_left() -> None:
    names = {row.repository for row in (*suggestions(), *suggested_heads())}
    assert all(map(is_hub_name, names))
    for folder in ("app", "core"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text("utf-8")
            assert not any(name in text for name in names), path


def test_a_type_that_mlx_lm_cannot_load_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.folders.catalogue.is_supported", lambda kind: kind != "gpt_oss")
    assert "gpt_oss" not in {each.architecture for each in suggested(Machine(64 << 30, expands=False))}
