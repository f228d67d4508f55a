"""Checksums: whether a row of the chat database still holds what was written into it.

SQLite notices a broken page, not a letter that became another one. So each row carries a CRC-32 of its
own values. Rows that version 0.1.0 wrote have none until they are written again, and pass unchecked.
"""

from __future__ import annotations

import zlib

import msgspec

Value = str | int | bytes | None


class ChecksumError(ValueError):
    """A row holds something else than what was written into it."""


def checksum(*values: Value) -> int:
    """Of a row's values as SQLite gives them back."""
    return zlib.crc32(msgspec.msgpack.encode(values))


def check(found: int | None, *values: Value) -> None:
    """Raises `ChecksumError` if `values` are not those that `found` was made of. None checks nothing."""
    if found is not None and (not isinstance(found, int) or found != checksum(*values)):
        raise ChecksumError("a row's checksum does not match what is in it")
