"""Kept requests outlive runs and damage, go when they are too old or deleted, and leave nothing then."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from app.store import requests as kept_requests
from app.store.faults import StoreError
from app.store.requests import VERSION, KeptRequest, KeptRequests
from core.events import (
    Attachment,
    Change,
    Effective,
    Finished,
    Generate,
    Grammar,
    Message,
    Passage,
    ReadingMap,
    Stats,
    Token,
    Tool,
)
from core.serve.requests import ServedRequest
from core.settings import Settings, assign

_FIXTURE = Path(__file__).parents[2] / "fixtures" / "requests-1"
_NOW_S = 1_780_000_000.0
_DAY_S = 86_400.0


def request_of(number: int, came_s: float = _NOW_S, words: str = "Fog rules: nobody leaves.") -> KeptRequest:
    """One of each kind of thing that a request can have."""
    name = f"chatcmpl-{number}"
    settings = assign(Settings(), "sampling.temperature", 0.7)
    asked = Generate(
        name,
        (Message("system", "Be brief."), Message("user", words, (Attachment("Tides.md", "High water."),))),
        settings,
        tools=(Tool("look", "Looks.", '{"type":"object"}'),),
        stops=("END",),
        grammar=Grammar("json_schema", '{"type":"object"}'),
        logit_bias={17: -2.5},
    )
    tokens = tuple(
        Token(name, at, f" w{at}", "accepted" if at % 2 else "bonus", at // 2 + 1, at, at % 2, 1, at / 10)
        for at in range(20)
    )
    reading = ReadingMap(name, "lexical", 9, 9, (Passage(0, 9, True, 0.5),))
    effective = Effective("toy", "float32", "auto", settings, changes=(Change("a.b", "1", "2", "so"),))
    finished = Finished(name, "stop", Stats(prompt_tokens=9, tokens=20, ttft_s=0.25), effective)
    record = ServedRequest(
        name, "/v1/chat/completions", "editor/1.2", "toy", came_s, True, "finished", tokens=20, ttft_s=0.25
    )
    return KeptRequest(record, asked, (reading, *tokens, finished))


def opened(folder: Path, now_s: float = _NOW_S) -> KeptRequests:
    return KeptRequests(folder, now_s=lambda: now_s)


def bytes_in(folder: Path) -> bytes:
    """All that any file there holds."""
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def content_of(folder: Path, number: int) -> bytes:
    """A piece of what the file holds of a request, and of no other one."""
    connection = sqlite3.connect(folder / "requests.db")
    row = connection.execute("SELECT content FROM requests WHERE id = ?", (f"chatcmpl-{number}",)).fetchone()
    connection.close()
    middle = len(row[0]) // 2
    return bytes(row[0])[middle : middle + 100]


def until(true: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def test_requests_are_there_in_the_next_run_with_all_that_is_shown_of_them(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    ones = [request_of(number, _NOW_S + number) for number in (1, 3, 2)]
    for one in ones:
        kept.add(one)
    assert kept.load("chatcmpl-3") == ones[1]
    assert kept.close()
    again = opened(tmp_path)
    assert again.records() == (ones[0].record, ones[2].record, ones[1].record)
    assert [again.load(one.record.id) for one in ones] == ones
    with pytest.raises(KeyError):
        again.load("chatcmpl-9")
    assert again.close()


def test_one_whose_words_were_gone_already_is_kept_without_them(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    one = KeptRequest(replace(request_of(1).record, state="failed", problem="It died."), None, ())
    kept.add(one)
    assert kept.load(one.record.id) == one
    kept.close()


def test_half_a_character_does_no_harm(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    kept.add(request_of(1, words="half \ud83d of one"))
    asked = kept.load("chatcmpl-1").asked
    assert asked is not None
    assert asked.messages[-1].content == "half \ufffd of one"
    assert kept.close()


def test_what_is_older_than_30_days_goes_by_itself(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    kept.add(request_of(1))
    kept.add(request_of(2, _NOW_S + 2 * _DAY_S))
    kept.close()
    old = content_of(tmp_path, 1)
    assert old in bytes_in(tmp_path)
    # Nobody reads and nothing is added: it goes all the same.
    later = opened(tmp_path, _NOW_S + 31 * _DAY_S)
    until(lambda: old not in bytes_in(tmp_path))
    assert [record.id for record in later.records()] == ["chatcmpl-2"]
    later.close()


def test_the_oldest_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_requests, "MOST_REQUESTS", 3)
    kept = opened(tmp_path)
    for number in range(5):
        kept.add(request_of(number, _NOW_S + number))
    assert [record.id for record in kept.records()] == ["chatcmpl-2", "chatcmpl-3", "chatcmpl-4"]
    monkeypatch.setattr(kept_requests, "MOST_BYTES", 10)
    kept.add(request_of(7, _NOW_S + 7))
    assert [record.id for record in kept.records()] == ["chatcmpl-7"]
    kept.close()


def test_what_is_deleted_is_in_no_file_any_more(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    for number in range(40):
        kept.add(request_of(number, _NOW_S + number, words=Random(number).randbytes(6000).hex()))
    kept.close()
    size = (tmp_path / "requests.db").stat().st_size
    pieces = [content_of(tmp_path, number) for number in range(40)]
    kept = opened(tmp_path)
    kept.erase("chatcmpl-7")
    until(lambda: pieces[7] not in bytes_in(tmp_path))
    assert [len(kept.records()), pieces[8] in bytes_in(tmp_path)] == [39, True]
    aside = tmp_path / "requests-damaged-20260101-000000.db"
    aside.write_bytes(pieces[7])
    kept.erase_all()
    assert kept.records() == ()
    kept.close()
    left = bytes_in(tmp_path)
    assert not any(piece in left for piece in pieces)
    assert b"editor/1.2" not in left
    assert (tmp_path / "requests.db").stat().st_size < size / 2
    assert not aside.exists()


@pytest.mark.parametrize("column", ["record", "content"])
def test_a_letter_that_became_another_costs_its_request_alone(tmp_path: Path, column: str) -> None:
    kept = opened(tmp_path)
    ones = [request_of(number, _NOW_S + number) for number in range(3)]
    for one in ones:
        kept.add(one)
    kept.close()
    connection = sqlite3.connect(tmp_path / "requests.db")
    (blob,) = connection.execute(f"SELECT {column} FROM requests WHERE id = 'chatcmpl-1'").fetchone()
    changed = bytes([blob[0], blob[1], blob[2], blob[3] ^ 1, *blob[4:]])
    connection.execute(f"UPDATE requests SET {column} = ? WHERE id = 'chatcmpl-1'", (changed,))
    connection.commit()
    connection.close()
    told: list[StoreError | None] = []
    kept = opened(tmp_path)
    kept.listen(told.append)
    if column == "record":
        kept.records()
    else:
        with pytest.raises(KeyError):
            kept.load("chatcmpl-1")
    assert [kept.load(one.record.id) for one in (ones[0], ones[2])] == [ones[0], ones[2]]
    [error] = told
    [aside] = tmp_path.glob("requests-damaged-*.db")
    assert error is not None
    assert "2 could be read, 1 could not" in error.hint
    assert aside.name in error.hint
    kept.add(request_of(5, _NOW_S + 5))
    assert kept.close()
    again = opened(tmp_path)
    assert len(again.records()) == 3
    again.close()


def test_what_is_no_database_is_set_aside(tmp_path: Path) -> None:
    file = tmp_path / "requests.db"
    file.write_bytes(b"no database at all" * 100)
    told: list[StoreError | None] = []
    kept = opened(tmp_path)
    kept.listen(told.append)
    kept.add(request_of(1))
    assert [record.id for record in kept.records()] == ["chatcmpl-1"]
    assert kept.close()
    assert [path.read_bytes()[:11] for path in tmp_path.glob("requests-damaged-*.db")] == [b"no database"]


def test_a_newer_file_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "requests.db"
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE requests (something)")
    connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    before = file.read_bytes()
    told: list[StoreError | None] = []
    kept = opened(tmp_path)
    kept.listen(told.append)
    kept.add(request_of(1))
    with pytest.raises(StoreError, match="newer Draftlight"):
        kept.records()
    assert not kept.close()
    assert file.read_bytes() == before


def test_what_a_full_disk_did_not_take_is_kept_once_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_requests, "_RETRY_S", 0.05)
    told: list[StoreError | None] = []
    kept = opened(tmp_path)
    kept.listen(told.append)
    kept.add(request_of(0))
    assert len(kept.records()) == 1
    assert kept._store is not None
    full = kept._store.connection
    full.execute("PRAGMA max_page_count = 1")  # it has more already, so nothing is added
    kept.add(request_of(1, words="".join(map(chr, range(1000, 30_000)))))
    until(lambda: bool(told))
    assert told[0] is not None
    assert "disk is full" in told[0].hint
    full.execute("PRAGMA max_page_count = 100000")
    until(lambda: told[-1] is None)
    assert len(told) == 2
    assert len(kept.records()) == 2
    assert kept.close()


def test_the_writer_survives_a_folder_that_refuses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended at the first `OSError`: what came later was lost without a word."""
    monkeypatch.setattr(kept_requests, "_RETRY_S", 0.05)
    told: list[StoreError | None] = []
    home = tmp_path / "home"
    home.write_text("a file where the folder should be")
    kept = opened(home)
    kept.listen(told.append)
    kept.add(request_of(0))
    until(lambda: bool(told))
    assert told[0] is not None
    assert "File exists" in told[0].hint
    home.unlink()
    until(lambda: told[-1] is None)
    kept.add(request_of(1))
    assert len(kept.records()) == 2
    kept.erase_all()
    assert kept.records() == ()
    assert kept.close()
    assert len(told) == 2


def test_the_writer_survives_a_job_that_fails_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_requests, "_RETRY_S", 0.05)
    told: list[StoreError | None] = []
    kept = opened(tmp_path)
    kept.listen(told.append)

    def broken(store: object) -> None:
        raise RuntimeError("a bug in a job")

    kept._do(broken)
    until(lambda: told[-1:] == [None])
    assert told[0] is not None
    assert "a bug in a job" in told[0].hint
    kept.add(request_of(1))
    assert len(kept.records()) == 1
    assert kept.close()


def test_reading_for_the_window_does_not_wait_for_a_locked_file(tmp_path: Path) -> None:
    """Another Draftlight's lock stopped the window for two seconds."""
    kept = opened(tmp_path)
    kept.add(request_of(1))
    assert len(kept.records()) == 1
    other = sqlite3.connect(tmp_path / "requests.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    records: list[object] = []
    loaded: list[object] = []
    begun_s = time.perf_counter()
    kept.fetch_records(records.append)
    kept.fetch("chatcmpl-1", loaded.append)
    kept.fetch("chatcmpl-9", loaded.append)
    assert time.perf_counter() - begun_s < 0.5
    assert records == []
    other.execute("ROLLBACK")
    other.close()
    until(lambda: len(loaded) == 2)
    assert records == [(request_of(1).record,)]
    assert loaded == [request_of(1), None]
    assert kept.close()


def test_without_a_folder_nothing_is_kept() -> None:
    kept = KeptRequests(None)
    kept.add(request_of(1))
    assert kept.records() == ()
    with pytest.raises(KeyError):
        kept.load("chatcmpl-1")
    kept.erase_all()
    assert kept.close()


def test_the_first_versions_file_opens(tmp_path: Path) -> None:
    """`tests/fixtures/requests-1` was written when requests were first kept; it is never written anew."""
    folder = Path(shutil.copytree(_FIXTURE, tmp_path / "home"))
    kept = opened(folder)
    [first, second] = kept.records()
    assert (first.client, first.state, second.state) == ("editor/1.2", "finished", "failed")
    one = kept.load(first.id)
    assert one.asked is not None
    assert [message.content for message in one.asked.messages] == ["Be brief.", "Fog rules: nobody leaves."]
    assert one.asked.settings.sampling.temperature == 0.7
    assert sum(isinstance(event, Token) for event in one.events) == 20
    assert one.finished is not None
    assert one.finished.effective.drafter == "auto"
    kept.add(request_of(9, _NOW_S + 9))
    assert len(kept.records()) == 3
    assert kept.close()
