"""Databases: damaged chat databases are opened by the real library, read to their end, repaired and
written to.

A case damages a database of a few chats, or puts something else in its place; half of the cases have a
backup. Then every chat is opened as a person would. A chat that is not as it was written, or is not there,
has to be reported: the file is damaged, chats are missing, or it cannot be used. With a backup no chat may
be lost. Without one, every chat and every turn whose rows are all on unchanged pages has to be readable. In
the end a new chat is saved and found again.
"""

from __future__ import annotations

import contextlib
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from app.session.chats.conversation import Answer, Conversation
from app.session.chats.projects import Project
from app.store import schema
from app.store.chat_store import ChatStore
from app.store.copies import Backups
from app.store.faults import UNREADABLE, StoreError, is_damage
from app.store.library import Library
from tests.app.store.chats import NOON, chat_of, written
from tests.app.store.pages import pages_of_rows
from tests.attack.campaign import Campaign, Outcome, case_random

_PAGE_BYTES = 4096
_CHATS = 8
_RAW = ("no such", "malformed", "sqlite", "Traceback", "codec", "Errno")
_TABLES = ("chats", "turns", "parts", "facts", "words", "projects", "documents", "texts")
_PROJECT = Project("harbour", "Harbour", NOON, "Be brief.", documents=("tides",))
_COLUMNS = (
    ("chats", "changed"),
    ("chats", "title"),
    ("chats", "turns"),
    ("chats", "deleted"),
    ("chats", "state"),
    ("projects", "state"),
    ("turns", "name"),
    ("turns", "state"),
    ("parts", "state"),
)
# Their rows have the same value, or there is only one.
_ALIKE = (("chats", "deleted"), ("projects", "state"))
_HOLD = """
import sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None)
held.execute("PRAGMA locking_mode = EXCLUSIVE")
held.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""

Damage = Callable[[Path, random.Random], None]


class _Homes(Struct, frozen=True):
    """Folders to damage copies of. `moments` has the files at two moments of one that is open."""

    whole: Path
    moments: tuple[Path, Path]
    # Every state in which a chat was ever written, by its id.
    written: dict[str, list[Conversation]]
    # The pages of each row of `whole`.
    pages: dict[tuple[object, ...], frozenset[int]]


def _run(seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    with tempfile.TemporaryDirectory() as name:
        homes = _make(Path(name))
        for case in cases:
            yield _case(homes, Path(name) / "case", case, case_random("databases", seed, case))
            shutil.rmtree(Path(name) / "case")


def _make(root: Path) -> _Homes:
    known: dict[str, list[Conversation]] = {}
    moments = (root / "early", root / "late")
    library = Library(root / "open")
    library.save_project(_PROJECT)

    def save(chat: Conversation) -> None:
        known.setdefault(chat.id, []).append(chat)
        library.save(chat)

    for number in range(_CHATS):
        save(chat_of(number, 3, 60).in_project(_PROJECT.id if number % 2 else ""))
        if number == 1:
            library.flush()
            shutil.copytree(root / "open", moments[0])
    growing = replace(chat_of(_CHATS - 1, 2, 60), name="Growing")
    for count in (20, 40, 60):  # its last tokens come as parts
        tokens = written("growing", 60)[:count]
        turns = (growing.turns[0], replace(growing.turns[1], answer=Answer(tokens, "writing")))
        save(replace(growing, turns=turns))
        library.flush()
    save(chat_of(0, 4, 90))
    library.flush()
    shutil.copytree(root / "open", moments[1])
    library.close()
    return _Homes(root / "open", moments, known, pages_of_rows(root / "open" / "chats.db"))


def _case(homes: _Homes, folder: Path, case: int, dice: random.Random) -> Outcome:
    path = folder / "chats.db"
    kind = dice.choice(list(_KINDS))
    backup = dice.random() < 0.5
    shutil.copytree(homes.whole, folder)
    if backup:
        Backups(path).make()
    if kind in ("stale log", "other log"):
        _mix_moments(homes, folder, dice, kind)
    else:
        _KINDS[kind](path, dice)
    before = path.read_bytes() if path.is_file() else b""
    holder = _hold(path) if kind == "locked" else None
    library = None
    try:
        library = Library(folder)
        right = _read_all(library, homes)
        if library.problem is None and (error := _check(path)):
            library.take_damage(error)  # as the maker of backups does
            right = _read_all(library, homes)
        problem = library.problem
        said = "damaged" if library.damaged else "missing" if problem and problem.remedy else ""
        said = said or ("unusable" if problem or holder else "whole")
        if problem and any(word in problem.reason + problem.hint for word in _RAW):
            return Outcome(case, f"{kind}: said to a person: {problem.reason} {problem.hint}")
        if kind in ("foreign", "newer") and said != "unusable":
            return Outcome(case, f"{kind}: taken as {said}")
        wrong = len(homes.written) - len(right) + (library.projects() != [_PROJECT])
        unnoticed = said == "whole" and (backup or kind not in _LOOK_NEW)
        if wrong and unnoticed:
            return Outcome(case, f"{kind}: {wrong} records are wrong or gone, and it is {said}")
        if wrong and backup and said == "damaged":
            return Outcome(case, f"{kind}: {wrong} records are lost in spite of a backup")
        counts = {said: 1.0, "chats not as written": float(wrong)}
        fault = ""
        if kind in _IN_PLACE and said != "unusable":
            fault = _unread(library, homes, before, counts)
        fault = fault or _save_new(library, folder, right)
        if not fault and backup and said in ("damaged", "missing"):
            fault = _all_back(folder, homes)
        asides = [each.read_bytes() for each in folder.glob("chats-*.db") if each.is_file()]
        if (
            not fault
            and said == "damaged"
            and "log" not in kind
            and kind != "folder"
            and before not in asides
        ):
            fault = "the damaged file was not kept as it was"
        if not fault and kind == "foreign" and path.read_bytes() != before:
            fault = "the file of another program was changed"
        return Outcome(case, f"{kind}: {fault}" if fault else "", counts)
    except Exception as error:  # whatever it is, a person would see it
        return Outcome(case, f"{kind}: {type(error).__name__}: {error}")
    finally:
        if library:
            library.close()
        if holder:
            holder.kill()
            holder.communicate()


def _read_all(library: Library, homes: _Homes) -> dict[str, Conversation]:
    """Every chat that is as it was once written; and a search, as a person does it."""
    found = {}
    for chat_id in [summary.id for summary in library.summaries()]:
        try:
            chat = library.load(chat_id)
        except (KeyError, StoreError):  # no copy has it whole
            continue
        if chat in homes.written.get(chat_id, ()):
            found[chat_id] = chat
    with contextlib.suppress(StoreError):
        library.search("word1")
    return found


def _unread(library: Library, homes: _Homes, data: bytes, counts: dict[str, float]) -> str:
    """The first row on pages that are as they were and that is not read; counts those that are."""
    whole = (homes.whole / "chats.db").read_bytes()
    starts = range(0, len(whole), _PAGE_BYTES)
    changed = {
        start // _PAGE_BYTES + 1
        for start in starts
        if data[start : start + _PAGE_BYTES] != whole[start : start + _PAGE_BYTES]
    }
    for chat_id, states in homes.written.items():
        turns, last = {}, states[-1]
        with contextlib.suppress(KeyError, StoreError):
            chat = library.load(chat_id)
            turns = {turn.id: turn for turn in chat.turns}
        for place, turn in enumerate(last.turns):
            rows = [homes.pages[kind, chat_id, place] for kind in ("turns", "parts")]
            if not changed & frozenset.union(*rows):
                counts["turns on whole pages"] = counts.get("turns on whole pages", 0.0) + 1
                if turns.get(turn.id) != turn:
                    return f"turn {place} of {chat_id} is on whole pages and is not read"
    return ""


def _check(path: Path) -> Exception | None:
    try:
        with ChatStore(path, read_only=True) as store:
            store.check()
    except StoreError:
        return None
    except UNREADABLE as error:
        return error if is_damage(error) else None
    return None


def _save_new(library: Library, folder: Path, right: dict[str, Conversation]) -> str:
    """Save a chat and read it in another library; repaired first where damage shows."""
    new = chat_of(99)
    library.save(new)
    if not library.flush() and library.failure and is_damage(library.failure):
        library.take_damage(library.failure)  # as the window does
    if library.damaged:
        try:
            library.repair()
        except StoreError:
            library.repair(incomplete=True)
    elif library.problem and library.problem.remedy == "restore":
        library.restore()
    elif library.problem or library.failure:
        return "" if library.load(new.id) == new else "a new chat is not kept in memory"
    if not library.flush() or not library.close():
        return "a new chat could not be saved"
    again = Library(folder)
    try:
        if again.load(new.id) != new:
            return "a new chat comes back changed"
        for chat_id, chat in right.items():
            if again.load(chat_id) != chat:
                return "a chat that could be read is another one later"
        return ""
    except KeyError as error:
        return f"{error} could be read before, and is gone"
    finally:
        again.close()


def _all_back(folder: Path, homes: _Homes) -> str:
    library = Library(folder)
    try:
        missing = len(homes.written) - len(_read_all(library, homes))
        return f"{missing} chats are not back" if missing else ""
    finally:
        library.close()


def _hold(path: Path) -> subprocess.Popen[str]:
    """Another process that has the database for itself."""
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout
    holder.stdout.readline()
    return holder


# ---- kinds of damage


def _flip_bits(path: Path, dice: random.Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(dice.randint(1, 40)):
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    path.write_bytes(data)


def _flip_header(path: Path, dice: random.Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(dice.randint(1, 6)):
        data[dice.randrange(_PAGE_BYTES)] ^= 1 << dice.randrange(8)
    path.write_bytes(data)


def _flip_text(path: Path, dice: random.Random) -> None:
    """In one word of a question or an answer, which leaves the database whole for SQLite."""
    data = bytearray(path.read_bytes())
    word = dice.choice(list(re.finditer(rb"word|Question|2026-05-04", data)))
    data[dice.randrange(*word.span())] ^= 1 << dice.randrange(3)
    path.write_bytes(data)


def _truncate(path: Path, dice: random.Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: dice.randrange(len(data))])


def _zero_page(path: Path, dice: random.Random) -> None:
    data = bytearray(path.read_bytes())
    begin = dice.randrange(len(data) // _PAGE_BYTES) * _PAGE_BYTES
    data[begin : begin + _PAGE_BYTES] = bytes(_PAGE_BYTES)
    path.write_bytes(data)


def _damage_pages(path: Path, dice: random.Random) -> None:
    """Several, often with the schema and the roots of the tables among them."""
    data = bytearray(path.read_bytes())
    pages = len(data) // _PAGE_BYTES
    chosen = {*dice.sample(range(pages), dice.randint(1, pages // 3)), *dice.sample(range(1, 8), 2)}
    for page in chosen:
        size = dice.choice((64, _PAGE_BYTES))
        data[page * _PAGE_BYTES : page * _PAGE_BYTES + size] = dice.randbytes(size)
    path.write_bytes(data)


def _swap_pages(path: Path, dice: random.Random) -> None:
    data = bytearray(path.read_bytes())
    one, two = (page * _PAGE_BYTES for page in dice.sample(range(len(data) // _PAGE_BYTES), 2))
    first, second = data[one : one + _PAGE_BYTES], data[two : two + _PAGE_BYTES]
    data[one : one + _PAGE_BYTES], data[two : two + _PAGE_BYTES] = second, first
    path.write_bytes(data)


def _be_random(path: Path, dice: random.Random) -> None:
    path.write_bytes(dice.randbytes(dice.randint(0, 20_000)))


def _random_log(path: Path, dice: random.Random) -> None:
    path.with_name("chats.db-wal").write_bytes(dice.randbytes(dice.randint(1, 9_000)))


def _sql(path: Path, *statements: str, values: tuple[object, ...] = ()) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement, values)
    connection.commit()
    connection.close()


def _change_types(path: Path, dice: random.Random) -> None:
    table, column = dice.choice(_COLUMNS)
    value = dice.choice([17, 1.5, "\ufffd", b"\xff\xfe"])
    _sql(path, f"UPDATE {table} SET {column} = ?", values=(value,))


def _change_row(path: Path, dice: random.Random) -> None:
    """One row gets what stands in another."""
    table, column = dice.choice([each for each in _COLUMNS if each not in _ALIKE])
    rows = f"SELECT rowid FROM {table} ORDER BY rowid"
    one, two = dice.sample(range(7), 2)
    _sql(
        path,
        f"UPDATE {table} SET {column} = (SELECT {column} FROM {table} WHERE rowid = ({rows} LIMIT 1 OFFSET"
        f" {one})) WHERE rowid = ({rows} LIMIT 1 OFFSET {two})",
    )


def _drop_table(path: Path, dice: random.Random) -> None:
    _sql(path, f"DROP TABLE IF EXISTS {dice.choice(_TABLES)}")


def _delete_rows(path: Path, dice: random.Random) -> None:
    table = dice.choice(["chats", "turns", "parts"])
    where = dice.choice(["1", "rowid % 3 = 1", "rowid = (SELECT max(rowid) FROM " + table + ")"])
    _sql(path, f"DELETE FROM {table} WHERE {where}")


def _delete_indices(path: Path, dice: random.Random) -> None:
    _sql(path, "PRAGMA writable_schema = ON", "DELETE FROM sqlite_master WHERE type = 'index'")


def _be_empty(path: Path, dice: random.Random) -> None:
    if dice.random() < 0.5:
        path.write_bytes(b"")
        return
    path.unlink()
    ChatStore(path).close()


def _be_foreign(path: Path, dice: random.Random) -> None:
    path.unlink()
    _sql(
        path,
        f"PRAGMA user_version = {dice.choice([0, 0, 1, 2, schema.VERSION, 30, -1])}",
        "CREATE TABLE bookmarks (id INTEGER PRIMARY KEY, address TEXT)",
        "INSERT INTO bookmarks (address) VALUES ('one')",
    )


def _be_folder(path: Path, dice: random.Random) -> None:
    path.unlink()
    path.mkdir()


def _mix_moments(homes: _Homes, folder: Path, dice: random.Random, kind: str) -> None:
    """The log of one moment beside the database of another."""
    early, late = homes.moments
    sides = dice.choice([("-wal",), ("-wal", "-shm"), ("-shm",)])
    base, log = (homes.whole, dice.choice([early, late])) if kind == "stale log" else (late, early)
    if kind == "other log" and dice.random() < 0.5:
        base, log = log, base
    for side in ("", "-wal", "-shm"):
        source = (log if side in sides else base) / f"chats.db{side}"
        (folder / source.name).unlink(missing_ok=True)
        if source.exists():
            shutil.copy(source, folder / source.name)


def _nothing(path: Path, dice: random.Random) -> None:
    pass


_KINDS: dict[str, Damage] = {
    "bits": _flip_bits,
    "header": _flip_header,
    "text": _flip_text,
    "cut": _truncate,
    "zeroed page": _zero_page,
    "damaged pages": _damage_pages,
    "swapped pages": _swap_pages,
    "random file": _be_random,
    "random log": _random_log,
    "stale log": _nothing,
    "other log": _nothing,
    "dropped table": _drop_table,
    "types": _change_types,
    "row": _change_row,
    "deleted rows": _delete_rows,
    "deleted indices": _delete_indices,
    "empty": _be_empty,
    "foreign": _be_foreign,
    "folder": _be_folder,
    "newer": lambda path, dice: _sql(
        path, f"PRAGMA user_version = {dice.randint(schema.VERSION + 1, 2**31 - 1)}"
    ),
    "locked": _nothing,
}
# The other pages are where they were.
_IN_PLACE = ("bits", "header", "cut", "zeroed page", "damaged pages")
# Without a backup nothing shows that chats were there.
_LOOK_NEW = ("empty", "cut", "random file", "deleted rows", "stale log", "other log")

CAMPAIGN = Campaign(
    "databases",
    "a damaged chat database opens or is refused in words, no chat is wrong or gone without a word, and"
    " after the repair a new chat is saved",
    12,
    2_000,
    _run,
)
