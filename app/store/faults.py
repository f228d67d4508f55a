"""What can go wrong with stored chats, as errors that say what happened and what to do."""

from __future__ import annotations

import sqlite3

from app.store import strings
from core.errors import RequestError


class StoreError(RequestError):
    """Stored chats cannot be used as asked."""

    code = "bad-store"


class NewerStoreError(StoreError):
    """The chats were written by a newer Draftlight."""

    code = "newer-store"

    def __init__(self, found: int, known: int) -> None:
        super().__init__(strings.NEWER, strings.newer_hint(found, known))


class TransferError(StoreError):
    """A file that is to be imported cannot be read as chats, or one cannot be written."""

    code = "bad-transfer"


# What passes, or is a matter of rights: the file itself may be whole.
_NOT_THE_FILE = (
    *("FULL", "BUSY", "LOCKED", "READONLY", "PERM", "CANTOPEN", "IOERR"),
    *("NOMEM", "INTERRUPT", "PROTOCOL", "AUTH", "NOLFS", "MISUSE"),
)


def is_damage(error: Exception) -> bool:
    """Whether the file itself is at fault, rather than the disk, a lock or our own mistake.

    A table or column that is gone, or text that is none, is damage like a broken page.
    """
    if isinstance(error, UnicodeDecodeError):
        return True
    if not isinstance(error, sqlite3.Error) or isinstance(error, sqlite3.ProgrammingError):
        return False
    name = getattr(error, "sqlite_errorname", "").removeprefix("SQLITE_")
    return not name.startswith(_NOT_THE_FILE)


def saving_trouble(error: Exception) -> str:
    """Why chats cannot be saved now, in words."""
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith("SQLITE_FULL"):
        return strings.DISK_FULL
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return strings.STORE_BUSY
    if name.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_CANTOPEN")):
        return strings.NOT_WRITABLE
    return strings.not_saved(str(error))
