"""The life of tables: warm-loaded, taught, saved, reset, taken along; by one process and by two."""

from __future__ import annotations

import os
import stat
import tempfile
import threading
import time
from pathlib import Path

import pytest

from core.engine.engine import Engine
from core.errors import TableError
from core.events import Change, Finished, Generate, Message
from core.settings import Settings, assign
from core.tables import files as folder_module
from core.tables import memory as memory_module
from core.tables.files import TableFolder, decode_table
from core.tables.memory import TableMemory
from tests.core.tables.support import (
    FAMILY,
    FILE,
    OTHER,
    QUIET,
    SLOTS,
    VOCABULARY,
    Home,
    N,
    content,
    files,
    fill,
)


def test_what_was_learned_is_there_next_time(tmp_path: Path) -> None:
    home = Home(tmp_path / "new" / "tables").open()
    assert home.moments == ["cold"]
    home.learn(50)
    home.table.record(9, 4)
    home.memory.answer_finished(Settings())
    before, figures = content(home.table), home.table.figures()
    home.memory.close()
    assert files(home.folder) == [FILE]

    again = Home(home.folder).open()
    assert again.moments == ["warm"]
    assert (content(again.table), again.table.figures()) == (before, figures)
    info = again.said[0].tables[0]
    assert (info.family_name, info.unsaved, info.why_not_saved) == ("Name of ab", 0, "")
    assert info.size_bytes == (home.folder / FILE).stat().st_size
    assert again.memory.due_s() is None
    again.memory.close()
    assert files(home.folder) == [FILE], "nothing was learned, so nothing is written"


def test_two_models_of_a_family_share_both_ways(tmp_path: Path) -> None:
    home = Home(tmp_path).open().learn(30, seed=1)
    table = home.table
    home.open().learn(30, seed=2)
    assert home.table is table
    home.open()
    assert home.table is table
    table_used = table.used
    home.memory.close()
    info = Home(tmp_path).open().said[-1].tables[0]
    assert info.figures.used == table_used


def test_families_are_kept_apart(tmp_path: Path) -> None:
    home = Home(tmp_path).open().learn()
    home.open(OTHER)
    assert home.tables.for_family(OTHER) == ()
    home.memory.close()
    other = Home(tmp_path).open(OTHER)
    assert other.moments == ["cold"]
    assert {info.family for info in other.memory.listing()[0]} == {FAMILY}
    other.memory.close()


def test_learning_switched_off_leaves_no_trace(tmp_path: Path) -> None:
    home = Home(tmp_path).open().learn(40)
    home.memory.save()
    bytes_before = (tmp_path / FILE).read_bytes()
    private = home.memory.tables_for(QUIET).table(FAMILY, N, SLOTS)
    assert content(private) == content(home.table), "what is known helps all the same"
    figures = home.table.figures()
    fill(private, 100, seed=5)
    private.get(3)
    home.memory.answer_finished(QUIET)
    assert home.table.figures() == figures
    assert home.memory.due_s() is None
    home.memory.close()
    assert files(tmp_path) == [FILE]
    assert (tmp_path / FILE).read_bytes() == bytes_before


def test_short_ngrams_are_kept_like_the_others(tmp_path: Path) -> None:
    """Saved after an answer, there next time, unchanged by an answer that must leave no trace, and erased."""
    home = Home(tmp_path).open()
    answer = [5, 6, 7, 8, 9] * 4
    home.tables.grams(FAMILY).learn((1,), answer)
    home.memory.answer_finished(Settings())
    rows, figures = home.tables.grams(FAMILY).lookup((5, 6)), home.tables.grams(FAMILY).figures()
    home.memory.close()
    (name,) = files(tmp_path)
    saved = (tmp_path / name).read_bytes()

    again = Home(tmp_path).open()
    assert again.moments == ["warm"]
    grams = again.tables.grams(FAMILY)
    assert (grams.lookup((5, 6)), grams.figures()) == (rows, figures)
    private = again.memory.tables_for(QUIET).grams(FAMILY)
    assert private.lookup((5, 6)) == rows, "what is known helps all the same"
    private.learn((5,), [6, 1, 2])
    again.memory.answer_finished(QUIET)
    assert (grams.lookup((5, 6)), grams.figures()) == (rows, figures)
    assert again.memory.due_s() is None
    assert (tmp_path / name).read_bytes() == saved

    assert again.memory.reset(FAMILY).entries == figures.used
    assert files(tmp_path) == []
    assert again.tables.grams(FAMILY).lookup((5, 6)) == []
    again.memory.close()


def test_saved_some_seconds_after_the_last_answer(tmp_path: Path) -> None:
    home = Home(tmp_path).open()
    assert home.memory.due_s() is None
    home.learn()
    due_s = home.memory.due_s()
    assert due_s is not None
    assert 10 < due_s <= 15
    assert home.said[-1].tables[0].size_bytes == 0, "no file yet"
    fill(home.table, 3, seed=3)
    home.memory.answer_finished(Settings())
    home.memory.save_soon()
    home.memory.close()
    assert home.moments == ["cold", "learned", "learned", "saved"]
    saved = decode_table((tmp_path / FILE).read_bytes())
    assert saved.header.figures.used == home.said[-1].tables[0].figures.used


def test_saving_does_not_wait_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller goes on, learns more, and what is saved is what was there when it was asked."""
    home = Home(tmp_path).open().learn(30)
    before, gate = content(home.table), threading.Event()
    sync = os.fsync

    def slow(descriptor: int) -> None:
        assert gate.wait(30)
        sync(descriptor)

    monkeypatch.setattr(folder_module.os, "fsync", slow)
    home.memory.save_soon()
    home.learn(30, seed=9)
    home.memory.save_soon()
    assert home.memory.due_s() is not None, "what came after the first is saved after it"
    monkeypatch.setattr(memory_module, "_SAVE_AFTER_S", 0.0)
    home.memory.answer_finished(Settings())
    assert home.memory.due_s() > 0.01, "the worker waits for the writer without asking all the time"
    gate.set()
    home.memory._join_writer()
    assert home.memory.due_s() == 0.0
    saved = decode_table((tmp_path / FILE).read_bytes())
    assert dict(zip(saved.entries.slots.tolist(), saved.entries.tokens.tolist())) == before
    assert home.said[-1].tables[0].unsaved > 0
    home.memory.close()
    assert content(Home(tmp_path).open().table) != before


def test_one_previous_generation_is_kept_and_can_be_used(tmp_path: Path) -> None:
    home = Home(tmp_path).open().learn(10)
    home.memory.save()
    first = content(home.table)
    with pytest.raises(TableError, match="no previous generation"):
        home.memory.load(previous=True)
    for seed in (1, 2):
        second = content(home.table)
        home.learn(10, seed)
        home.memory.save()
    assert files(tmp_path) == [FILE, f"{FILE}.previous"]
    assert second != first
    done = home.memory.load(previous=True)
    assert (content(home.table), done.entries) == (second, len(second))
    assert files(tmp_path) == [FILE]
    home.memory.close()


def test_load_drops_what_was_not_saved(tmp_path: Path) -> None:
    home = Home(tmp_path).open().learn(10)
    home.memory.save()
    saved = content(home.table)
    home.learn(10, seed=1)
    assert home.memory.load().entries == len(saved)
    assert content(home.table) == saved
    home.memory.close()


def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    home = Home(tmp_path / "tables").open().learn()
    home.memory.save()
    assert stat.S_IMODE((home.folder / FILE).stat().st_mode) == 0o600
    assert stat.S_IMODE(home.folder.stat().st_mode) == 0o700
    home.memory.close()


# ---- damage


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "foreign", "folder", "ids", "other family"])
def test_a_file_that_cannot_be_used_is_set_aside_and_the_one_before_is_used(
    tmp_path: Path, damage: str
) -> None:
    home = Home(tmp_path).open().learn(20)
    home.memory.save()
    first = content(home.table)
    home.learn(20, seed=1)
    home.memory.close()
    path = tmp_path / FILE
    good = path.read_bytes()
    if damage == "folder":
        path.unlink()
        path.mkdir()
    elif damage == "ids":
        fresh = Home(tmp_path / "ids").open()
        fresh.table.insert_all([(5, VOCABULARY + 7)])
        fresh.memory.answer_finished(Settings())
        fresh.memory.close()
        path.write_bytes((tmp_path / "ids" / FILE).read_bytes())
    elif damage == "other family":
        fresh = Home(tmp_path / "other").open(OTHER)
        fill(fresh.tables.table(OTHER, N, SLOTS), 5)
        fresh.memory.answer_finished(Settings())
        fresh.memory.close()
        path.write_bytes((tmp_path / "other" / files(tmp_path / "other")[0]).read_bytes())
    else:
        flipped = good[:90] + b"!" + good[91:]
        contents = {"cut": good[:-7], "flipped": flipped, "empty": b"", "foreign": b"PK\3\4" * 9}
        path.write_bytes(contents[damage])
    again = Home(tmp_path).open()
    assert content(again.table) == first
    assert FILE in again.notes
    assert "set aside as" in again.notes
    assert "previous save is used" in again.notes
    aside = [name for name in files(tmp_path) if ".refused-" in name]
    assert len(aside) == 1
    assert aside[0] in again.memory.listing()[1]
    again.learn(5, seed=8)
    again.memory.close()
    last = Home(tmp_path).open()
    assert last.notes == ""
    assert aside[0] in files(tmp_path), "set aside is never deleted"
    last.memory.close()


def test_two_damaged_generations_make_a_fresh_table(tmp_path: Path) -> None:
    for _ in range(3):
        for name in (FILE, f"{FILE}.previous"):
            (tmp_path / name).write_bytes(b"nonsense")
        home = Home(tmp_path).open()
        assert home.moments == ["cold"]
        assert home.said[0].refused
        assert "A new table takes its place." in home.notes
        assert home.table.used == 0
        home.memory.close()
    assert len([name for name in files(tmp_path) if ".refused-" in name]) == 6


# ---- another process


def test_a_second_process_reads_and_does_not_write_and_says_so(tmp_path: Path) -> None:
    """Locks are by open file, so a second memory is as good as a second process."""
    first = Home(tmp_path).open().learn(20)
    first.memory.save()
    (tmp_path / f"{FAMILY[:16]}-n16-8192.safetensors").write_bytes(b"damaged")
    before = files(tmp_path)
    second = Home(tmp_path).open()
    assert content(second.table) == content(first.table)
    assert "another Draftlight" in second.notes
    assert "left alone" in second.notes
    second.learn(10, seed=1)
    assert second.memory.due_s() is None
    for act in (
        second.memory.save,
        lambda: second.memory.reset(FAMILY),
        lambda: second.memory.import_(tmp_path / FILE),
    ):
        with pytest.raises(TableError, match="another Draftlight"):
            act()
    second.memory.save_soon()
    assert second.table.used > 20, "a refused reset forgets nothing"
    second.memory.close()
    assert files(tmp_path) == before
    first.learn(10, seed=2).memory.close()
    third = Home(tmp_path).open()
    assert "another" not in third.notes
    third.memory.close()


def test_the_second_process_saves_once_the_first_is_gone_and_a_model_loads(tmp_path: Path) -> None:
    first = Home(tmp_path).open().learn(20)
    second = Home(tmp_path).open().learn(7, seed=1)
    first.memory.close()
    second.open()
    assert second.table.used == 20, "what the first saved, not what was told not to be saved"
    second.learn(9, seed=3).memory.close()
    assert Home(tmp_path).open().table.used > 20


# ---- the disk


def test_a_failed_save_is_said_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path).open().learn(20)
    home.memory.save()
    before = (tmp_path / FILE).read_bytes()
    home.learn(20, seed=1)
    with monkeypatch.context() as broken:
        broken.setattr(folder_module.os, "fsync", full)
        home.memory.save_soon()
        home.memory._join_writer()
        with pytest.raises(TableError, match="No space left"):
            home.memory.save()
    assert home.moments[-1] == "failed"
    assert "No space left on device" in home.notes
    assert files(tmp_path) == [FILE]
    assert (tmp_path / FILE).read_bytes() == before
    due_s = home.memory.due_s()
    assert due_s is not None
    assert 30 < due_s <= 60
    home.memory.close()
    assert Home(tmp_path).open().table.used > 20


def full(descriptor: int) -> None:
    raise OSError(28, "No space left on device")


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    home = Home(tmp_path / "tables").open().learn(20)
    home.memory.close()
    before = files(home.folder)
    (home.folder / f"{FAMILY[:16]}.lock").unlink(missing_ok=True)
    os.chmod(tmp_path, 0o755)
    os.chmod(home.folder, 0o555)
    nobody = os.geteuid() == 0
    if nobody:  # root may write anywhere: look as somebody else
        os.chmod(home.folder / FILE, 0o644)
        for parent in home.folder.parents:
            if Path(tempfile.gettempdir()) in parent.parents:
                os.chmod(parent, 0o755)
        os.seteuid(65534)
    try:
        reader = Home(home.folder).open()
        assert reader.table.used == 20, reader.notes
        assert "cannot be written" in reader.notes
        reader.learn(5, seed=1)
        with pytest.raises(TableError, match="cannot be written"):
            reader.memory.save()
        reader.memory.close()
    finally:
        if nobody:
            os.seteuid(0)
        os.chmod(home.folder, 0o755)
    assert files(home.folder) == before


# ---- reset, export, import


def test_reset_erases_everything_of_the_family_and_nothing_else(tmp_path: Path) -> None:
    home = Home(tmp_path).open().learn(20)
    home.learn(20, seed=1).memory.save()
    (tmp_path / f"{FILE}.refused-20261121-120000").write_bytes(b"words of a chat")
    (tmp_path / f".{FILE}.77.tmp").write_bytes(b"words of a chat")
    home.open(OTHER)
    fill(home.tables.table(OTHER, N, SLOTS), 5)
    home.memory.answer_finished(Settings())
    home.memory.save()
    (tmp_path / "letter.txt").write_text("mine")
    done = home.memory.reset(FAMILY)
    assert done.entries > 20
    assert done.files == 3
    assert files(tmp_path) == ["cdcdcdcdcdcdcdcd-n16-4096.safetensors", "letter.txt"]
    assert home.tables.for_family(FAMILY) == ()
    home.open()
    assert home.table.used == 0
    home.memory.close()
    assert files(tmp_path) == ["cdcdcdcdcdcdcdcd-n16-4096.safetensors", "letter.txt"], "it does not come back"


def test_reset_of_a_family_that_is_only_on_disk(tmp_path: Path) -> None:
    Home(tmp_path).open().learn(20).memory.close()
    home = Home(tmp_path)
    done = home.memory.reset(FAMILY)
    assert (done.entries, done.files, done.family_name) == (20, 1, "Name of ab")
    assert files(tmp_path) == []


def test_export_and_import(tmp_path: Path) -> None:
    home = Home(tmp_path / "a").open().learn(20)
    out = tmp_path / "mine.table"
    done = home.memory.export(FAMILY, N, SLOTS, out)
    assert (done.entries, done.path) == (20, str(out))
    assert files(home.folder) == [], "an export of what is in memory saves nothing"
    with pytest.raises(TableError, match="already exists"):
        home.memory.export(FAMILY, N, SLOTS, out)
    home.learn(20, seed=1)
    home.memory.export(FAMILY, N, SLOTS, out, replace=True)
    learned = content(home.table)
    home.memory.close()

    other = Home(tmp_path / "b").open().learn(7, seed=4)
    mine = content(other.table)
    done = other.memory.import_(out)
    assert (done.entries, done.family_name) == (len(learned), "Name of ab")
    assert content(other.table) == learned
    assert other.memory.load(previous=True).entries == len(mine), "what was there is the previous now"
    other.memory.close()

    third = Home(tmp_path / "c")
    third.memory.import_(out)
    assert content(third.open().table) == learned, "also with no model of the family loaded"
    third.memory.close()
    exported = tmp_path / "again.table"
    Home(tmp_path / "c").memory.export(FAMILY, N, SLOTS, exported)
    assert decode_table(exported.read_bytes()).entries.slots.tolist() == sorted(learned)


def test_exports_go_only_where_they_may(tmp_path: Path) -> None:
    home = Home(tmp_path / "tables").open().learn(20)
    home.memory.save()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "here").symlink_to(tmp_path / "tables")
    before = (home.folder / FILE).read_bytes()
    for path, why in [
        (home.folder / FILE, "is the folder of the tables themselves"),
        (tmp_path / "here" / "x", "is the folder of the tables themselves"),
        (tmp_path / "tables" / ".." / "tables" / "x", "is the folder of the tables themselves"),
        (tmp_path / "none" / "x", "could not be written"),
        (tmp_path / "link", "not a regular file"),
        (tmp_path, "not a regular file"),
        (Path("/dev/null"), "not a regular file"),
        (tmp_path / "nul\0l", "could not be written"),
    ]:
        with pytest.raises(TableError, match=why):
            home.memory.export(FAMILY, N, SLOTS, path, replace=True)
    with pytest.raises(TableError, match="table does not exist"):
        home.memory.export(OTHER, N, SLOTS, tmp_path / "x")
    assert (home.folder / FILE).read_bytes() == before
    home.memory.close()


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "device", "damaged", "ids", "huge"])
def test_imports_take_nothing_bad(tmp_path: Path, kind: str) -> None:
    home = Home(tmp_path / "tables").open().learn(20)
    path = tmp_path / "in"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path = Path("/dev/zero")
    elif kind == "damaged":
        path.write_bytes(b"x" * 500)
    elif kind == "ids":
        fresh = Home(tmp_path / "ids").open()
        fresh.table.insert_all([(5, VOCABULARY + 7)])
        fresh.memory.export(FAMILY, N, SLOTS, path)
    elif kind == "huge":
        with path.open("wb") as file:
            file.truncate(2**40)
    before = content(home.table)
    with pytest.raises(TableError):
        home.memory.import_(path)
    assert content(home.table) == before
    assert path.exists() == (kind != "missing"), "an import never moves what it was given"
    home.memory.close()


# ---- without a folder


def test_without_a_folder_nothing_is_kept(tmp_path: Path) -> None:
    memory = TableMemory()
    memory.open(FAMILY, "Toy", VOCABULARY)
    fill(memory.tables.table(FAMILY, N, SLOTS), 20)
    memory.answer_finished(Settings())
    assert memory.due_s() is None
    with pytest.raises(TableError, match="not kept on disk"):
        memory.save()
    memory.forget()
    assert memory.tables.for_family(FAMILY) == ()
    memory.close()


def test_no_model_no_tables(tmp_path: Path) -> None:
    memory = TableMemory(TableFolder(tmp_path))
    for act in (memory.save, memory.load):
        with pytest.raises(TableError, match="No model is loaded"):
            act()
    assert memory.listing() == ((), ())
    memory.answer_finished(Settings())
    memory.close()


class _Drafting(TableFolder):
    """A folder while whose files are written a drafter asks for a table of another shape."""

    memory: TableMemory

    def write(self, name: str, content: bytes) -> None:
        self.memory.tables.table(FAMILY, N, 2 * SLOTS).record(9, 4)
        super().write(name, content)


def test_the_thread_that_saves_registers_no_tables(tmp_path: Path) -> None:
    home = Home(tmp_path)
    folder = _Drafting(tmp_path)
    folder.memory = home.memory = TableMemory(folder, home.said.append)
    home.open().learn()
    home.memory.save_soon()
    while home.memory.is_writing():
        time.sleep(0.005)
    saved = home.said[-1]
    assert (saved.moment, [info.figures.slots for info in saved.tables]) == ("saved", [SLOTS])
    assert {info.figures.slots for info in home.memory.listing()[0]} == {SLOTS, 2 * SLOTS}
    home.memory.close()


def test_an_answer_reports_that_what_it_teaches_is_not_saved(toy_folder: Path, tmp_path: Path) -> None:
    engines = [Engine(TableMemory(TableFolder(tmp_path / "tables"))) for _ in range(2)]
    for engine in engines:
        engine.load(str(toy_folder))
    changes = []
    for engine, values in ((engines[0], Settings()), (engines[1], Settings()), (engines[1], QUIET)):
        request = Generate("r", (Message("user", "hello"),), assign(values, "sampling.max_tokens", 2))
        (finished,) = (each for each in engine.generate(request) if isinstance(each, Finished))
        changes.append([each for each in finished.effective.changes if each.setting == "tables.learn"])
    saves = Change(
        "tables.learn", "on", "on, but not saved", "another Draftlight is using these tables and saves them"
    )
    assert changes == [[], [saves], []]
    for engine in engines:
        engine.close()
