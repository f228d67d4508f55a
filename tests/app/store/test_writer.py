"""Saving on a thread: batches, failures that pass, and nothing lost on the way."""

from __future__ import annotations

import errno
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from app.session.chats.conversation import Conversation
from app.store.chat_store import ChatStore, Job
from app.store.writer import Writer
from core.events import Message, Token
from tests.app.store.chats import chat_of

Told = list[Exception | None]


@pytest.fixture
def told() -> Told:
    return []


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats.db"


@pytest.fixture
def writer(path: Path, told: Told) -> Iterator[Writer]:
    writer = Writer(lambda: ChatStore(path), told.append, interval_s=0.02, retry_s=0.05)
    yield writer
    writer.close()


def save(writer: Writer, chat: Conversation) -> None:
    writer.add(chat.id, chat)


def read(path: Path, chat_id: str) -> Conversation:
    store = ChatStore(path)
    try:
        return store.load(chat_id)
    finally:
        store.close()


def until(condition: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.005)


def test_saving_never_waits_for_the_disk(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    save(writer, chat_of(1))
    writer.flush()
    gate, passed = threading.Event(), []
    write = ChatStore.write

    def slow(store: ChatStore, *arguments: Any) -> None:
        passed.append(gate.wait(60))
        write(store, *arguments)

    monkeypatch.setattr(ChatStore, "write", slow)
    for number in range(50):
        save(writer, chat_of(number))
    gate.set()  # not before all calls of `save` have returned
    assert writer.flush()
    assert all(passed)


def test_purging_wins_over_saving_and_the_other_way_round(writer: Writer, path: Path) -> None:
    save(writer, chat_of(1))
    writer.add("c1", None)
    assert writer.waiting() == {"c1": None}
    writer.flush()
    with pytest.raises(KeyError):
        read(path, "c1")
    save(writer, chat_of(1))
    writer.flush()
    assert read(path, "c1") == chat_of(1)


def test_a_chat_that_was_read_is_written_by_its_changes(writer: Writer, path: Path) -> None:
    save(writer, chat_of(1, turns=5))
    writer.flush()
    chat = read(path, "c1")
    writer.note(chat)
    longer = chat.ask("new", Message("user", "More?"))
    save(writer, longer)
    assert writer.flush()
    assert read(path, "c1") == longer


def test_a_deletion_waits_for_the_copies_and_nothing_else_does(path: Path, told: Told) -> None:
    erased: list[dict[str, Job]] = []
    refused = [True]

    def erase(jobs: Mapping[str, Job]) -> None:
        erased.append(dict(jobs))
        if refused:
            raise OSError(errno.ENOSPC, "No space left on device")

    writer = Writer(lambda: ChatStore(path), told.append, erase_copies=erase, interval_s=0.01, retry_s=0.05)
    save(writer, chat_of(1))
    assert writer.flush()
    writer.add("c1", None)
    save(writer, chat_of(2))
    until(lambda: len(erased) > 1)
    assert read(path, "c1") == chat_of(1)  # otherwise a copy would bring it back
    assert read(path, "c2") == chat_of(2)
    refused.clear()
    until(lambda: not writer.waiting())
    assert erased[-1] == {"c1": None}
    assert [error is None for error in told] == [False, True]  # not at each attempt
    with pytest.raises(KeyError):
        read(path, "c1")
    assert writer.close()


def test_after_closing_nothing_is_written_even_if_the_disk_hung(path: Path, told: Told) -> None:
    entered, gate = threading.Event(), threading.Event()

    def hang() -> ChatStore:
        entered.set()
        gate.wait(60)
        return ChatStore(path)

    writer = Writer(hang, told.append, jobs={"c1": chat_of(1), "c2": None})
    assert entered.wait(60)
    assert not writer.close(timeout_s=0.05)
    assert writer.waiting() == {"c1": chat_of(1), "c2": None}
    gate.set()
    writer._thread.join(60)
    assert not writer._thread.is_alive()
    with pytest.raises(KeyError):  # the caller wrote it elsewhere, or discarded it
        read(path, "c1")
    assert told == []
    assert writer.waiting() == {"c1": chat_of(1), "c2": None}


class Disk:
    """Opens a store, or fails with `error`. What the writer tells is recorded before `told` returns.

    While it is told, `answered` gets a while to be set, which is too early.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.error: Exception | None = OSError(errno.ENOSPC, "No space left on device")
        self.answered = threading.Event()
        self.early: list[bool] = []

    def open(self) -> ChatStore:
        if self.error:
            raise self.error
        return ChatStore(self._path)

    def told(self, error: Exception | None) -> None:
        self.early.append(self.answered.wait(0.2))


@pytest.mark.parametrize("ask", [Writer.flush, lambda writer: kept(writer), Writer.close])
@pytest.mark.parametrize("works", [False, True])
def test_a_change_of_the_failure_is_reported_before_anybody_gets_the_result(
    path: Path, ask: Callable[[Writer], bool], works: bool
) -> None:
    disk = Disk(path)
    writer = Writer(disk.open, disk.told, retry_s=60)
    if works:
        until(lambda: disk.early)
        disk.error = None
    else:
        disk.error = OSError(errno.EROFS, "Read-only file system")
    save(writer, chat_of(1))
    assert ask(writer) == works
    disk.answered.set()
    assert disk.early == [False] * 2 if works else [False]
    assert bool(writer.waiting()) != works
    writer.close()


def kept(writer: Writer) -> bool:
    answers = queue.SimpleQueue[bool]()
    writer.when_kept(answers.put)
    return answers.get(timeout=60)


def test_another_reason_is_reported_too(path: Path, told: Told) -> None:
    disk = Disk(path)
    writer = Writer(disk.open, told.append, interval_s=0.01, retry_s=0.01)
    save(writer, chat_of(1))
    assert not writer.flush()
    assert not writer.flush()
    disk.error = sqlite3.DatabaseError("database disk image is malformed")
    assert not writer.flush()
    disk.error = None
    assert writer.flush()
    assert [type(each) for each in told] == [OSError, sqlite3.DatabaseError, type(None)]
    writer.close()


def test_who_asks_during_an_attempt_gets_an_answer(
    writer: Writer, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, gate = threading.Event(), threading.Event()
    do = ChatStore.do

    def slow(store: ChatStore, *arguments: Any) -> None:
        entered.set()
        gate.wait(60)
        do(store, *arguments)

    monkeypatch.setattr(ChatStore, "do", slow)
    save(writer, chat_of(1))
    assert entered.wait(60)
    answers = queue.SimpleQueue[bool]()
    writer.when_kept(answers.put)  # nothing else will be saved
    gate.set()
    assert answers.get(timeout=60)


def test_what_was_written_before_is_durable_after_the_answer(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[bool] = []
    transaction = ChatStore.transaction

    def recorded(store: ChatStore, *, durable: bool = False) -> Any:
        made.append(durable)
        return transaction(store, durable=durable)

    monkeypatch.setattr(ChatStore, "transaction", recorded)
    save(writer, chat_of(1))
    until(lambda: not writer.waiting())
    assert kept(writer)
    assert made[-1]
    count = len(made)
    assert kept(writer)  # at once
    assert len(made) == count


def test_a_chat_that_cannot_be_packed_holds_up_no_other(writer: Writer, path: Path, told: Told) -> None:
    # A number that neither the packing nor SQLite has room for.
    bad = replace(chat_of(1), context_used_tokens=2**70)
    good = chat_of(2)
    save(writer, bad)
    save(writer, good)
    until(lambda: len(told) > 0)
    until(lambda: "c2" not in writer.waiting())
    assert read(path, "c2") == good
    assert isinstance(told[0], OverflowError)
    assert writer.waiting() == {"c1": bad}
    assert not writer.flush()
    save(writer, chat_of(3))
    until(lambda: "c3" not in writer.waiting())
    assert read(path, "c3") == chat_of(3)
    assert len(told) == 1
    save(writer, chat_of(1))
    assert writer.flush()
    assert read(path, "c1") == chat_of(1)
    until(lambda: len(told) == 2)
    assert told[1] is None


def test_of_a_chat_that_cannot_be_packed_nothing_is_half_written(writer: Writer, path: Path) -> None:
    whole = chat_of(1, turns=2)
    save(writer, whole)
    assert writer.flush()
    huge = Token("t", 2**70, "x", "normal", 1, 0)
    bad = whole.renamed("Mine").ask("t", Message("user", "More?")).write("t", [huge])
    save(writer, bad)
    until(lambda: not writer._jobs and not writer._in_flight)
    assert read(path, "c1") == whole
    assert not writer.close()
    assert writer.waiting() == {"c1": bad}
