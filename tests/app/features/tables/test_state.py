"""What is known of the tables after each thing heard."""

from __future__ import annotations

from msgspec.structs import replace

from app.features.tables import state as known
from app.features.tables.state import Tables
from core.events import Failed, Rehearsing, TableDone, TableList, TableStatus
from tests.app.features.tables.samples import LLAMA, LOADED, MODEL, ON_DISK, QWEN, SHIPPED

LISTED = known.handle(Tables(), TableList("t1", "/tables", (LOADED, ON_DISK), ("x.refused-1",), (SHIPPED,)))
REHEARSING = Rehearsing("Qwen3 4B", "running", answered=3, prompts=9, tokens=70)


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


def test_a_rehearsal_and_its_table() -> None:
    after = known.handle(LISTED, REHEARSING)
    assert (after.rehearsal, after.stale) == (REHEARSING, False)
    assert known.handle(after, replace(REHEARSING, contexts=500)).stale, "there is a table to list"


def test_another_model_and_no_worker() -> None:
    with_model = known.with_model(known.handle(LISTED, REHEARSING), MODEL)
    assert (with_model.model, with_model.rehearsal, with_model.stale) == (MODEL, None, True)
    gone = known.without_worker(known.begin(with_model, "save"))
    assert (gone.model, gone.doing, gone.listed) == (None, None, False)
    assert [info.loaded for info in gone.tables] == [False, False]
    never_saved = replace(LISTED, tables=(replace(LOADED, size_bytes=0),))
    assert known.without_worker(never_saved).tables == ()
