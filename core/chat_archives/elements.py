"""Splits a JSON file into the elements of its array without parsing it, so that a file of any size fits.

An export of chats is an array with one object per chat. Only brackets and strings are recognised here; each
element is parsed on its own afterwards, so that one damaged chat does not affect the others.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import IO

_PIECE_BYTES = 1 << 20
# Everything up to the next bracket outside of strings. Possessive, so that matching takes linear time.
_SKIPPED = re.compile(rb'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+")*+', re.S)
_INSIDE = re.compile(rb"(?:[^\"\\]++|\\.)*+", re.S)
# Draftlight's own export has its chats in the second field.
_OWN = re.compile(rb'\s*\{\s*"draftlight_chats"\s*:\s*(\d{1,9})\s*,\s*"chats"\s*:\s*\[')
_HEAD_BYTES = 4096
# UTF-16 and UTF-32 have zero bytes in the first characters of a JSON file; the longer marks come first.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class Elements:
    """The elements of the array in `stream`, or the whole object if there is no array.

    - `own`: the format number of Draftlight's own export, None for another file.
    - `damaged`: the file ended inside an element, or has something other than objects between them.
    - `too_large`: elements that were skipped because they have more than `most_bytes`.

    All three are complete after the iteration.
    """

    def __init__(self, stream: IO[bytes], most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._pieces = _utf8(stream)
        self._data = b""
        while len(self._data) < _HEAD_BYTES and self._more():
            pass
        self.own: int | None = None
        self.damaged = False
        self.too_large = 0
        match = _OWN.match(self._data)
        self._at = 0
        if match:
            self.own, self._at = int(match[1]), match.end()
        self._is_array = match is not None
        if not match:
            head = self._data[:_HEAD_BYTES].lstrip()
            self._is_array = head.startswith(b"[")
            if self._is_array:
                self._at = self._data.index(b"[") + 1
        self.is_empty = not self._data
        self.is_json = self._is_array or self._data[:_HEAD_BYTES].lstrip().startswith(b"{")

    def __iter__(self) -> Iterator[bytes]:
        """Yields each object as bytes of UTF-8, which may not be valid JSON."""
        depth, begin, searched, quoted = 0, self._at, self._at, False
        dropped = False  # the element that is being skipped is too large
        while self.is_json:
            data = self._data
            if quoted:
                end = _INSIDE.match(data, searched).end()  # type: ignore[union-attr]
                if end < len(data) and data[end : end + 1] == b'"':
                    searched, quoted = end + 1, False
                    continue
                searched = end  # at a backslash whose second half is missing, or at the end
            else:
                end = _SKIPPED.match(data, searched).end()  # type: ignore[union-attr]
                if end < len(data):
                    mark, searched = data[end : end + 1], end + 1
                    if mark == b'"':  # its end is in a later piece
                        quoted = True
                        continue
                    if mark in b"{[":
                        if depth == 0:
                            self._note_gap(data[begin:end])
                            begin, dropped = end, False
                        depth += 1
                        continue
                    depth -= 1
                    if depth < 0:  # the end of the array
                        self._note_gap(data[begin:end])
                        return
                    if depth == 0:
                        size = searched - begin
                        if dropped or size > self._most_bytes:
                            self.too_large += 1
                        else:
                            yield data[begin:searched]
                        begin = searched
                        if not self._is_array:
                            return
                    continue
                searched = end
            if depth and (dropped or len(data) - begin > self._most_bytes):
                dropped, begin = True, searched
            elif not depth and searched - begin > _HEAD_BYTES:
                self._note_gap(data[begin:searched])
                begin = searched
            # Larger pieces for larger elements: each byte is copied a constant number of times.
            self._data = data[begin:]
            searched, begin = searched - begin, 0
            if not self._more():
                self.damaged = self.damaged or depth > 0 or self._is_array or bool(self._data.strip())
                return

    def _more(self) -> bool:
        """Appends at least as much as there is. False at the end of the file."""
        pieces, size = [self._data], 0
        while size < max(_PIECE_BYTES, len(self._data)):
            piece = next(self._pieces, b"")
            if not piece:
                break
            pieces.append(piece)
            size += len(piece)
        self._data = b"".join(pieces)
        return size > 0

    def _note_gap(self, gap: bytes) -> None:
        if gap.strip(b" \t\r\n,"):
            self.damaged = True


def _utf8(stream: IO[bytes]) -> Iterator[bytes]:
    """The content of `stream` in pieces of UTF-8, without a byte order mark."""
    head = stream.read(_PIECE_BYTES)
    codec = next((codec for mark, codec in _MARKS if head.startswith(mark)), "")
    if not codec and b"\0" in head[:4]:
        codec = "utf-16-le" if head[1:2] == b"\0" else "utf-16-be"
    if not codec:
        yield head.removeprefix(codecs.BOM_UTF8)
        while piece := stream.read(_PIECE_BYTES):
            yield piece
        return
    decoder = codecs.getincrementaldecoder(codec)("replace")
    while head:
        yield decoder.decode(head).encode("utf-8", "replace")
        head = stream.read(_PIECE_BYTES)
