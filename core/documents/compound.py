"""Compound files, which contain .doc, .xls, .ppt and .msg: the names at their root ([MS-CFB]).

An embedded object is a file inside of the file, whose streams have the names that its own format has.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import error as StructError
from struct import unpack_from
from typing import IO

_ENTRY_BYTES = 128
_MOST_SECTORS = 4_096  # of the directory; a program writes a hundred
_LAST_SECTOR = 0xFFFFFFF9


def root_names(stream: IO[bytes]) -> frozenset[str]:
    """The streams and storages of the root; none if the directory is damaged. Raises OSError.

    The stream is at its beginning again.
    """
    try:
        entries = b"".join(_directory(stream))
    except (StructError, IndexError):
        return frozenset()
    finally:
        stream.seek(0)
    names: dict[int, str] = {}
    waiting = [unpack_from("<I", entries, 76)[0]] if entries else []
    while waiting:
        number = waiting.pop()
        at = number * _ENTRY_BYTES
        if number not in names and at < len(entries):
            length, left, right = unpack_from("<64xH2xII", entries, at)
            names[number] = entries[at : at + min(length, 64)].decode("utf-16-le", "replace").rstrip("\0")
            waiting += left, right
    return frozenset(names.values())


def _directory(stream: IO[bytes]) -> Iterator[bytes]:
    """The sectors of the directory. Raises `StructError` or IndexError where their chain is damaged."""
    stream.seek(0)
    head = stream.read(512)
    size_bytes = 512 if unpack_from("<H", head, 30)[0] == 9 else 4096

    def sector(number: int) -> bytes:
        stream.seek((number + 1) * size_bytes)
        return stream.read(size_bytes)

    number, more = unpack_from("<I16xI", head, 48)
    tables = list(unpack_from("<109I", head, 76))
    for _ in range(_MOST_SECTORS):
        if number >= _LAST_SECTOR:
            return
        yield sector(number).ljust(size_bytes, b"\0")
        table, place = divmod(number, size_bytes // 4)
        while table >= len(tables) and more < _LAST_SECTOR and len(tables) < _MOST_SECTORS * 64:
            *following, more = unpack_from(f"<{size_bytes // 4}I", sector(more))
            tables += following
        number = unpack_from("<I", sector(tables[table]), place * 4)[0]
