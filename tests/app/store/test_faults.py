"""Which errors mean that the file is damaged, and what is said about the others."""

from __future__ import annotations

import contextlib
import errno
import sqlite3
from pathlib import Path

import pytest

from app.store import strings
from app.store.faults import StoreError, is_damage, is_full, saving_trouble


def raised(statement: str, path: Path) -> sqlite3.Error:
    with contextlib.closing(sqlite3.connect(path, timeout=0)) as connection:
        with pytest.raises(sqlite3.Error) as error:
            connection.execute(statement)
        return error.value


def test_errors_of_the_file_are_damage_and_others_are_not(tmp_path: Path) -> None:
    (tmp_path / "letter").write_bytes(b"a letter to the council " * 400)
    with contextlib.closing(sqlite3.connect(tmp_path / "held", isolation_level=None)) as held:
        held.execute("BEGIN EXCLUSIVE")
        locked = raised("CREATE TABLE t (a)", tmp_path / "held")
    too_long = raised("SELECT 1 WHERE " + " AND ".join("1" * 2_000), tmp_path / "new")
    no_module = raised("CREATE VIRTUAL TABLE x USING fts99(a)", tmp_path / "new")  # as without FTS5
    assert is_damage(raised("SELECT * FROM chats", tmp_path / "new"))
    assert is_damage(raised("SELECT * FROM chats", tmp_path / "letter"))
    assert not is_damage(locked)
    assert not is_damage(no_module)
    assert not is_damage(too_long)
    assert saving_trouble(locked) == strings.STORE_BUSY
    assert "no such module" in saving_trouble(no_module)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (None, strings.DISK_IS_SLOW),
        (StoreError("This happened.", "Do that."), "This happened. Do that."),
        (OSError(errno.ENOSPC, "x"), strings.DISK_FULL),
        (OSError(errno.EDQUOT, "x"), strings.DISK_FULL),
        (OSError(errno.EACCES, "x"), strings.NOT_WRITABLE),
        (OSError(errno.EROFS, "x"), strings.NOT_WRITABLE),
        (OSError(errno.EIO, "Input/output error"), strings.not_saved("Input/output error")),
        (OSError("odd"), strings.not_saved("odd")),
        (ValueError("odd"), strings.not_saved("odd")),
    ],
)
def test_why_nothing_is_saved(error: Exception | None, said: str) -> None:
    assert saving_trouble(error) == said
    if isinstance(error, OSError):
        assert is_full(error) == (said == strings.DISK_FULL)
