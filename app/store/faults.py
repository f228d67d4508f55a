"""Errors of the store: what happened and what to do."""

from __future__ import annotations

import errno
import sqlite3

from app.store import strings
from core.errors import RequestError, reason_of
from core.system.paths import shown


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

# SQLite's errors that only the content of the file causes; of the input errors, that it is truncated.
_OF_CONTENT = ("CORRUPT", "NOTADB", "FORMAT", "CONSTRAINT", "MISMATCH", "IOERR_SHORT_READ")
# Errors without a separate code: the schema's version promises the tables, columns and indexes, and text
# is written as UTF-8.
_OF_CONTENT_TOO = (
    "unsupported file format",
    "no such table",
    "no such column",
    "has no column named",
    "vtable constructor failed",
    "invalid fts5 file format",
    "Could not decode to UTF-8",
)
_OF_SYSTEM = {
    errno.ENOSPC: "SQLITE_FULL",
    errno.EDQUOT: "SQLITE_FULL",
    errno.EFBIG: "SQLITE_FULL",
    errno.EACCES: "SQLITE_PERM",
    errno.EPERM: "SQLITE_PERM",
    errno.EROFS: "SQLITE_READONLY",
}


def is_damage(error: Exception) -> bool:
    """Returns whether an error of reading means that the file itself is damaged.

    Others are a failing disk, a lock, or a statement that SQLite does not accept.
    """
    if not isinstance(error, sqlite3.Error):
        return isinstance(error, EmptyStoreError | ValueError | TypeError | OverflowError)
    name = getattr(error, "sqlite_errorname", "").removeprefix("SQLITE_")
    return name.startswith(_OF_CONTENT) or any(words in str(error) for words in _OF_CONTENT_TOO)


def is_full(error: OSError) -> bool:
    """Returns whether the disk, or a person's share of it, is full."""
    return _OF_SYSTEM.get(error.errno or 0) == "SQLITE_FULL"


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
    if isinstance(error, OSError) and error.errno == errno.ENOENT and error.filename:
        return strings.folder_missing(shown(str(error.filename)), reason_of(error))
    return strings.not_saved(getattr(error, "strerror", None) or str(error))
