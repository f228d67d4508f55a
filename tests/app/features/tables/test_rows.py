"""What a row says of its table."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from app.features.tables.rows import ago, rows_of, size_text, state_line
from app.session.status import recognised
from tests.app.features.tables.samples import LOADED, NOW, ON_DISK, SHIPPED


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("SmolLM2-135M-Instruct", "SmolLM2"),
        ("Qwen3-4B-4bit", "Qwen3"),
        ("Qwen3-30B-A3B", "Qwen3"),
        ("Meta-Llama-3.1-8B-Instruct", "Meta-Llama-3.1"),
        ("Llama 3", "Llama 3"),
        ("Mistral-Nemo-Instruct-2407", "Mistral-Nemo"),
        ("o200k", "o200k"),
        ("toy", "toy"),
        ("gemma-3-12b-it", "gemma-3"),
        ("7B", "7B"),
        ("", ""),
    ],
)
def test_a_family_has_the_name_that_people_know(name: str, shown: str) -> None:
    assert recognised(name) == shown


def test_a_table_that_chats_teach() -> None:
    row = rows_of([LOADED], [], NOW)[0]
    assert (row.title, row.subtitle, row.loaded) == ("Qwen3", "Loaded · abababab", True)
    assert (row.entries, row.of_entries) == ("412,306", " of 4.19 M · 9.8%")
    assert row.share == pytest.approx(412_306 / 4_194_304)
    assert (row.hits, row.accepted, row.size, row.saved) == ("48,912", "64%", "2.4 MB", "14:28")
    assert row.learned_from == "Qwen3 14B, Qwen3 4B"
    assert LOADED.family in row.tip
    assert "more than half full" not in row.spoken
    assert "412,306 of 4.19 M" in row.spoken


def test_one_on_disk_that_was_never_tested() -> None:
    row = rows_of([ON_DISK], [], NOW)[0]
    assert (row.subtitle, row.accepted, row.saved, row.size) == ("On disk · cdcdcdcd", "–", "12 Oct", "12 KB")
    assert "more than half full" in row.spoken
    assert rows_of([replace(ON_DISK, updated_s=0.0, size_bytes=0)], [], NOW)[0].saved == "Not yet"


def test_a_few_entries_are_not_none() -> None:
    few = replace(LOADED, figures=replace(LOADED.figures, used=87))
    none = replace(LOADED, figures=replace(LOADED.figures, used=0))
    shown = [row.of_entries for row in rows_of([few, none], [], NOW)]
    assert shown == [" of 4.19 M · <0.1%", " of 4.19 M · 0.0%"]


def test_several_of_one_family_are_told_apart() -> None:
    other = replace(LOADED, n=8)
    rows = rows_of([LOADED, other], [], NOW)
    assert [row.subtitle for row in rows] == ["Loaded · abababab · n 16", "Loaded · abababab · n 8"]
    assert rows[0].id != rows[1].id


def test_one_learned_beforehand_has_no_bounds_and_no_hits() -> None:
    built = replace(SHIPPED, shipped=False)
    rows = rows_of([LOADED], [SHIPPED, built, replace(built, drafter="cacheback")], NOW)
    assert [row.subtitle for row in rows[1:]] == ["Shipped, read only", "Rehearsed here", "Built here"]
    shipped = rows[1]
    assert (shipped.entries, shipped.share, shipped.hits, shipped.saved) == (
        "151,234 contexts",
        None,
        "",
        "–",
    )
    assert len({row.id for row in rows[:3]}) == 3


def test_sizes_and_times() -> None:
    assert [size_text(size) for size in (0, 1, 12_345, 999_999, 1_000_000, 14_040_000)] == [
        "–",
        "1 KB",
        "12 KB",
        "1,000 KB",
        "1.0 MB",
        "14.0 MB",
    ]
    times = {
        10: "just now",
        61: "1 minute ago",
        7_200: "2 hours ago",
        90_000: "on 20 Nov",
        10**8: "on 21 Sep 2023",
    }
    for seconds, words in times.items():
        assert ago(NOW.timestamp() - seconds, NOW) == words


def test_the_state_of_a_table() -> None:
    assert state_line(LOADED, NOW) == "Loaded, saved 2 minutes ago, 1,204 entries since"
    assert state_line(replace(LOADED, unsaved=0), NOW) == "Loaded, saved 2 minutes ago"
    assert state_line(replace(LOADED, updated_s=0.0), NOW) == "Loaded, not saved yet"
    assert state_line(ON_DISK, NOW) == "On disk, saved on 12 Oct"
