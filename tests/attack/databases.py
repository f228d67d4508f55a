"""Databases: damaged chat databases are opened by the real library, repaired, and written to.

A case takes a database of a few chats and flips bits, cuts it, zeroes pages, drops tables, puts values of
other types into columns, or puts something else in its place. Whether every changed word is noticed is not
looked at here: rows carry no checksums.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from app.store.library import Library
from tests.app.store.chats import chat_of
from tests.attack.campaign import Campaign, Outcome, case_random

_PAGE_BYTES = 4096
_RAW = ("no such", "malformed", "sqlite", "Traceback", "codec", "Errno")


def _run(seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    with tempfile.TemporaryDirectory() as name:
        whole = Path(name) / "whole"
        library = Library(whole)
        for number in range(8):
            library.save(chat_of(number, 3, 60))
        library.close()
        for case in cases:
            folder = Path(shutil.copytree(whole, Path(name) / "case"))
            yield _case(folder, case, case_random("databases", seed, case))
            shutil.rmtree(folder)


def _case(folder: Path, case: int, dice: random.Random) -> Outcome:
    path = folder / "chats.db"
    _damage(path, dice)
    before = path.read_bytes()
    library = None
    try:
        library = Library(folder)
        for summary in library.summaries():
            try:
                library.load(summary.id)
            except KeyError:  # nothing of it can be read
                continue
        library.search("word1")
        said = library.condition
        if said.state == "damaged" and Path(said.copy).read_bytes() != before:
            return Outcome(case, "the copy is not the file as it was")
        if any(word in said.reason + said.hint for word in _RAW):
            return Outcome(case, f"said to a person: {said.reason} {said.hint}")
        state = said.state
        fault = _save_new(library, folder)
        return Outcome(case, fault, {state: 1.0})
    except Exception as error:  # whatever it is, a person would see it
        return Outcome(case, f"{type(error).__name__}: {error}")
    finally:
        if library:
            library.close()


def _save_new(library: Library, folder: Path) -> str:
    """Save a chat and read it in another library; repaired first where damage shows."""
    new = chat_of(99)
    library.save(new)
    if library.condition.state == "whole" and not library.flush():
        library.take_damage(ValueError())
    if library.condition.state == "damaged":
        library.repair()
    if library.condition.state == "unusable":
        return "" if library.load(new.id) == new else "a new chat is not kept in memory"
    if not library.flush() or not library.close():
        return "a new chat could not be saved"
    again = Library(folder)
    try:
        return "" if again.load(new.id) == new else "a new chat comes back changed"
    finally:
        again.close()


def _damage(path: Path, dice: random.Random) -> None:
    data = bytearray(path.read_bytes())
    pages = len(data) // _PAGE_BYTES
    kind = dice.randrange(8)
    if kind == 0:
        for _ in range(dice.randint(1, 40)):
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    elif kind == 1:
        for _ in range(dice.randint(1, 6)):
            data[dice.randrange(_PAGE_BYTES)] ^= 1 << dice.randrange(8)  # header and schema
    elif kind == 2:
        del data[dice.randrange(len(data)) :]
    elif kind == 3:
        begin = dice.randrange(pages) * _PAGE_BYTES
        data[begin : begin + _PAGE_BYTES] = bytes(_PAGE_BYTES)
    elif kind == 4:
        data = bytearray(dice.randbytes(dice.randint(0, 20_000)))
    elif kind == 5:
        path.with_name("chats.db-wal").write_bytes(dice.randbytes(dice.randint(1, 9_000)))
    path.write_bytes(data)
    if kind >= 6:
        connection = sqlite3.connect(path)
        if kind == 6:
            connection.execute(f"DROP TABLE {dice.choice(['chats', 'turns', 'answers', 'facts', 'words'])}")
        else:
            table, column = dice.choice(
                [
                    ("chats", "changed"),
                    ("chats", "title"),
                    ("chats", "turns"),
                    ("chats", "draft"),
                    ("turns", "question"),
                    ("turns", "asked"),
                    ("answers", "state"),
                    ("answers", "tokens"),
                ]
            )
            value = dice.choice([17, 1.5, "\ufffd", b"\xff\xfe"])
            connection.execute(f"UPDATE {table} SET {column} = ?", (value,))
        connection.commit()
        connection.close()


CAMPAIGN = Campaign(
    "databases",
    "a damaged chat database opens or is refused in words, and after the repair a new chat is saved",
    12,
    2_000,
    _run,
)
