"""Saving on a thread: batches, failures that pass, and nothing lost on the way."""

from __future__ import annotations

import errno
import queue
import threading
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from app.session.chats.conversation import Conversation
from app.store import strings
from app.store.chat_store import ChatStore, Key, key_of
from app.store.faults import is_damage, saving_trouble
from app.store.writer import Writer
from tests.app.store.chats import chat_of

C1, C2 = ("chats", "c1"), ("chats", "c2")
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
    writer.add({key_of(chat): chat})


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


def test_a_deletion_waits_for_the_copies_and_nothing_else_does(path: Path, told: Told) -> None:
    erased: list[set[Key]] = []
    refused = [True]

    def erase(keys: Collection[Key]) -> set[str]:
        erased.append(set(keys))
        if refused:
            raise OSError(errno.ENOSPC, "No space left on device")
        return set()

    writer = Writer(lambda: ChatStore(path), told.append, erase_copies=erase, interval_s=0.01, retry_s=0.05)
    save(writer, chat_of(1))
    assert writer.flush()
    writer.add({C1: None})
    save(writer, chat_of(2))
    until(lambda: len(erased) > 1)
    assert read(path, "c1") == chat_of(1)  # otherwise a copy would bring it back
    assert read(path, "c2") == chat_of(2)
    refused.clear()
    until(lambda: not writer.waiting())
    assert erased[-1] == {C1}
    assert [error is None for error in told] == [False, True]  # not at each attempt
    with pytest.raises(KeyError):
        read(path, "c1")
    assert writer.close()


def test_the_quiet_is_used_for_a_backup_that_the_next_job_ends(path: Path, told: Told) -> None:
    begun, ended = queue.SimpleQueue[float](), queue.SimpleQueue[BaseException]()

    def back_up(proceed: Callable[[], None]) -> None:
        begun.put(time.monotonic())
        try:
            while True:
                proceed()
        except BaseException as error:
            ended.put(error)
            raise

    writer = Writer(lambda: ChatStore(path), told.append, back_up=back_up, interval_s=0.01, idle_s=0.2)
    last_s = 0.0
    for number in range(10):
        save(writer, chat_of(number))
        last_s = time.monotonic()
        time.sleep(0.03)
    assert begun.get(timeout=60) - last_s > 0.19
    assert ended.empty()
    save(writer, chat_of(1))
    assert writer.flush()
    assert ended.get(timeout=60)
    begun.get(timeout=60)  # again, later
    assert writer.close()
    assert told == []


def test_after_closing_nothing_is_written_even_if_the_disk_hung(path: Path, told: Told) -> None:
    entered, gate = threading.Event(), threading.Event()

    def hang() -> ChatStore:
        entered.set()
        gate.wait(60)
        return ChatStore(path)

    before = set(threading.enumerate())
    writer = Writer(hang, told.append, jobs={C1: chat_of(1), C2: None})
    (thread,) = set(threading.enumerate()) - before
    assert entered.wait(60)
    assert not writer.close(timeout_s=0.05)
    assert writer.waiting() == {C1: chat_of(1), C2: None}
    gate.set()
    thread.join(60)
    assert not thread.is_alive()
    with pytest.raises(KeyError):  # the caller wrote it elsewhere, or discarded it
        read(path, "c1")
    assert told == []
    assert writer.waiting() == {C1: chat_of(1), C2: None}


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


def test_a_reader_delays_a_deletion(writer: Writer, path: Path, told: Told) -> None:
    save(writer, chat_of(1))
    assert writer.flush()
    with ChatStore(path, read_only=True) as reader, reader.snapshot():
        reader.heads("chats")
        writer.add({C1: None})
        until(lambda: told)
    assert saving_trouble(told[0]) == strings.STORE_BUSY
    assert told[0]
    assert not is_damage(told[0])
    until(lambda: not writer.waiting())


def test_a_chat_that_cannot_be_packed_holds_up_no_other(writer: Writer, path: Path, told: Told) -> None:
    # A number that neither the packing nor SQLite has room for.
    bad = replace(chat_of(1), context_used_tokens=2**70)
    good = chat_of(2)
    save(writer, bad)
    save(writer, good)
    until(lambda: len(told) > 0)
    until(lambda: C2 not in writer.waiting())
    assert read(path, "c2") == good
    assert told[0]
    assert not is_damage(told[0])
    assert writer.waiting() == {C1: bad}
    assert not writer.flush()
    save(writer, chat_of(3))
    until(lambda: ("chats", "c3") not in writer.waiting())
    assert read(path, "c3") == chat_of(3)
    assert len(told) == 1
    save(writer, chat_of(1))
    assert writer.flush()
    assert read(path, "c1") == chat_of(1)
    until(lambda: len(told) == 2)
    assert told[1] is None
