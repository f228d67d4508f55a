"""What cannot be saved when Draftlight closes waits in a file, and is in the database the next time."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from app.store.chat_files import from_json
from app.store.library import Library
from app.store.recovery import Unsaved
from tests.app.store.chats import chat_of


def test_what_cannot_be_written_at_closing_is_there_the_next_time(tmp_path: Path) -> None:
    library = Library(tmp_path)
    library.save(chat_of(1))
    assert library.flush()
    other = sqlite3.connect(tmp_path / "chats.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")  # a program that holds the database
    longer = chat_of(1, 2)
    library.save(longer)
    library.save(chat_of(2))
    assert not library.close()
    other.close()
    waiting = from_json((tmp_path / "chats-unsaved.json").read_bytes())
    assert {chat.id: chat for chat in waiting} == {"c1": longer, "c2": chat_of(2)}
    again = Library(tmp_path)
    try:
        assert again.condition.state == "whole"
        assert {summary.id for summary in again.summaries()} == {"c1", "c2"}
        assert (again.load("c1"), again.load("c2")) == (longer, chat_of(2))
    finally:
        assert again.close()
    assert not (tmp_path / "chats-unsaved.json").exists()
    assert (tmp_path / "chats-unsaved-taken.json").exists()


def test_a_later_state_in_the_database_is_not_replaced(tmp_path: Path) -> None:
    library = Library(tmp_path)
    library.save(chat_of(1).renamed("Later"))
    library.close()
    earlier = chat_of(0)
    old = type(earlier)("c1", earlier.created, earlier.turns)
    assert Unsaved(tmp_path / "chats.db").write([old])
    again = Library(tmp_path)
    assert again.load("c1") == chat_of(1).renamed("Later")
    again.close()


def test_two_closings_in_a_row_lose_nothing(tmp_path: Path) -> None:
    unsaved = Unsaved(tmp_path / "chats.db")
    assert unsaved.write([chat_of(1), chat_of(2)])
    assert unsaved.write([chat_of(2, 2), chat_of(3)])
    assert {chat.id: chat for chat in unsaved.read()} == {
        "c1": chat_of(1),
        "c2": chat_of(2, 2),
        "c3": chat_of(3),
    }


def test_a_file_that_holds_no_chats_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / "chats-unsaved.json").write_text("{")
    library = Library(tmp_path)
    assert library.condition.state == "whole"
    library.close()
    aside = tmp_path / "chats-unsaved-damaged.json"
    assert library.unsaved_set_aside == aside
    assert aside.read_text() == "{"
    (tmp_path / "chats-unsaved.json").write_text("[")
    again = Library(tmp_path)
    again.close()
    assert again.unsaved_set_aside == tmp_path / "chats-unsaved-damaged-1.json"
    assert aside.read_text() == "{"


def test_a_disk_that_hangs_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    monkeypatch.setattr("app.store.recovery.os.fsync", lambda number: go_on.wait(10))
    assert not Unsaved(tmp_path / "chats.db").write([chat_of(1)], timeout_s=0.1)
    go_on.set()
    for thread in threading.enumerate():
        if thread.name == "draftlight-unsaved":
            thread.join(5)
