"""Damage, missing files, full disks, clocks and permanent deletion: no readable chat is lost."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path

import pytest
from msgspec.structs import replace

from app.session.chats.chats import KEPT_DELETED, Chats
from app.session.chats.conversation import Conversation
from app.session.chats.projects import Project
from app.session.documents import Documents, KeptDocument
from app.store import schema
from app.store.chat_store import ChatStore, Mark
from app.store.clock import MOST_STEP_S, SteadyClock
from app.store.copies import KEPT, LEAST_AGE_S, Backups
from app.store.database import ChecksumError
from app.store.faults import StoreError
from app.store.library import Library
from app.store.writer import Writer
from core.events import Attachment
from tests.app.store.chats import NOON, chat_of
from tests.thinned import thinned

DAY_S = 86_400.0
SECRET = "heliotrope"


@pytest.fixture
def libraries() -> Iterator[list[Library]]:
    opened: list[Library] = []
    yield opened
    for library in opened:
        library.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A home with six chats."""
    library = Library(tmp_path / "home")
    for number in range(6):
        library.save(chat_of(number, turns=2))
    assert library.close()
    return tmp_path / "home"


def opened(folder: Path, libraries: list[Library], wall_s: Callable[[], float] = time.time) -> Library:
    libraries.append(Library(folder, wall_s=wall_s))
    return libraries[-1]


def ids(library: Library) -> set[str]:
    return {summary.id for summary in library.summaries()}


def sql(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def change_letter(path: Path, chat_id: str) -> None:
    """In one question; for SQLite the file is whole."""
    changed = "CAST(replace(state, 'Q', 'q') AS BLOB)"
    sql(path, f"UPDATE turns SET state = {changed} WHERE chat = '{chat_id}'")


def until(happened: Callable[[], object], seconds: float = 60.0) -> None:
    end_s = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def raw(folder: Path, word: str = SECRET) -> list[str]:
    """The files with the bytes of `word`."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return [path.name for path in files if word.encode() in path.read_bytes()]


# ---- damage


def test_each_chat_is_read_from_the_newest_copy_that_has_it_whole(
    folder: Path, libraries: list[Library]
) -> None:
    database, backups = folder / "chats.db", Backups(folder / "chats.db")
    old = backups.make()
    library = Library(folder)
    library.save(chat_of(1, turns=3))
    library.save(chat_of(2, turns=3))
    assert library.close()
    new = backups.make()
    for path, chat_id in ((database, "c1"), (database, "c2"), (database, "c3"), (new, "c2"), (new, "c3")):
        change_letter(path, chat_id)
    change_letter(old, "c3")
    for path in (database, new, old):
        sql(path, "UPDATE chats SET sum = 0 WHERE id = 'c3'", "UPDATE parts SET sum = 0 WHERE chat = 'c3'")
    library = opened(folder, libraries)
    assert library.load("c1") == chat_of(1, turns=3)
    assert library.problem
    assert library.problem.remedy == "repair"
    # The third turn is in no backup, and its question is damaged.
    assert library.load("c2").turns[:2] == chat_of(2, turns=2).turns
    assert library.load("c2").turns[2].answer == chat_of(2, turns=3).turns[2].answer
    assert "could not be read" in library.load("c2").turns[2].user.content
    with pytest.raises(StoreError, match="cannot be read"):
        library.load("c3")
    assert "5 of 6 chats can be read, 1 of them only in part" in library.problem.hint
    before = database.read_bytes()
    with pytest.raises(StoreError, match="not repaired"):
        library.repair()  # one chat would be missing
    assert database.read_bytes() == before
    assert library.problem.remedy == "repair-incomplete"
    library.save(chat_of(7))
    library.repair(incomplete=True)
    assert library.problem is None
    assert library.flush()
    assert ids(library) == {"c0", "c1", "c2", "c4", "c5", "c7"}
    assert (folder / "chats-damaged.db").read_bytes() == before
    library.close()
    again = opened(folder, libraries)
    assert again.problem is None
    assert again.load("c7") == chat_of(7)
    assert again.load("c4") == chat_of(4, turns=2)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(4))
def test_what_is_found_is_in_the_chat_or_document_as_it_is_read(
    tmp_path: Path, libraries: list[Library], seed: int
) -> None:
    rng, words = random.Random(seed), ["amber", "birch", "cedar", "drift"]
    database, numbers = tmp_path / "chats.db", range(8)
    copies = [database]
    for generation in range(3):
        library = Library(tmp_path)
        for number in numbers:
            if generation == 0 or rng.random() < 0.6:
                gone, word, other = rng.choice([None, None, NOON]), *rng.choices(words, k=2)
                library.save(replace(chat_of(number, text=f"Q {word} {other}"), deleted=gone))
                known = KeptDocument(f"d{number}", other, "", 9, NOON, NOON, removed=gone)
                library.documents.add(known, f"text of {word}")
        assert library.close()
        copies += [Backups(database).make()] if generation < 2 else []
    for path in (database, copies[2]):
        for number in (0, *rng.sample(numbers, 3)):
            change_letter(path, f"c{number}")
            sql(path, f"UPDATE documents SET text_sum = 1 WHERE id = 'd{number}'")
    sql(database, "UPDATE words SET question = 'Q drift' WHERE rowid % 3 = 0")
    library = opened(tmp_path, libraries)
    chats = {f"c{number}": library.load(f"c{number}") for number in numbers}
    documents = {each.id: each for each in library.documents.documents()}
    assert library.damaged
    for word in words:
        for hit in library.search(word):
            asked = chats[hit.chat_id].turns[0].user.content
            assert word in asked
            assert hit.passage in asked
            assert chats[hit.chat_id].deleted is None
        for found in library.documents.search(word):
            document, text = documents[found.id], library.documents.text(found.id)
            assert word in document.name + text
            assert found.passage in text
            assert document.removed is None
    assert any(library.search(word) and library.documents.search(word) for word in words)


@pytest.mark.usefixtures("salvaged_in_process")
@pytest.mark.parametrize("part", thinned(range(8), keep=(0,)))
def test_tables_that_change_places_hide_nothing(folder: Path, libraries: list[Library], part: int) -> None:
    """SQLite finds every page in order then: a table has the rows of another one, or none."""
    path = folder / "chats.db"
    with ChatStore(path) as store, store.transaction():
        store.do(("projects", "harbour"), Project("harbour", "Harbour", NOON, "Be brief."))
    whole = path.read_bytes()
    with sqlite3.connect(path) as connection:
        (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
        found = connection.execute("SELECT rootpage, tbl_name FROM sqlite_master WHERE rootpage").fetchall()
    connection.close()
    Backups(path).make()
    ours = {page for page, table in found if table in ("chats", "turns", "projects")}
    pairs = [pair for pair in combinations([page for page, _ in found], 2) if ours.intersection(pair)]
    assert len(pairs) >= 8
    for pair in pairs[part::8]:
        data = bytearray(whole)
        here, there = (slice((page - 1) * page_bytes, page * page_bytes) for page in pair)
        data[here], data[there] = data[there], data[here]
        path.write_bytes(data)
        library = opened(folder, libraries)
        chats = [library.load(summary.id) for summary in library.summaries()]
        assert sorted(chats, key=lambda chat: chat.id) == [chat_of(number, turns=2) for number in range(6)], (
            pair
        )
        assert [project.id for project in library.projects()] == ["harbour"], pair
        library.close()


@pytest.mark.sweep
@pytest.mark.parametrize("bad", ["page", "schema", "letters", "table", "version"])
def test_a_damaged_database_is_not_written_to_and_is_kept(
    folder: Path, libraries: list[Library], bad: str
) -> None:
    database = folder / "chats.db"
    Backups(database).make()
    data = bytearray(database.read_bytes())
    if bad == "page":
        data[4096 * 3 :] = os.urandom(len(data) - 4096 * 3)
        database.write_bytes(data)
    elif bad == "schema":
        database.write_bytes(data.replace(b"CREATE TABLE chats", b"\xff\xfeEATE TABLE ch\xffts", 1))
    elif bad == "letters":
        database.write_bytes(b"a letter to the council " * 400)
    elif bad == "table":
        sql(database, "DROP TABLE parts", "DROP TABLE turns")
    else:
        sql(database, "PRAGMA user_version = -5")
    before = database.read_bytes()
    library = opened(folder, libraries)
    for number in range(6):
        assert library.load(f"c{number}") == chat_of(number, turns=2)
    assert library.damaged
    library.save(chat_of(7))
    library.purge("c0")
    assert not library.flush()
    assert database.read_bytes() == before
    report = library.repair()
    assert library.flush()
    assert ids(library) == {"c1", "c2", "c3", "c4", "c5", "c7"}
    assert (folder / "chats-damaged.db").exists()
    assert "chats-damaged.db" in report


def test_damage_that_is_found_while_saving_is_reported_and_nothing_is_lost(
    folder: Path, libraries: list[Library]
) -> None:
    database = folder / "chats.db"
    Backups(database).make()
    sql(database, "PRAGMA writable_schema = ON", "DELETE FROM sqlite_master WHERE type = 'index'")
    told: list[Exception | None] = []
    library = Library(folder, told.append)
    libraries.append(library)
    until(lambda: told)
    assert told[0]
    library.take_damage(told[0])
    library.save(chat_of(7))
    assert library.repair()
    assert library.flush()
    assert ids(library) == {"c0", "c1", "c2", "c3", "c4", "c5", "c7"}


def test_an_empty_database_is_noticed_by_its_backups(folder: Path, libraries: list[Library]) -> None:
    database = folder / "chats.db"
    whole = Backups(database).make()
    newest = Backups(database).make()
    change_letter(newest, "c1")
    with newest.open("r+b") as file:
        file.seek(-4096, os.SEEK_END)
        file.write(os.urandom(4096))
    database.unlink()
    ChatStore(database).close()
    library = opened(folder, libraries)
    assert library.problem
    assert library.problem.remedy == "restore"
    library.save(chat_of(7))
    assert library.flush()
    library.restore()
    assert library.problem is None
    assert library.flush()
    assert ids(library) == {"c0", "c1", "c2", "c3", "c4", "c5", "c7"}
    assert library.load("c1") == chat_of(1, turns=2)
    assert whole.exists()
    library.close()
    assert opened(folder, libraries).problem is None


def test_a_backup_with_missing_chats_is_not_rotated_out(folder: Path, libraries: list[Library]) -> None:
    backups = Backups(folder / "chats.db")
    fullest = backups.make()
    sql(folder / "chats.db", "PRAGMA foreign_keys = ON", "DELETE FROM chats WHERE id = 'c0'")
    for _ in range(KEPT + 2):
        backups.make()
    assert backups.paths()[-1] == fullest
    assert len(backups.paths()) == KEPT + 1
    library = opened(folder, libraries)
    library.restore()
    assert library.load("c0") == chat_of(0, turns=2)


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0", "chats"])
def test_a_file_that_no_repair_completed_replaces_nothing(
    folder: Path, libraries: list[Library], content: bytes | str
) -> None:
    """As older versions left it after a full disk; a database without chats is whole, too."""
    stump = folder / "chats-repaired.db"
    if isinstance(content, bytes):
        stump.write_bytes(content)
    else:
        ChatStore(stump).close()
    library = opened(folder, libraries)
    assert library.problem is None
    assert len(ids(library)) == 6
    assert not stump.exists()


@pytest.mark.sweep
@pytest.mark.parametrize("version", [0, 1, schema.VERSION, schema.VERSION + 9])
def test_a_database_of_another_program_or_a_newer_one_is_left_as_it_is(
    tmp_path: Path, libraries: list[Library], version: int
) -> None:
    sql(tmp_path / "chats.db", "CREATE TABLE bookmarks (id TEXT)", f"PRAGMA user_version = {version}")
    before = (tmp_path / "chats.db").read_bytes()
    library = opened(tmp_path, libraries)
    assert library.problem
    assert "another program" in library.problem.reason
    library.save(chat_of(1))
    assert library.load("c1") == chat_of(1)
    assert not library.close()
    assert (tmp_path / "chats.db").read_bytes() == before
    sql(tmp_path / "chats.db", "DROP TABLE bookmarks", "PRAGMA user_version = 0")
    assert opened(tmp_path, libraries).load("c1") == chat_of(1)


def test_a_database_of_an_older_version_is_set_aside(folder: Path, libraries: list[Library]) -> None:
    sql(folder / "chats.db", f"PRAGMA user_version = {schema.VERSION - 1}")
    library = opened(folder, libraries)
    assert library.problem is None
    assert "older" in library.notices[0].reason
    library.save(chat_of(7))
    assert library.close()
    assert (folder / "chats-older.db").exists()


# ---- full disks


def test_a_chat_that_is_whole_in_memory_is_not_lost_by_a_repair(
    folder: Path, libraries: list[Library]
) -> None:
    library = opened(folder, libraries)
    chats = Chats(library)
    chats.select("c1")
    change_letter(folder / "chats.db", "c1")
    assert library.get(("chats", "c1"), "unreadable") != chat_of(1, turns=2)
    chats.save_held()
    assert library.repair()
    assert library.flush()
    assert library.load("c1") == chat_of(1, turns=2)


# ---- changes that were not saved


def test_what_cannot_be_saved_at_closing_is_saved_by_the_next_run(
    folder: Path, libraries: list[Library]
) -> None:
    library = Library(folder)
    assert library.flush()
    other = sqlite3.connect(folder / "chats.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")  # a program that holds the database
    fog = Documents(library.documents).keep(Attachment("Fog.md", "fog"))
    longer = chat_of(1, turns=3).renamed("Earlier")
    library.save(replace(longer, created=NOON - timedelta(days=900)))  # by a clock that was behind
    library.save_project(Project("p", "Harbour", NOON))
    assert not library.close()
    other.close()
    again = opened(folder, libraries)
    (notice,) = again.notices
    assert notice.hint.startswith("“Harbour”, “Fog.md” and “Earlier” could not be saved")
    assert again.flush()
    assert again.load("c1").turns == longer.turns
    assert again.load("c1").name == "Earlier"
    assert again.documents.text(fog.id) == "fog"
    assert [each.name for each in again.projects()] == ["Harbour"]
    until(lambda: not (folder / "chats-unsaved.db").exists())


def test_what_was_saved_later_is_not_taken_from_an_older_file(folder: Path, libraries: list[Library]) -> None:
    """The window was closed, which wrote the file, but the person cancelled and made room."""
    library = opened(folder, libraries)
    assert library.flush()
    other = sqlite3.connect(folder / "chats.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    library.save(chat_of(7))
    library.save_project(Project("p", "Harbour", NOON))
    assert not library.flush()
    assert library.keep_beside()
    other.close()
    library.save_project(Project("p", "Port", NOON))
    assert library.flush()
    until(lambda: not (folder / "chats-unsaved.db").exists())
    crashed = folder.with_name("crashed")
    shutil.copytree(folder, crashed)
    again = opened(crashed, libraries)
    assert again.notices == []
    assert [each.name for each in again.projects()] == ["Port"]


def test_a_file_of_changes_that_are_saved_says_nothing(folder: Path, libraries: list[Library]) -> None:
    """The last process was killed before it removed the file."""
    with ChatStore(folder / "chats-unsaved.db", log=False) as store, store.transaction():
        store.write(chat_of(1, turns=2))
        store.write(Conversation("blank", NOON))
    library = opened(folder, libraries)
    assert library.notices == []
    assert library.load("c1") == chat_of(1, turns=2)
    assert "blank" not in ids(library)
    assert library.close()
    assert not (folder / "chats-unsaved.db").exists()


def test_an_unsaved_chat_replaces_nothing_that_it_does_not_have(
    folder: Path, libraries: list[Library]
) -> None:
    with ChatStore(folder / "chats-unsaved.db", log=False) as store, store.transaction():
        other = chat_of(11, turns=1)
        store.write(Conversation("c1", other.created, other.turns))
    library = opened(folder, libraries)
    assert library.load("c1") == chat_of(1, turns=2)
    assert any(library.load(each).turns == other.turns for each in ids(library))


def test_discarded_changes_are_gone_and_a_damaged_file_of_them_is_kept(
    folder: Path, libraries: list[Library]
) -> None:
    (folder / "chats-unsaved.db").write_bytes(b"no database " * 100)
    library = Library(folder)
    assert library.notices
    assert (folder / "chats-unsaved-damaged.db").exists()
    assert library.flush()
    other = sqlite3.connect(folder / "chats.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    library.save(chat_of(7))
    assert library.keep_beside()
    assert not library.close(discard=True)
    other.close()
    assert "c7" not in ids(opened(folder, libraries))


# ---- clocks


def test_no_jump_of_the_clock_moves_the_time_far() -> None:
    wall = [1_000_000.0]
    assert SteadyClock(Mark(1, 50.0, 999_990.0), lambda: wall[0]).read() == (60.0, wall[0])
    clock = SteadyClock(wall_s=lambda: wall[0])
    start_s = clock.read()[0]
    assert start_s == wall[0]
    wall[0] += 100
    assert clock.read()[0] - start_s == 100
    for _ in range(3):  # a clock that is ahead for one run
        wall[0] += 60 * DAY_S
        clock.read()
        wall[0] -= 60 * DAY_S
        clock.read()
    assert clock.read()[0] - start_s == 100 + 3 * MOST_STEP_S
    wall[0] += 100
    assert clock.read()[0] - start_s == 200 + 3 * MOST_STEP_S


def test_a_deleted_chat_outlasts_one_start_with_a_clock_that_is_ahead(folder: Path) -> None:
    wall = [time.time()]

    def start() -> tuple[Chats, Library]:
        library = Library(folder, wall_s=lambda: wall[0])
        return Chats(library, steady_now=library.now), library

    def run() -> set[str]:
        chats, library = start()
        chats.purge_old()
        assert library.close()
        return {each.id for each in chats.deleted()}

    chats, library = start()
    chats.delete("c1")
    assert library.close()
    wall[0] += 60 * DAY_S
    assert run() == {"c1"}
    wall[0] -= 60 * DAY_S
    assert run() == {"c1"}
    for _ in range(KEPT_DELETED.days):
        wall[0] += DAY_S
        found = run()
    assert found == set()


def test_a_deletion_in_the_future_counts_as_one_of_now(folder: Path, libraries: list[Library]) -> None:
    library = opened(folder, libraries)
    library.save(chat_of(1, turns=2).with_deleted(datetime(2031, 1, 1, tzinfo=UTC)))
    library.save_project(Project("p", "Harbour", NOON, deleted=datetime(2031, 1, 1, tzinfo=UTC)))
    chats = Chats(library, steady_now=library.now)
    chats.purge_old()
    (deleted,) = chats.deleted()
    assert deleted.deleted
    assert deleted.deleted <= library.now()
    assert all(each.deleted and each.deleted <= library.now() for each in library.projects())


def test_backups_go_on_after_a_run_with_a_clock_that_was_ahead(folder: Path) -> None:
    backups = Backups(folder / "chats.db")
    wall = [time.time()]

    def changed_and_due() -> bool:
        library = Library(folder, wall_s=lambda: wall[0])
        library.save(chat_of(7, turns=int(wall[0]) % 5 + 1))
        assert library.close()
        return backups.is_due(library.clock.read()[0])

    wall[0] += 5 * 365 * DAY_S
    assert changed_and_due()
    ahead = backups.make()
    os.utime(ahead, (wall[0], wall[0]))
    wall[0] -= 5 * 365 * DAY_S
    assert not changed_and_due()
    wall[0] += LEAST_AGE_S + 60
    assert changed_and_due()
    assert backups.make() == backups.paths()[0]  # the newest is not the one of the latest date
    assert not backups.is_due(wall[0] + 9 * DAY_S)  # nothing has changed


# ---- backups


def test_a_backup_is_a_whole_copy_and_the_last_three_are_kept(folder: Path) -> None:
    backups = Backups(folder / "chats.db")
    made = [backups.make() for _ in range(KEPT + 2)]
    assert backups.paths() == made[:1:-1]
    with ChatStore(made[-1], read_only=True) as store:
        assert store.load("c1") == chat_of(1, turns=2)
        store.check()
    change_letter(folder / "chats.db", "c1")
    with pytest.raises(ChecksumError):
        backups.make()
    assert sorted(path.name for path in backups.folder.iterdir()) == [path.name for path in made[2:]]


def test_backups_are_made_while_nothing_is_saved_and_damage_is_reported(
    folder: Path, libraries: list[Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(Writer.__init__.__kwdefaults__, "idle_s", 0.1)
    backups, told = Backups(folder / "chats.db"), list[Exception | None]()
    libraries.append(Library(folder, told.append))
    until(backups.paths)
    (made,) = backups.paths()
    libraries[0].save(chat_of(7))
    assert libraries[0].flush()
    time.sleep(0.5)
    assert backups.paths() == [made]  # it is new enough
    change_letter(folder / "chats.db", "c1")
    made.unlink()  # at last, because the next one is made at once
    until(lambda: told)
    assert isinstance(told[0], ChecksumError)


# ---- permanent deletion


def secret_home(folder: Path) -> str:
    """Chats, a project and a document with SECRET among others, edited, and copied in every way.

    Returns the document's id.
    """
    library = Library(folder)
    document = Documents(library.documents).keep(Attachment("Fog.md", f"fog {SECRET} " * 400))
    library.save_project(Project("p", "Harbour", NOON, f"Speak of {SECRET}."))
    for number in range(20):
        library.save(chat_of(100 + number, turns=3, tokens=200))
        library.save(chat_of(200, turns=number % 7 + 1, tokens=30, text=f"{SECRET} {number} " * 30))
        library.flush()
    for side in ("", "-wal"):  # a damaged database as a crash left it
        shutil.copy(folder / f"chats.db{side}", folder / f"chats-damaged-2.db{side}")
    library.close()
    Backups(folder / "chats.db").make()
    Backups(folder / "chats.db").make()
    (folder / "chats-damaged.db").write_bytes((folder / "chats.db").read_bytes())
    damaged = bytearray((folder / "chats.db").read_bytes())
    damaged[len(damaged) // 2 : len(damaged) // 2 + 9000] = os.urandom(9000)
    (folder / "chats-damaged-1.db").write_bytes(damaged)
    return document.id


def test_what_is_deleted_permanently_leaves_no_bytes(folder: Path, libraries: list[Library]) -> None:
    document = secret_home(folder)
    assert {*raw(folder)} > {"chats-damaged-2.db-wal", "chats.db", "chats-damaged.db", "chats-00000002.db"}
    library = opened(folder, libraries)
    library.purge("c200")
    library.purge_project("p")
    library.documents.purge(document)
    assert library.flush()
    assert raw(folder) == []
    assert len(ids(library)) == 26
    library.close()
    assert raw(folder) == []
    assert opened(folder, libraries).problem is None
    assert {path.name for path in folder.glob("chats-*")} == {
        *(f"chats-damaged{number}.db" for number in ("", "-1", "-2"))
    }
    for path in (*Backups(folder / "chats.db").paths(), folder / "chats-damaged.db"):
        with ChatStore(path, read_only=True) as store:
            store.check()
            assert len(store.heads("chats")) == 26


def test_a_deleted_chat_is_not_brought_back_by_unsaved_changes(
    folder: Path, libraries: list[Library]
) -> None:
    library = opened(folder, libraries)
    library.save(chat_of(1, turns=2).renamed("Mine"))
    assert library.keep_beside()
    library.purge("c1")
    assert library.close()
    again = opened(folder, libraries)
    assert again.problem is None
    assert "c1" not in ids(again)
