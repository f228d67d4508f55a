"""Errors of the store: what happened and what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from app.store import strings
from app.store.database import ChecksumError
from core.errors import RequestError


class StoreError(RequestError):
    """A request to the store failed."""

    code = "bad-store"


class NewerStoreError(StoreError):
    """The file was written by a newer Draftlight."""

    code = "newer-store"

    def __init__(
        self,
        found: int,
        known: int,
        what: str = strings.NEWER,
        hint: Callable[[int, int], str] = strings.newer_hint,
    ) -> None:
        super().__init__(what, hint(found, known))


class ForeignStoreError(StoreError):
    """The file is a database of another program."""

    code = "foreign-store"

    def __init__(self) -> None:
        super().__init__(strings.FOREIGN, strings.FOREIGN_HINT)


class TransferError(StoreError):
    """An imported file cannot be read, or an exported one cannot be written."""

    code = "bad-transfer"


# SQLite's errors about the disk, permissions and other processes: the file itself may be intact.
_SURROUNDINGS = (
    "FULL",
    "BUSY",
    "LOCKED",
    "READONLY",
    "PERM",
    "CANTOPEN",
    "NOMEM",
    "INTERRUPT",
    "PROTOCOL",
    "AUTH",
    "NOLFS",
    "MISUSE",
)
# The only input error that the file causes: it is truncated.
_TOO_SHORT = "SQLITE_IOERR_SHORT_READ"


def is_damage(error: Exception) -> bool:
    """Returns whether the file itself is damaged, rather than the disk failing, a lock or our own bug.

    A missing table or column counts as damage, since the schema's version promises it; so does text that is
    not UTF-8, which Python's module reports without an error name.
    """
    if not isinstance(error, sqlite3.Error):
        return isinstance(error, ChecksumError | UnicodeDecodeError)
    if isinstance(error, sqlite3.ProgrammingError | sqlite3.InterfaceError):
        return False
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith("SQLITE_IOERR"):
        return bool(name == _TOO_SHORT)
    return not name.removeprefix("SQLITE_").startswith(_SURROUNDINGS)


def saving_trouble(error: Exception) -> str:
    """Returns why chats cannot be saved now, as a sentence."""
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith("SQLITE_FULL"):
        return strings.DISK_FULL
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return strings.STORE_BUSY
    if name.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_CANTOPEN")):
        return strings.NOT_WRITABLE
    return strings.not_saved(str(error))
