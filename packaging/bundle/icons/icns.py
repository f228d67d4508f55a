"""The .icns container: `icns`, the length of all, then chunks of a four-letter kind, a length and a PNG.

Big-endian lengths that count their own eight-byte headers. Only the kinds that hold PNGs are
used; macOS 11 and later read all of them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

# Pixels a side of each kind. Doubles are drawings of the same size for dense screens.
KINDS = {
    "icp4": 16,
    "icp5": 32,
    "ic07": 128,
    "ic08": 256,
    "ic09": 512,
    "ic10": 1024,
    "ic11": 32,
    "ic12": 64,
    "ic13": 256,
    "ic14": 512,
}
_HEADER = struct.Struct(">4sI")
_PNG = b"\x89PNG\r\n\x1a\n"


class IcnsError(ValueError):
    """Bytes that are not an icon file of PNGs."""


def write_icns(pngs: Mapping[int, bytes]) -> bytes:
    """The container with every kind, from PNGs by pixels a side. Raises `IcnsError` if one is missing."""
    if missing := sorted(set(KINDS.values()) - pngs.keys()):
        raise IcnsError(f"No drawing of these sizes: {', '.join(map(str, missing))}.")
    chunks = b"".join(
        _HEADER.pack(kind.encode("ascii"), _HEADER.size + len(pngs[size])) + pngs[size]
        for kind, size in KINDS.items()
    )
    return _HEADER.pack(b"icns", _HEADER.size + len(chunks)) + chunks


def read_icns(content: bytes) -> dict[str, int]:
    """Pixels a side of the PNG in each chunk, by kind. Raises `IcnsError`."""
    magic, length = _header(content, 0)
    if magic != b"icns" or length != len(content):
        raise IcnsError("It does not begin as an icon file of its own length.")
    sizes: dict[str, int] = {}
    offset = _HEADER.size
    while offset < length:
        kind, chunk_bytes = _header(content, offset)
        chunk = content[offset + _HEADER.size : offset + chunk_bytes]
        if chunk_bytes < _HEADER.size or len(chunk) != chunk_bytes - _HEADER.size:
            raise IcnsError(f"The chunk at byte {offset} is cut off.")
        width, height = png_size(chunk)
        if width != height:
            raise IcnsError(f"The drawing {kind!r} is not square: {width} × {height}.")
        sizes[kind.decode("latin-1")] = width
        offset += chunk_bytes
    return sizes


def png_size(content: bytes) -> tuple[int, int]:
    """Width and height from a PNG's header, in pixels. Raises `IcnsError`."""
    if content[:8] != _PNG or content[12:16] != b"IHDR" or len(content) < 24:
        raise IcnsError("A chunk is not a PNG.")
    width, height = struct.unpack(">II", content[16:24])
    return width, height


def _header(content: bytes, offset: int) -> tuple[bytes, int]:
    if len(content) < offset + _HEADER.size:
        raise IcnsError("It ends inside a header.")
    kind, length = _HEADER.unpack_from(content, offset)
    return kind, length
