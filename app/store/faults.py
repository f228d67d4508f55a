"""Errors of the store: what happened and what to do."""

from __future__ import annotations

import errno
import sqlite3

from app.store import strings
from core.errors import RequestError


class StoreError(RequestError):
    """A request to the store failed."""

    code = "bad-store"


class OtherStoreError(StoreError):
    """The file is of another program or version; of an `older` Draftlight, or not."""

    code = "other-store"

    def __init__(self, message: str, hint: str, *, older: bool = False) -> None:
        super().__init__(message, hint)
        self.older = older


class EmptyStoreError(StoreError):
    """The file has no tables yet."""

    code = "empty-store"

    def __init__(self) -> None:
        super().__init__(strings.UNUSABLE, "")


class TransferError(StoreError):
    """An imported file cannot be read, or an exported one cannot be written."""

    code = "bad-transfer"


# Everything that reading a damaged record raises.
UNREADABLE = (sqlite3.Error, ValueError, TypeError, OverflowError)

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
_OF_SYSTEM = {
    errno.ENOSPC: "SQLITE_FULL",
    errno.EDQUOT: "SQLITE_FULL",
    errno.EFBIG: "SQLITE_FULL",
    errno.EACCES: "SQLITE_PERM",
    errno.EPERM: "SQLITE_PERM",
    errno.EROFS: "SQLITE_READONLY",
}
# The only input error that the file causes: it is truncated.
_TOO_SHORT = "SQLITE_IOERR_SHORT_READ"


def is_damage(error: Exception) -> bool:
    """Returns whether the file itself is damaged, rather than the disk failing, a lock or our own bug.

    A missing table or column counts as damage, since the schema's version promises it; so does text that is
    not UTF-8, which Python's module reports without an error name.
    """
    if not isinstance(error, sqlite3.Error):
        return isinstance(error, EmptyStoreError | ValueError | TypeError | OverflowError)
    if isinstance(error, sqlite3.ProgrammingError | sqlite3.InterfaceError):
        return False
    if "no such module" in str(error):  # this SQLite was built without FTS5
        return False
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith("SQLITE_IOERR"):
        return bool(name == _TOO_SHORT)
    return not name.removeprefix("SQLITE_").startswith(_SURROUNDINGS)


def saving_trouble(error: Exception | None) -> str:
    """Returns why chats cannot be saved now, as a sentence; of None that the disk is slow."""
    if error is None:
        return strings.DISK_IS_SLOW
    if isinstance(error, StoreError):
        return f"{error.message} {error.hint}".strip()
    name = getattr(error, "sqlite_errorname", "")
    if isinstance(error, OSError):
        name = _OF_SYSTEM.get(error.errno or 0, "")
    if name.startswith("SQLITE_FULL"):
        return strings.DISK_FULL
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return strings.STORE_BUSY
    if name.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_CANTOPEN")):
        return strings.NOT_WRITABLE
    return strings.not_saved(getattr(error, "strerror", None) or str(error))
