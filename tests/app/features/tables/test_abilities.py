"""What can be done with the tables, and why not."""

from __future__ import annotations

from msgspec.structs import replace

from app.features.tables import strings
from app.features.tables.rows import abilities_of
from app.features.tables.state import Tables
from tests.app.features.tables.samples import LOADED, MODEL, ON_DISK, SHIPPED

HELD = "another Draftlight is using these tables and saves them"
KNOWN = Tables(tables=(LOADED, ON_DISK), learned=(SHIPPED,), listed=True, model=MODEL)


def words(**found: str) -> dict[str, str]:
    return {**dict.fromkeys(("save", "load", "import_", "export", "reset"), ""), **found}


def able(tables: Tables, chosen: object, alive: bool = True) -> dict[str, str]:
    return vars(abilities_of(tables, chosen, alive=alive))  # type: ignore[arg-type]


def test_all_of_it_with_the_loaded_family() -> None:
    assert able(KNOWN, LOADED) == words()


def test_another_family_is_not_in_memory() -> None:
    assert able(KNOWN, ON_DISK) == words(load=strings.OTHER_FAMILY)


def test_one_learned_beforehand_is_read_only() -> None:
    why = strings.READ_ONLY_TABLE
    assert able(KNOWN, SHIPPED) == words(load=why, export=why, reset=why)


def test_nothing_is_chosen() -> None:
    why = strings.NOTHING_CHOSEN
    assert able(KNOWN, None) == words(load=why, export=why, reset=why)


def test_no_model() -> None:
    assert able(replace(KNOWN, model=None), LOADED) == words(save=strings.NO_MODEL, load=strings.NO_MODEL)


def test_another_draftlight_saves_them() -> None:
    held = replace(LOADED, why_not_saved=HELD)
    found = able(replace(KNOWN, tables=(held,)), held)
    assert found["save"] == found["reset"] == f"The Qwen3 tables are read only here: {HELD}."
    assert not found["export"]


def test_nothing_was_saved() -> None:
    fresh = replace(LOADED, size_bytes=0)
    assert able(replace(KNOWN, tables=(fresh,)), fresh) == words(load=strings.NOTHING_SAVED)


def test_one_thing_at_a_time_and_nothing_without_a_worker() -> None:
    assert set(able(replace(KNOWN, doing="save"), LOADED).values()) == {strings.ONE_AT_A_TIME}
    assert set(able(KNOWN, LOADED, alive=False).values()) == {strings.WORKER_GONE}
