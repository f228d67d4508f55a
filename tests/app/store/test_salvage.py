"""Damage without a backup: every row on whole pages is read, and what is missing is named."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.structs import replace

from app.session.chats.conversation import Answer, Conversation
from app.session.chats.projects import Project
from app.session.documents import KeptDocument, digest_of
from app.store.chat_store import ChatStore
from app.store.copies import Backups, erase
from app.store.database import checksum
from app.store.faults import StoreError
from app.store.library import Library
from app.store.salvage import Found, salvage
from core.events import Message
from core.system.sqlite_pages import PAGE_BYTES, Pages, logged_pages, values_of, varint
from tests.app.launch.test_special_files import KINDS, NAMED, make
from tests.app.store.chats import NOON, chat_of, with_results
from tests.app.store.chats import written as written_tokens
from tests.app.store.pages import pages_of_rows
from tests.app.store.test_recovery import until
from tests.thinned import thinned

LONG_CHAT, LONG_TURNS = "c0", 50
PROJECT = Project("harbour", "Harbour", NOON, "Be brief. " * 40)
KEPT_TEXT = " ".join(f"tide{number}" for number in range(600))


class Written(Struct, frozen=True):
    """A database as one file, its chats, and the pages of each row: (table, chat, turn) or (table, id)."""

    data: bytes
    chats: dict[str, Conversation]
    pages: dict[tuple[object, ...], frozenset[int]]

    def is_whole(self, damaged: set[int], *keys: tuple[object, ...]) -> bool:
        """Whether all rows with `keys` are on other pages."""
        return not any(self.pages[key] & damaged for key in keys)


def _own(chat: Conversation, dice: random.Random) -> Conversation:
    """`chat` with words and times of its own on each page, by which the test finds its rows."""
    turns = []
    for turn in chat.turns:
        words = " ".join(dice.randbytes(8).hex() for _ in range(dice.choice((2, 4, 90))))
        tokens = written_tokens(turn.id, len(turn.answer.tokens), dice.randbytes(4).hex())
        tokens = tuple(replace(token, time_s=dice.random()) for token in tokens)
        turns.append(
            replace(turn, user=replace(turn.user, content=words), answer=replace(turn.answer, tokens=tokens))
        )
    return replace(chat, turns=tuple(turns), draft=Message("user", dice.randbytes(40).hex()))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder, dice = tmp_path_factory.mktemp("whole"), random.Random(8)
    chats = {f"c{n}": chat_of(n, LONG_TURNS if n == 0 else 3, 200 if n == 3 else 12) for n in range(8)}
    chats = {chat_id: _own(chat, dice) for chat_id, chat in chats.items()}
    library = Library(folder)
    library.save_project(PROJECT)
    library.documents.add(
        KeptDocument("tides", "tides.md", digest_of(KEPT_TEXT), len(KEPT_TEXT), NOON, NOON), KEPT_TEXT
    )
    for chat in chats.values():
        library.save(chat)
    assert library.close()
    data = (folder / "chats.db").read_bytes()
    return Written(data, chats, pages_of_rows(folder / "chats.db"))


def salvaged(data: bytes, log: bytes = b"", backups: list[ChatStore] | None = None) -> Iterator[ChatStore]:
    found = Found()
    for row in Pages(data, logged_pages(log)).rows():
        found.add(row)
    with salvage(found, backups or []).store as store:
        yield store


def check(written: Written, data: bytes, damaged: set[int]) -> int:
    """Everything on other pages is read; returns the number of whole turns."""
    whole = 0
    for store in salvaged(data):
        for chat_id, chat in written.chats.items():
            rows = [(kind, chat_id, place) for kind in ("turns", "parts") for place in range(len(chat.turns))]
            if written.is_whole(damaged, ("chats", chat_id), *rows):
                assert store.load(chat_id) == chat, (chat_id, damaged)
                whole += len(chat.turns)
                continue
            kept = {turn.id: turn for turn in store.load(chat_id).turns} if has(store, chat_id) else {}
            for place, turn in enumerate(chat.turns):
                if written.is_whole(damaged, ("turns", chat_id, place), ("parts", chat_id, place)):
                    assert kept.get(turn.id) == turn, (chat_id, place, damaged)
                    whole += 1
                elif written.is_whole(damaged, ("turns", chat_id, place)):
                    assert kept[turn.id].user == turn.user
                elif written.is_whole(damaged, ("parts", chat_id, place)):
                    assert any(each.answer == turn.answer for each in kept.values()), (chat_id, place)
        if written.is_whole(damaged, ("projects", PROJECT.id)):
            assert store.heads("projects") == [PROJECT]
    return whole


def has(store: ChatStore, chat_id: str) -> bool:
    return chat_id in store.ids("chats")


def damaged_copy(data: bytes, pages: set[int], how: str, dice: random.Random) -> bytes:
    copy = bytearray(data)
    for page in pages:
        begin = (page - 1) * PAGE_BYTES
        if how == "64 bytes":
            copy[begin : begin + 64] = b"\xff" * 64
        elif how == "zeroed":
            copy[begin : begin + PAGE_BYTES] = bytes(PAGE_BYTES)
        else:
            copy[begin : begin + PAGE_BYTES] = dice.randbytes(PAGE_BYTES)
    return bytes(copy)


@pytest.mark.sweep
@pytest.mark.parametrize("how", ["64 bytes", "zeroed", "random"])
@pytest.mark.parametrize("page", thinned(range(1, 13), keep=(1, 2, 5, 9)))
def test_one_damaged_page_hides_no_other(written: Written, page: int, how: str) -> None:
    data = damaged_copy(written.data, {page}, how, random.Random(page))
    assert check(written, data, {page}) >= 30


@pytest.mark.parametrize("seed", thinned(range(12), keep=range(4)))
def test_several_damaged_pages_hide_no_other(written: Written, seed: int) -> None:
    dice = random.Random(seed)
    count = len(written.data) // PAGE_BYTES
    pages = {*dice.sample(range(1, count + 1), dice.randint(2, count // 3))}
    check(written, damaged_copy(written.data, pages, dice.choice(["zeroed", "random"]), dice), pages)


@pytest.mark.parametrize("seed", range(4))
def test_a_cut_off_file_is_read_as_far_as_it_goes(written: Written, seed: int) -> None:
    count = len(written.data) // PAGE_BYTES
    kept = random.Random(seed).randrange(1, count)
    check(written, written.data[: kept * PAGE_BYTES + 17 * seed], {*range(kept + 1, count + 1)})


@pytest.mark.parametrize("seed", range(4))
def test_pages_that_changed_places_are_read_where_they_are(written: Written, seed: int) -> None:
    """A row in one page does not depend on its number; of others the overflow pages must be in place."""
    dice, data = random.Random(seed), bytearray(written.data)
    count = len(data) // PAGE_BYTES
    one, two = dice.sample(range(2, count + 1), 2)
    here, there = (slice((page - 1) * PAGE_BYTES, page * PAGE_BYTES) for page in (one, two))
    data[here], data[there] = data[there], data[here]
    shared = {page for pages in written.pages.values() if len(pages) > 1 for page in pages}
    check(written, bytes(data), {one, two} & shared)


def test_pages_of_the_log_count_in_their_newest_state(tmp_path: Path) -> None:
    """As SQLite reads them: committed, up to the first damaged frame."""
    library = Library(tmp_path / "home")
    for number in range(6):
        library.save(chat_of(number, 2))
    library.flush()
    library.purge("c2")
    library.flush()
    library.save(chat_of(1, 3))
    library.flush()
    library.save(chat_of(7, 2, 400))
    library.flush()
    with ChatStore(tmp_path / "home" / "chats.db", read_only=True) as reader:  # keeps the log
        reader.ids("chats")
        copy = shutil.copytree(tmp_path / "home", tmp_path / "copy")
        library.close()
    data, log = (copy / "chats.db").read_bytes(), (copy / "chats.db-wal").read_bytes()
    assert log
    wanted = {f"c{number}": chat_of(number, 2) for number in (0, 3, 4, 5)}
    wanted |= {"c1": chat_of(1, 3), "c7": chat_of(7, 2, 400)}
    for store in salvaged(data, log):
        assert {row_id: store.load(row_id) for row_id in store.ids("chats")} == wanted
    frame = PAGE_BYTES + 24
    for frames in range(0, len(log) // frame, 3):
        cut = bytearray(log)
        cut[32 + frames * frame + 100] ^= 1
        (copy / "chats.db").write_bytes(data)
        (copy / "chats.db-wal").write_bytes(cut)
        (copy / "chats.db-shm").unlink(missing_ok=True)
        try:
            with ChatStore(copy / "chats.db") as store:
                expected = {row_id: store.load(row_id) for row_id in store.ids("chats")}
        except (StoreError, sqlite3.Error):
            expected = {}
        for store in salvaged(data, bytes(cut)):
            found = {row_id: store.load(row_id) for row_id in store.ids("chats")}
            assert found == expected


def test_what_was_erased_does_not_come_back(tmp_path: Path) -> None:
    """Its pages are on the free list, and its cells in free blocks."""
    library = Library(tmp_path)
    for number in range(8):
        library.save(chat_of(number, 4, 300, text=f"heliotrope {number} " * 300 if number % 2 else ""))
    library.flush()
    library.save(chat_of(0, 1))  # fewer turns
    for number in range(1, 8, 2):
        library.purge(f"c{number}")
    assert library.flush()
    assert library.close()
    data = (tmp_path / "chats.db").read_bytes()
    assert int.from_bytes(data[36:40], "big") > 20  # pages on the free list
    for damaged in (data, damaged_copy(data, {1, 2, 4, 6}, "zeroed", random.Random(1))):
        for store in salvaged(damaged):
            ids = store.ids("chats")
            assert ids <= {"c0", "c2", "c4", "c6"}
            assert {turn.id for turn in store.load("c0").turns if "lost" not in turn.id} <= {"c0t0"}
            assert damaged is not data or (len(ids), store.load("c0")) == (4, chat_of(0, 1))


@pytest.mark.parametrize("seed", thinned(range(60), keep=range(20)))
def test_no_bytes_are_an_error_of_the_reader(seed: int) -> None:
    dice = random.Random(seed)
    data = bytearray(dice.randbytes(PAGE_BYTES * dice.randint(1, 4)))
    for page in range(len(data) // PAGE_BYTES):
        data[page * PAGE_BYTES + (100 if page == 0 else 0)] = 13
    found = Found()
    for row in Pages(bytes(data), logged_pages(dice.randbytes(200))).rows():
        found.add(row)
    assert not found.has_any()
    assert varint(b"", 0) == (0, 0)
    assert varint(b"\xff" * 9, 0) == (-1, 9)
    assert values_of(b"\x03\x09\x01\xfe") == [1, -2]


# ---- in the library


@pytest.fixture
def home(tmp_path: Path, written: Written) -> Path:
    """A damaged database without a backup: the schema, the roots, and a page of the long chat."""
    long_page = min(written.pages["turns", LONG_CHAT, 25])
    (tmp_path / "chats.db").write_bytes(
        damaged_copy(written.data, {1, 3, 4, 6, long_page}, "64 bytes", random.Random(1))
    )
    return tmp_path


def test_a_library_shows_and_repairs_what_can_be_read(home: Path, written: Written) -> None:
    before = (home / "chats.db").read_bytes()
    library = Library(home)
    problem = library.problem
    assert problem is not None
    assert problem.remedy == "repair"
    count = len(written.chats)
    assert f"{count} of {count} chats can be read, 1 of them only in part." in problem.hint
    assert "no backup" in problem.hint
    assert {summary.id for summary in library.summaries()} == {*written.chats}
    word = written.chats["c3"].turns[1].user.content.split()[1]
    assert [hit.chat_id for hit in library.search(word)] == ["c3"]
    report = library.repair()
    assert f"{count} chats were saved in a new database. 1 of them only in part" in report
    assert library.close()
    assert (home / "chats-damaged.db").read_bytes() == before
    again = Library(home)
    assert again.problem is None
    assert all(again.load(chat_id) == chat for chat_id, chat in written.chats.items() if chat_id != LONG_CHAT)
    long = again.load(LONG_CHAT)
    named = [turn.user.content for turn in long.turns if "could not be read" in turn.user.content]
    assert named, "the missing turns are named"
    there = {turn.id for turn in long.turns} & {turn.id for turn in written.chats[LONG_CHAT].turns}
    assert len(there) >= LONG_TURNS - 30
    again.close()


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM sqlite_master; PRAGMA user_version = 0",  # as of an empty database
        "DELETE FROM sqlite_master WHERE tbl_name != 'projects'",  # as of another program
    ],
)
def test_rows_are_found_where_the_list_of_tables_is_lost(
    tmp_path: Path, written: Written, damage: str
) -> None:
    (tmp_path / "chats.db").write_bytes(written.data)
    with closing(sqlite3.connect(tmp_path / "chats.db")) as connection:
        connection.executescript(f"PRAGMA writable_schema = 1; {damage}")
    with closing(Library(tmp_path)) as library:
        assert library.problem is not None
        assert library.problem.remedy == "repair"
        assert {summary.id for summary in library.summaries()} == {*written.chats}
        library.repair()
        assert library.flush()
    with closing(Library(tmp_path)) as library:
        assert library.problem is None
        assert all(library.load(chat_id) == chat for chat_id, chat in written.chats.items())


def test_missing_turns_come_from_the_newest_backup_that_has_them(home: Path, written: Written) -> None:
    """And those that are newer than the backup come from the damaged database."""
    damaged = (home / "chats.db").read_bytes()
    (home / "chats.db").unlink()
    early = Library(home)
    for chat in written.chats.values():
        early.save(replace(chat, turns=chat.turns[:40]))
    assert early.flush()
    Backups(home / "chats.db").make()
    assert early.close()
    (home / "chats.db").write_bytes(damaged)
    library = Library(home)
    assert library.load(LONG_CHAT) == written.chats[LONG_CHAT]
    assert library.problem is not None
    assert "only in part" not in library.problem.hint
    assert f"The newest backup has {len(written.chats)}" in library.problem.hint
    library.close()


def test_the_first_backup_comes_after_the_tenth_turn(tmp_path: Path) -> None:
    library, backups = Library(tmp_path), Backups(tmp_path / "chats.db")
    library.save(chat_of(1, 9))
    assert library.flush()
    assert library.flush()
    assert not backups.paths()
    library.save(chat_of(2, 1))
    assert library.flush()
    until(backups.paths)
    library.save(chat_of(3, 1))
    assert library.close()
    (backup,) = backups.paths()
    with ChatStore(backup, read_only=True) as store:
        assert store.load("c2") == chat_of(2, 1)


@pytest.mark.sweep
@pytest.mark.parametrize("obstacle", [*KINDS, "letter"])
@pytest.mark.parametrize("backup", [True, False])
def test_what_is_in_place_of_the_database_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, obstacle: str, backup: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    database = tmp_path / "home" / "chats.db"
    library = Library(database.parent)
    library.save(chat_of(1, 2))
    library.flush()
    if backup:
        Backups(database).make()
    assert library.close()
    database.unlink()
    if obstacle == "letter":
        database.write_bytes(b"a letter to the council " * 400)
        words = "chats.db is not a database"
    else:
        make(database, obstacle)
        words = f"Instead of the file chats.db there is {NAMED[obstacle]}"
    library = Library(database.parent)
    assert library.problem is not None
    assert words in library.problem.reason
    assert library.problem.remedy == "repair"
    assert [summary.id for summary in library.summaries()] == (["c1"] if backup else [])
    library.repair()
    library.save(chat_of(2, 1))
    library.save(chat_of(3, 1))
    library.purge("c3")  # from every copy, what was set aside included
    assert library.flush()
    assert library.close()
    assert os.path.lexists(database.parent / "chats-damaged.db")
    library = Library(database.parent)
    assert library.problem is None
    assert library.load("c2") == chat_of(2, 1)
    assert {summary.id for summary in library.summaries()} == ({"c1", "c2"} if backup else {"c2"})
    library.close()


def test_an_answer_whose_middle_is_missing_says_so(tmp_path: Path) -> None:
    """Of an answer in progress each flush is a row; those behind a missing one cannot be placed."""
    library = Library(tmp_path)
    tokens = written_tokens("growing", 60)
    for count in (20, 40, 60):
        chat = chat_of(1, 1)
        turn = replace(chat.turns[0], answer=Answer(tokens[:count], "writing"))
        library.save(replace(chat, turns=(turn,)))
        assert library.flush()
    assert library.close()
    found = Found()
    for row in Pages((tmp_path / "chats.db").read_bytes(), {}).rows():
        found.add(row)
    assert len(found.parts) == 3
    del found.parts["c1", 0, 20]
    with salvage(found, []).store as store:
        answer = store.load("c1").turns[0].answer
    assert answer.tokens == tokens[:20]
    assert answer.status == "cut_off"
    assert "could not be read" in answer.note


def test_of_two_states_of_a_project_the_one_with_the_larger_row_id_counts() -> None:
    """In whatever order their pages are read."""
    rows = [(at, ["p", state, checksum("p", state)]) for at, state in ((3, b"old"), (7, b"new"))]
    for order in (rows, rows[::-1]):
        found = Found()
        for row in order:
            found.add(row)
        assert list(found.projects.values()) == rows[1:]


def test_a_deletion_takes_only_that_chat_from_a_damaged_copy(home: Path, written: Written) -> None:
    copy = (home / "chats.db").rename(home / "chats-damaged.db")
    erase(copy, [("chats", "c3")])
    text = written.chats["c3"].turns[1].user.content.split()[1].encode()
    assert text not in copy.read_bytes()
    with ChatStore(copy, read_only=True) as store:
        assert store.ids("chats") == {*written.chats} - {"c3"}
        assert store.load("c4") == written.chats["c4"]


def test_results_of_calls_are_salvaged_with_their_answers(tmp_path: Path) -> None:
    chat = with_results(chat_of(1, turns=2), "returned 42 " * 3000)  # on pages of their own
    with ChatStore(tmp_path / "chats.db", log=False) as store, store.transaction():
        store.write(chat)
    data = (tmp_path / "chats.db").read_bytes()
    for made in salvaged(data):
        assert made.load("c1") == chat
    lost = data.replace(b"returned 42 returned", b"returned 13 returned")
    for made in salvaged(lost):
        first, second = made.load("c1").turns
        assert first == chat.turns[0]
        assert second.answer.note
