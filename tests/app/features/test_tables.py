"""Tables: their rows, what can be done with them, and the state after each event."""

from __future__ import annotations

from datetime import datetime

import pytest
from msgspec.structs import replace

from app.features.tables import state as known
from app.features.tables import strings
from app.features.tables.rows import abilities_of, ago, rows_of, size_text, state_line
from app.features.tables.state import Tables
from app.session.status import recognised
from core.events import (
    Failed,
    LearnedTable,
    ModelInfo,
    TableDone,
    TableFigures,
    TableInfo,
    TableList,
    TableStatus,
)

NOW = datetime(2026, 11, 21, 14, 30)
QWEN, LLAMA, SMOL = "ab" * 32, "cd" * 32, "9c" * 32
MODEL = ModelInfo(
    "Qwen3 4B",
    "path",
    QWEN,
    "Qwen3-4B",
    "qwen3",
    "bfloat16",
    "",
    4 * 10**9,
    8 * 10**9,
    32768,
    151_936,
    36,
    True,
)

LOADED = TableInfo(
    QWEN,
    "Qwen3-4B",
    16,
    TableFigures(412_306, 4_194_304, 500_000, 10, 90_000, 48_912, 1000, 640),
    created_s=NOW.timestamp() - 3_000_000,
    updated_s=NOW.timestamp() - 120,
    size_bytes=2_400_000,
    has_previous=True,
    loaded=True,
    unsaved=1_204,
)
ON_DISK = TableInfo(
    LLAMA,
    "Meta-Llama-3.1-8B-Instruct",
    16,
    TableFigures(2_500_000, 4_194_304),
    updated_s=NOW.timestamp() - 40 * 86_400,
    size_bytes=12_345,
)
SHIPPED = LearnedTable(
    "smollm2.grams.safetensors",
    SMOL,
    "SmolLM2-135M-Instruct",
    "auto",
    True,
    "107,642 places in answers of SmolLM2 135M",
    151_234,
    1_117_384,
    NOW.timestamp(),
)


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
    assert row.entries == "412,306 of 4.19 M · 9.8%"
    assert row.share == pytest.approx(412_306 / 4_194_304)
    assert (row.hits, row.accepted, row.size, row.saved) == ("48,912", "64%", "2.4 MB", "14:28")
    assert row.learned_from == "Your chats"
    assert "1,204 entries since" in row.tip
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
    shown = [row.entries for row in rows_of([few, none], [], NOW)]
    assert shown == ["87 of 4.19 M · <0.1%", "0 of 4.19 M · 0.0%"]


def test_several_of_one_family_are_told_apart() -> None:
    other = replace(LOADED, n=8)
    rows = rows_of([LOADED, other, replace(LOADED, n=0)], [], NOW)
    kinds = [row.subtitle.partition(" · ")[0] for row in rows]
    assert kinds == ["Windows of 16", "Windows of 8", "Short n-grams"]
    assert rows[2].subtitle == "Short n-grams · loaded · abababab"
    assert rows[0].id != rows[1].id


def test_one_learned_beforehand_has_no_bounds_and_no_hits() -> None:
    built = replace(SHIPPED, shipped=False)
    rows = rows_of([LOADED], [SHIPPED, built, replace(built, drafter="cacheback")], NOW)
    assert [row.subtitle for row in rows[1:]] == ["Shipped, read only", "Built here", "Built here"]
    shipped = rows[1]
    assert (shipped.entries, shipped.share, shipped.hits, shipped.saved) == (
        "151,234 contexts",
        None,
        "",
        "–",
    )
    assert len({row.id for row in rows[:3]}) == 3


def test_sizes_and_times() -> None:
    sizes = " ".join(size_text(size) for size in (0, 1, 12_345, 999_999, 1_000_000, 14_040_000))
    assert sizes == "– 1 KB 12 KB 1,000 KB 1.0 MB 14.0 MB"
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


HELD = "another Draftlight is using these tables and saves them"
KNOWN = Tables(tables=(LOADED, ON_DISK), learned=(SHIPPED,), listed=True, model=MODEL)


FRESH = replace(LOADED, size_bytes=0)


def words(**found: str) -> dict[str, str]:
    return {**dict.fromkeys(("save", "load", "import_", "export", "reset"), ""), **found}


def able(tables: Tables, chosen: object, alive: bool = True) -> dict[str, str]:
    return vars(abilities_of(tables, chosen, alive=alive))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tables", "chosen", "why_not"),
    [
        (KNOWN, LOADED, {}),
        (KNOWN, ON_DISK, {"load": strings.OTHER_FAMILY}),
        (KNOWN, SHIPPED, dict.fromkeys(("load", "export", "reset"), strings.READ_ONLY_TABLE)),
        (KNOWN, None, dict.fromkeys(("load", "export", "reset"), strings.NOTHING_CHOSEN)),
        (replace(KNOWN, model=None), LOADED, {"save": strings.NO_MODEL, "load": strings.NO_MODEL}),
        (replace(KNOWN, tables=(FRESH,)), FRESH, {"load": strings.NOTHING_SAVED}),
    ],
)
def test_what_can_be_done_with_a_table_and_why_not(
    tables: Tables, chosen: object, why_not: dict[str, str]
) -> None:
    assert able(tables, chosen) == words(**why_not)


def test_another_draftlight_saves_them() -> None:
    held = replace(LOADED, why_not_saved=HELD)
    found = able(replace(KNOWN, tables=(held,)), held)
    assert found["save"] == found["reset"] == f"The Qwen3 tables are read only here: {HELD}."
    assert not found["export"]


def test_one_thing_at_a_time_and_nothing_without_a_worker() -> None:
    assert set(able(replace(KNOWN, doing="save"), LOADED).values()) == {strings.ONE_AT_A_TIME}
    assert set(able(KNOWN, LOADED, alive=False).values()) == {strings.WORKER_GONE}


LISTED = known.handle(Tables(), TableList("t1", "/tables", (LOADED, ON_DISK), ("x.refused-1",), (SHIPPED,)))


def test_a_list_replaces_all() -> None:
    assert (LISTED.folder, LISTED.tables, LISTED.learned) == ("/tables", (LOADED, ON_DISK), (SHIPPED,))
    assert LISTED.listed
    assert not LISTED.stale
    assert LISTED.disk_bytes == 2_400_000 + 12_345 + 1_117_384
    assert LISTED.of_family(LLAMA) == (ON_DISK,)
    empty = known.handle(LISTED, TableList("t2", "/tables", ()))
    assert (empty.tables, empty.learned, empty.set_aside) == ((), (), ())


def test_a_status_replaces_the_tables_of_its_family_in_their_place() -> None:
    grown = replace(LOADED, unsaved=2_000)
    after = known.handle(LISTED, TableStatus("learned", QWEN, "Qwen3-4B", (grown,)))
    assert after.tables == (grown, ON_DISK)
    fresh = replace(LOADED, family="ee" * 32)
    assert known.handle(LISTED, TableStatus("learned", fresh.family, "New", (fresh,))).tables[0] == fresh
    assert known.handle(LISTED, TableStatus("cold", QWEN, "Qwen3-4B", ())).tables == (ON_DISK,)
    refused = TableStatus("warm", QWEN, "Qwen3-4B", (LOADED,), notes=("x is damaged; it was set aside.",))
    assert known.handle(LISTED, refused).stale


def test_a_command_and_its_end() -> None:
    doing = known.begin(LISTED, "reset")
    assert doing.doing == "reset"
    done = TableDone("t2", "reset", QWEN, "Qwen3-4B", 412_306, 3, 0.1)
    after = known.handle(doing, done)
    assert (after.doing, after.told, after.stale) == (None, known.Told(done=done), True)
    failed = Failed("t2", "reset_table", "request", "bad-table", "It could not be erased.")
    assert known.fail(doing, failed).told == known.Told(failed=failed)
    assert known.fail(doing, failed).doing is None
    assert known.begin(after, "save").told is None


def test_a_list_that_fails_ends_no_command() -> None:
    failed = Failed("t1", "list_tables", "internal", "internal", "Broken.")
    assert known.fail(known.begin(LISTED, "save"), failed).doing == "save"


def test_another_model_and_no_worker() -> None:
    with_model = known.with_model(LISTED, MODEL)
    assert (with_model.model, with_model.stale) == (MODEL, True)
    gone = known.without_worker(known.begin(with_model, "save"))
    assert (gone.model, gone.doing, gone.listed) == (None, None, False)
    assert [info.loaded for info in gone.tables] == [False, False]
    never_saved = replace(LISTED, tables=(replace(LOADED, size_bytes=0),))
    assert known.without_worker(never_saved).tables == ()
