"""What can go wrong with stored chats, as errors that say what happened and what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from app.store import strings
from app.store.checksum import ChecksumError
from core.errors import RequestError


class StoreError(RequestError):
    """Stored chats cannot be used as asked."""

    code = "bad-store"


class NewerStoreError(StoreError):
    """What is stored was written by a newer Draftlight."""

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
    """A file that is to be imported cannot be read as chats, or one cannot be written."""

    code = "bad-transfer"


# What SQLite says of the disk, of rights and of other programs; the file itself may be whole.
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
# Of all that reading from a disk can give, the one that is the file's fault: it ends too soon.
_TOO_SHORT = "SQLITE_IOERR_SHORT_READ"


def is_damage(error: Exception) -> bool:
    """Whether the file itself is at fault, rather than the disk, a lock or our own mistake.

    A table or column that is missing is the file's fault: the schema's version says that it is there. So
    is text that is none, which Python's module reports without a name.
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
    """Why chats cannot be saved now, in words."""
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith("SQLITE_FULL"):
        return strings.DISK_FULL
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return strings.STORE_BUSY
    if name.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_CANTOPEN")):
        return strings.NOT_WRITABLE
    return strings.not_saved(str(error))
