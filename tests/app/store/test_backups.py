"""Backups and the count: whole copies only, three of them, and a database that lost chats is noticed."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.store.chat_store import ChatStore
from app.store.database import ChecksumError
from app.store.library import Library
from app.store.recovery import KEPT, BackupKeeper, Backups, ChatCount
from tests.app.store.chats import chat_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def database(folder: Path) -> Path:
    """With three chats."""
    library = Library(folder)
    for number in range(3):
        library.save(chat_of(number, turns=2))
    assert library.close()
    return folder / "chats.db"


@pytest.fixture
def libraries(folder: Path) -> Iterator[list[Library]]:
    opened: list[Library] = []
    yield opened
    for library in opened:
        library.close()


def opened(folder: Path, libraries: list[Library]) -> Library:
    libraries.append(Library(folder))
    return libraries[-1]


def ids(library: Library) -> set[str]:
    return {summary.id for summary in library.summaries()}


def emptied(database: Path) -> None:
    """A fresh database in the place of the full one."""
    database.unlink()
    ChatStore(database).close()


def until(happened: object, seconds: float = 10.0) -> None:
    end_s = time.monotonic() + seconds
    while not happened():  # type: ignore[operator]
        assert time.monotonic() < end_s
        time.sleep(0.01)


def test_a_backup_is_a_whole_copy_and_the_last_three_are_kept(database: Path) -> None:
    backups = Backups(database)
    made = []
    for _ in range(KEPT + 1):
        made.append(backups.make())
        made[-1] = made[-1].rename(made[-1].with_name(f"chats-2020010{len(made)}-000000.db"))
    backups.make()
    assert len(backups.paths()) == KEPT
    assert not made[0].exists()
    store = ChatStore(backups.paths()[0], read_only=True)
    assert store.load("c1") == chat_of(1, turns=2)
    store.check()
    store.close()
    assert not list(backups.folder.glob("*-wal"))


def test_a_damaged_database_takes_no_good_copys_place(database: Path) -> None:
    backups = Backups(database)
    good = backups.make()
    store = ChatStore(database)
    store.connection.execute("UPDATE turns SET name = 'other' WHERE id = 1")
    store.close()
    with pytest.raises(ChecksumError):
        backups.make()
    assert backups.paths() == [good]
    assert list(backups.folder.iterdir()) == [good]


def test_a_backup_is_made_when_nothing_is_saved(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backups = Backups(database)
    looks: list[float] = []

    def is_due(now_s: float) -> bool:
        """Not the first time it is looked."""
        looks.append(now_s)
        return len(looks) > 4 and Backups.is_due(backups, now_s)

    monkeypatch.setattr(backups, "is_due", is_due)
    keeper = BackupKeeper(backups, lambda error: None, idle_s=0.05)
    until(backups.paths)
    keeper.close()
    monkeypatch.undo()
    assert not backups.is_due(time.time())
    assert backups.is_due(time.time() + 7 * 3600) is False  # nothing has changed since
    later_s = time.time() + 1  # a file's clock may tick as seldom as every few milliseconds
    os.utime(database, (later_s, later_s))
    assert backups.is_due(time.time() + 7 * 3600)


def test_damage_that_nobody_opens_is_told(database: Path) -> None:
    store = ChatStore(database)
    store.connection.execute("UPDATE answers SET tokens = x'c1' WHERE turn = 2")
    store.close()
    told: list[Exception] = []
    keeper = BackupKeeper(Backups(database), told.append, idle_s=0.05)
    until(lambda: told)
    keeper.close()
    assert isinstance(told[0], ChecksumError)
    assert not Backups(database).paths()


def test_what_is_saved_has_precedence(database: Path) -> None:
    keeper = BackupKeeper(Backups(database), lambda error: None, idle_s=0.2)
    for _ in range(20):
        keeper.busy()
        time.sleep(0.03)
    assert not Backups(database).paths()
    keeper.close()


def test_an_empty_database_in_the_place_of_a_full_one_is_noticed(
    database: Path, folder: Path, libraries: list[Library]
) -> None:
    Backups(database).make()
    emptied(database)
    library = opened(folder, libraries)
    condition = library.condition
    assert (condition.state, condition.readable, condition.lost, condition.restorable) == ("missing", 0, 3, 3)
    library.save(chat_of(7))
    assert library.flush()
    library.restore()
    assert library.condition.state == "whole"
    assert ids(library) == {"c0", "c1", "c2", "c7"}
    assert library.load("c1") == chat_of(1, turns=2)
    library.close()
    again = opened(folder, libraries)
    assert again.condition.state == "whole"
    assert ids(again) == {"c0", "c1", "c2", "c7"}


def test_it_is_said_again_until_somebody_has_answered(
    database: Path, folder: Path, libraries: list[Library]
) -> None:
    emptied(database)
    first = opened(folder, libraries)
    assert first.condition.state == "missing"
    assert first.condition.restorable == 0
    first.save(chat_of(7))
    first.close()
    second = opened(folder, libraries)
    assert (second.condition.state, second.condition.readable, second.condition.lost) == ("missing", 1, 3)
    second.accept_missing()
    assert second.condition.state == "whole"
    second.close()
    assert opened(folder, libraries).condition.state == "whole"


def test_deleted_chats_are_not_missed(database: Path, folder: Path, libraries: list[Library]) -> None:
    library = opened(folder, libraries)
    library.purge("c0")
    library.close()
    assert ChatCount(database).read() == 2
    assert opened(folder, libraries).condition.state == "whole"


def test_a_count_that_cannot_be_read_is_made_anew(
    database: Path, folder: Path, libraries: list[Library]
) -> None:
    database.with_suffix(".count").write_bytes(b"\xff")
    assert opened(folder, libraries).condition.state == "whole"
    assert ChatCount(database).read() == 3


def test_a_repaired_database_gets_back_what_only_the_backup_has(
    database: Path, folder: Path, libraries: list[Library]
) -> None:
    Backups(database).make()
    store = ChatStore(database)
    store.connection.execute("DELETE FROM turns WHERE chat = 'c0'")
    store.connection.execute("DELETE FROM chats WHERE id = 'c0'")
    store.connection.execute("UPDATE chats SET title = 'other' WHERE id = 'c1'")
    store.close()
    library = opened(folder, libraries)
    assert library.condition.state == "damaged"
    condition = library.repair()
    assert (condition.state, condition.lost, condition.restorable) == ("missing", 1, 1)
    library.restore()
    assert ids(library) == {"c0", "c1", "c2"}
    shutil.rmtree(folder / "backups")
