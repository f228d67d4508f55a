"""Rows of the leaf pages of a damaged SQLite file, for a child process with limits.

SQLite finds rows from the root pages of the schema, so one damaged page there hides thousands of intact ones.
This reads every page separately: one that looks like a table's leaf is read cell by cell, with the overflow
pages of long rows. The newest committed version of a page in the write-ahead log is used, as by SQLite. The
caller recognises its rows by checksums in them. Deleted rows are not read: no cell points to them.

SQLite's own recovery (`sqlite3_recover`, `.recover`) is neither in Python's module nor in apsw 3.54.1, whose
module and command-line program are built without it.

Format: https://www.sqlite.org/fileformat2.html. Encoding is UTF-8, and pages have `PAGE_BYTES`.
"""

from __future__ import annotations

import mmap
import struct
import sys
from binascii import b2a_base64
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from core.system.child_bounds import bound

PAGE_BYTES = 4096
_TABLE_LEAF = 13
_FILE_HEADER_BYTES = 100
# Bytes at the end of each page that SQLite leaves to extensions; Apple's builds reserve 12.
_RESERVED_BYTES = (0, 12)
_LOG_HEADER_BYTES, _FRAME_HEADER_BYTES = 32, 24
_LOG_MAGIC = 0x377F0682  # the last bit: words of checksums are big-endian
_INTEGER_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}

# A row id, and the values: texts, numbers, bytes and None.
Row = tuple[int, list[Any]]
# The caller's file is the user's chats, so these limits only stop a malicious or corrupt one.
_MEMORY_BYTES = 2 * 1024 * 1024 * 1024
_CPU_S = 120


class Pages:
    """The pages of a database by number, from 1; those of `newer` replace the file's."""

    def __init__(self, data: bytes | mmap.mmap, newer: Mapping[int, bytes]) -> None:
        self._data = data
        self._newer = newer
        self.last = max(len(data) // PAGE_BYTES, *newer, 0)

    def page(self, number: int) -> bytes:
        """Empty beyond the last page."""
        if found := self._newer.get(number):
            return found
        start = (number - 1) * PAGE_BYTES
        content = self._data[start : start + PAGE_BYTES] if number > 0 else b""
        return content if len(content) == PAGE_BYTES else b""

    def rows(self) -> Iterator[Row]:
        """The row ids and values of all rows. Each cell that is not one of a table's leaf is skipped."""
        left_bytes = 8 * self.last * PAGE_BYTES  # cells of a damaged page may share long overflow chains
        for number in range(1, self.last + 1):
            page, start = self.page(number), _FILE_HEADER_BYTES if number == 1 else 0
            if not page or page[start] != _TABLE_LEAF:
                continue
            (cells,) = struct.unpack_from(">H", page, start + 3)
            for at in range(start + 8, min(start + 8 + 2 * cells, PAGE_BYTES - 1), 2):
                for payload, row_id in self._payloads(page, struct.unpack_from(">H", page, at)[0]):
                    left_bytes -= len(payload)
                    values = values_of(payload)
                    if values is not None and left_bytes > 0:
                        yield row_id, values

    def _payloads(self, page: bytes, at: int) -> Iterator[tuple[bytes, int]]:
        """The possible payloads of a cell, one for each number of reserved bytes, with its row id."""
        length, at = varint(page, at)
        row_id, at = varint(page, at)
        if not 0 < length <= self.last * PAGE_BYTES:
            return
        for reserved in _RESERVED_BYTES:
            usable = PAGE_BYTES - reserved
            if length <= usable - 35:
                yield page[at : at + length], row_id
                return
            least = (usable - 12) * 32 // 255 - 23
            local = least + (length - least) % (usable - 4)
            local = local if local <= usable - 35 else least
            pieces, left = [page[at : at + local]], length - local
            following = page[at + local : at + local + 4]
            while left > 0 and len(following) == 4:
                overflow = self.page(int.from_bytes(following, "big"))
                pieces.append(overflow[4 : min(4 + left, usable)])
                left -= usable - 4
                following = overflow[:4]
            yield b"".join(pieces), row_id


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The signed number at `at`, and the position after it; zero at the end of `data`."""
    value = 0
    for place, byte in enumerate(data[at : at + 9]):
        if place == 8:
            value = value << 8 | byte
            return value - (1 << 64) * (value >> 63), at + 9
        value = value << 7 | byte & 127
        if byte < 128:
            return value, at + place + 1
    return 0, len(data)


def values_of(payload: bytes) -> list[Any] | None:
    """The values of a record; None if it is none."""
    end, at = varint(payload, 0)
    kinds: list[int] = []
    while at < min(end, len(payload)):
        kind, at = varint(payload, at)
        kinds.append(kind)
    values: list[Any] = []
    for kind in kinds:
        size = _INTEGER_BYTES.get(kind, 8 if kind == 7 else (kind - 12) // 2 if kind >= 12 else 0)
        content, at = payload[at : at + size], at + size
        if kind < 0 or kind in (10, 11) or len(content) < size:
            return None
        if kind == 7:
            values.append(struct.unpack(">d", content)[0])
        elif kind < 12:
            number = kind - 8 if kind in (8, 9) else int.from_bytes(content, "big", signed=True)
            values.append(number if kind else None)
        elif kind % 2 == 0:
            values.append(content)
        else:
            try:
                values.append(content.decode())
            except UnicodeDecodeError:
                return None
    return values if at == len(payload) else None


def logged_pages(log: bytes) -> dict[int, bytes]:
    """The newest committed pages of a write-ahead log, which ends at the first invalid frame."""
    if len(log) < _LOG_HEADER_BYTES:
        return {}
    magic, _, page_bytes, _, salt = struct.unpack(">IIII8s", log[:24])
    order = ">" if magic & 1 else "<"
    sums = _log_sums(log[:24], (0, 0), order)
    if magic & ~1 != _LOG_MAGIC or page_bytes != PAGE_BYTES or sums != struct.unpack(">II", log[24:32]):
        return {}
    committed: dict[int, bytes] = {}
    waiting: dict[int, bytes] = {}
    step = _FRAME_HEADER_BYTES + PAGE_BYTES
    for at in range(_LOG_HEADER_BYTES, len(log) - step + 1, step):
        head, page = log[at : at + _FRAME_HEADER_BYTES], log[at + _FRAME_HEADER_BYTES : at + step]
        number, size, found_salt, *found = struct.unpack(">II8sII", head)
        sums = _log_sums(page, _log_sums(head[:8], sums, order), order)
        if found_salt != salt or tuple(found) != sums:
            break
        waiting[number] = page
        if size:  # the last frame of a transaction
            committed |= waiting
            waiting.clear()
    return committed


def _log_sums(data: bytes, sums: Sequence[int], order: str) -> tuple[int, int]:
    one, two = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for first, second in zip(words[::2], words[1::2]):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two


def lines(path: Path) -> Iterator[bytes]:
    """Each row of the file at `path`, base64 of MessagePack and a line end."""
    log = path.with_name(f"{path.name}-wal")
    newer = logged_pages(log.read_bytes() if log.is_file() else b"")
    encode = msgspec.msgpack.Encoder().encode
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""
        for row in Pages(data, newer).rows():
            yield b2a_base64(encode(row))


def main(arguments: Sequence[str]) -> int:
    """Writes the lines of the file `arguments[0]`."""
    bound(_MEMORY_BYTES, _CPU_S)
    sys.stdout.buffer.writelines(lines(Path(arguments[0])))
    sys.stdout.buffer.flush()
    return 0
