"""The archive that lasts: two windows, a crash, damage of every kind, a newer file, repair."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.session.chats.chats import Chats
from app.session.chats.conversation import Conversation
from app.store.chat_store import ChatStore
from app.store.library import Library
from app.store.rows import Rows
from core.events import Message
from tests.app.store.chats import NOON, chat_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


def filled(folder: Path, *chats: Conversation) -> None:
    library = Library(folder)
    for chat in chats:
        library.save(chat)
    assert library.close()


@pytest.fixture
def libraries(folder: Path) -> Iterator[list[Library]]:
    """Closed at the end, whatever happened."""
    opened: list[Library] = []
    yield opened
    for library in opened:
        library.close()


def opened(folder: Path, libraries: list[Library]) -> Library:
    libraries.append(Library(folder))
    return libraries[-1]


def test_chats_outlive_the_library(folder: Path, libraries: list[Library]) -> None:
    filled(folder, chat_of(1), chat_of(2))
    library = opened(folder, libraries)
    assert library.condition.state == "whole"
    assert library.full_text
    assert {summary.id for summary in library.summaries()} == {"c1", "c2"}
    assert library.load("c1") == chat_of(1)
    with pytest.raises(KeyError):
        library.load("c9")


def test_what_was_saved_is_there_at_once(folder: Path, libraries: list[Library]) -> None:
    library = opened(folder, libraries)
    chat = chat_of(1)
    library.save(chat)
    assert library.load("c1") is chat
    library.purge("c1")
    with pytest.raises(KeyError):
        library.load("c1")


def test_a_second_one_reads_and_saves_nothing(folder: Path, libraries: list[Library]) -> None:
    filled(folder, chat_of(1))
    first, second = opened(folder, libraries), opened(folder, libraries)
    assert second.condition.state == "elsewhere"
    assert "another Draftlight" in second.condition.reason
    assert second.load("c1") == chat_of(1)
    second.save(chat_of(1).renamed("Mine"))
    second.save(chat_of(2))
    assert second.load("c1").name == "Mine"
    assert {summary.id for summary in second.summaries()} == {"c1", "c2"}
    second.purge("c1")
    with pytest.raises(KeyError):
        second.load("c1")
    assert [hit.chat_id for hit in second.search("chat 2")] == ["c2"]
    first.save(chat_of(3))
    assert first.flush()
    assert {summary.id for summary in first.summaries()} == {"c1", "c3"}
    first.close()
    assert opened(folder, libraries).condition.state == "whole"


def test_killed_in_mid_answer_keeps_what_was_autosaved(folder: Path, libraries: list[Library]) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.app.store.streaming_child", str(folder)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout
    shown = 0
    while shown < 3000:  # about a second and a half
        shown = int(child.stdout.readline())
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    library = opened(folder, libraries)
    assert library.condition.state == "whole"
    chats = Chats(archive=library, open_id="c")
    answer = chats.open.turn("t").answer
    # A quarter of a second of an answer is the most that a crash may cost; the child writes 10 in 5 ms.
    assert shown - 1500 < len(answer.tokens)
    assert len(answer.tokens) >= 10
    assert [token.position for token in answer.tokens] == list(range(len(answer.tokens)))
    assert answer.status == "cut_off"
    assert "closed before" in answer.note


def test_the_lock_ends_with_a_killed_process(folder: Path, libraries: list[Library]) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.app.store.streaming_child", str(folder)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout
    child.stdout.readline()
    assert opened(folder, libraries).condition.state == "elsewhere"
    child.kill()
    child.wait()
    child.stdout.close()
    assert opened(folder, libraries).condition.state == "whole"


def test_a_file_that_is_no_database_is_copied_and_can_be_replaced(
    folder: Path, libraries: list[Library]
) -> None:
    folder.mkdir()
    (folder / "chats.db").write_bytes(b"a letter to the council " * 400)
    library = opened(folder, libraries)
    assert library.condition.state == "damaged"
    assert library.condition.readable == 0
    copy = Path(library.condition.copy)
    assert copy.read_bytes() == (folder / "chats.db").read_bytes()
    library.save(chat_of(7))
    assert (folder / "chats.db").read_bytes() == copy.read_bytes()
    assert library.repair().state == "whole"
    assert library.load("c7") == chat_of(7)
    assert library.flush()
    assert copy.exists()


def damaged(folder: Path, chats: int = 60) -> Path:
    """A database with a piece of its middle overwritten."""
    filled(folder, *(chat_of(number, turns=3, tokens=120) for number in range(chats)))
    path = folder / "chats.db"
    store = ChatStore(path)
    store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2 // 4096 * 4096)
        file.write(os.urandom(4096 * 6))
    return path


def test_damage_is_found_before_anything_is_written(folder: Path, libraries: list[Library]) -> None:
    path = damaged(folder)
    before = path.read_bytes()
    told: list[Exception | None] = []
    library = Library(folder, told.append)
    libraries.append(library)
    if library.condition.state == "whole":
        library.save(chat_of(100))
        library.flush()
        assert told
        assert told[0]
        library.take_damage(told[0])
    assert library.condition.state == "damaged"
    assert library.condition.readable > 30
    assert library.condition.lost > 0
    assert library.load("c100") == chat_of(100)
    assert path.read_bytes()[4096:] == before[4096:]


def test_everything_readable_is_brought_over(folder: Path, libraries: list[Library]) -> None:
    damaged(folder)
    library = opened(folder, libraries)
    library.take_damage(ValueError())
    whole = [s.id for s in library.summaries() if library.load(s.id) == chat_of(int(s.id[1:]), 3, 120)]
    assert len(whole) > 20
    library.save(chat_of(200))
    library.purge("c0")
    condition = library.repair()
    assert condition.state == "whole"
    assert all(
        library.load(chat_id) == chat_of(int(chat_id[1:]), 3, 120) for chat_id in whole if chat_id != "c0"
    )
    assert library.load("c200") == chat_of(200)
    assert "c0" not in {summary.id for summary in library.summaries()}
    assert library.flush()


@pytest.mark.parametrize("table", ["answers", "turns", "chats"])
def test_a_record_that_cannot_be_read_costs_itself_only(
    folder: Path, libraries: list[Library], table: str
) -> None:
    filled(folder, chat_of(1, turns=3), chat_of(2))
    store = ChatStore(folder / "chats.db")
    column, where = {
        "answers": ("tokens", "turn = (SELECT min(id) FROM turns WHERE chat = 'c1')"),
        "turns": ("question", "id = (SELECT min(id) FROM turns WHERE chat = 'c1')"),
        "chats": ("draft", "id = 'c1'"),
    }[table]
    store.connection.execute(f"UPDATE {table} SET {column} = x'c1' WHERE {where}")
    store.close()
    library = opened(folder, libraries)
    chat = library.load("c1")
    assert library.condition.state == "damaged"
    assert library.condition.lost == 1
    assert len(chat.turns) == (2 if table == "turns" else 3)
    assert chat.turns[-1] == chat_of(1, turns=3).turns[-1]
    assert library.load("c2") == chat_of(2)


def test_a_newer_file_is_left_alone(folder: Path, libraries: list[Library]) -> None:
    filled(folder, chat_of(1))
    store = ChatStore(folder / "chats.db")
    store.connection.execute("PRAGMA user_version = 70")
    store.close()
    library = opened(folder, libraries)
    assert library.condition.state == "unusable"
    assert "newer" in library.condition.reason
    assert list(library.summaries()) == []
    library.save(chat_of(2))
    assert library.load("c2") == chat_of(2)


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(folder: Path, libraries: list[Library]) -> None:
    filled(folder, chat_of(1))
    folder.chmod(0o500)
    try:
        assert opened(folder, libraries).condition.state == "unusable"
    finally:
        folder.chmod(0o700)


def test_a_file_in_place_of_the_folder(folder: Path, libraries: list[Library]) -> None:
    folder.write_text("not a folder")
    library = opened(folder, libraries)
    assert library.condition.state == "unusable"
    library.save(chat_of(1))
    assert library.load("c1") == chat_of(1)


def test_one_copy_of_the_same_damage(folder: Path, libraries: list[Library]) -> None:
    folder.mkdir()
    (folder / "chats.db").write_bytes(b"nothing of the kind" * 300)
    for _ in range(3):
        Library(folder).close()
    assert len(list(folder.glob("chats-damaged-*"))) == 1
    time.sleep(0.01)
    shutil.rmtree(folder)


def test_a_second_connection_never_sees_half_a_batch(folder: Path, libraries: list[Library]) -> None:
    library = opened(folder, libraries)
    chat = Conversation("c", NOON)
    for number in range(40):
        chat = chat.ask(f"t{number}", Message("user", "?"))
        library.save(chat)
        with contextlib.closing(ChatStore(folder / "chats.db", read_only=True)) as reader, reader.snapshot():
            for summary in reader.summaries():
                assert len(reader.load(summary.id).turns) == summary.turns
        time.sleep(0.01)
    assert library.flush()


@pytest.mark.parametrize("table", ["answers", "turns", "chats", "facts"])
def test_a_table_that_is_gone_is_damage_and_said_in_words(
    folder: Path, libraries: list[Library], table: str
) -> None:
    filled(folder, chat_of(1, turns=2), chat_of(2))
    store = ChatStore(folder / "chats.db")
    store.connection.execute("PRAGMA foreign_keys = OFF")
    store.connection.execute(f"DROP TABLE {table}")
    store.close()
    library = opened(folder, libraries)
    if library.condition.state == "whole":
        with contextlib.suppress(KeyError):  # without its turns there is nothing left of it
            library.load("c1")
    assert library.condition.state == "damaged"
    assert "table" not in library.condition.reason
    library.save(chat_of(3))
    assert library.repair().state == "whole"
    assert library.load("c3") == chat_of(3)


def test_a_schema_that_is_no_text_is_damage(folder: Path, libraries: list[Library]) -> None:
    filled(folder, chat_of(1))
    path = folder / "chats.db"
    data = path.read_bytes()
    path.write_bytes(data.replace(b"CREATE TABLE chats", b"\xff\xfeEATE TABLE ch\xffts", 1))
    library = opened(folder, libraries)
    assert library.condition.state == "damaged"
    assert library.repair().state == "whole"


@pytest.mark.parametrize("version", [0, 1, 2, 30])
def test_a_database_of_another_program_is_left_as_it_is(
    folder: Path, libraries: list[Library], version: int
) -> None:
    folder.mkdir()
    other = sqlite3.connect(folder / "chats.db")
    other.execute("CREATE TABLE bookmarks (id INTEGER PRIMARY KEY, address TEXT)")
    other.execute(f"PRAGMA user_version = {version}")
    other.close()
    before = (folder / "chats.db").read_bytes()
    library = opened(folder, libraries)
    assert library.condition.state == "unusable"
    assert "another program" in library.condition.reason
    library.save(chat_of(1))
    assert library.load("c1") == chat_of(1)
    library.close()
    assert (folder / "chats.db").read_bytes() == before
    assert not list(folder.glob("chats-damaged*"))


def test_a_version_that_cannot_be_is_damage(folder: Path, libraries: list[Library]) -> None:
    filled(folder, chat_of(1))
    other = sqlite3.connect(folder / "chats.db")
    other.execute("PRAGMA user_version = -5")
    other.close()
    library = opened(folder, libraries)
    assert library.condition.state == "damaged"
    assert library.load("c1") == chat_of(1)


def test_what_another_process_writes_is_not_repaired(folder: Path, libraries: list[Library]) -> None:
    filled(folder, chat_of(1), chat_of(2))
    opened(folder, libraries)
    other = sqlite3.connect(folder / "chats.db")
    other.execute("UPDATE chats SET name = 'Changed' WHERE id = 'c1'")
    other.commit()
    other.close()
    second = opened(folder, libraries)
    second.load("c1")
    assert second.condition.state == "elsewhere"
    assert second.condition.lost
    assert "damaged" in second.condition.hint
    assert second.repair().state == "elsewhere"
    assert second.load("c2") == chat_of(2)
    assert not list(folder.glob("chats-repaired*"))


def test_an_answer_that_is_gone_counts_as_lost(folder: Path, libraries: list[Library]) -> None:
    filled(folder, chat_of(1), chat_of(2))
    other = sqlite3.connect(folder / "chats.db")
    other.execute("DELETE FROM answers WHERE turn = 1")
    other.commit()
    other.close()
    library = opened(folder, libraries)
    library.load("c1")
    assert (library.condition.state, library.condition.lost) == ("damaged", 1)


def test_a_chat_that_is_listed_and_not_to_be_found_is_damage(
    folder: Path, libraries: list[Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(folder, chat_of(1), chat_of(2))
    store = ChatStore(folder / "chats.db")
    store.connection.execute("DELETE FROM facts")  # so that all words are looked at again
    store.close()
    head = Rows.head
    monkeypatch.setattr(Rows, "head", lambda rows, chat: None if chat == "c1" else head(rows, chat))
    library = opened(folder, libraries)
    assert library.condition.state == "damaged"
