"""Mach-O files read as far as a bundle's check needs: architectures, libraries they load, signature.

Only 64-bit little-endian images (all that macOS runs today) and fat files of them. Layouts are
those of <mach-o/loader.h> and <mach-o/fat.h>.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MAGIC_64 = b"\xcf\xfa\xed\xfe"
_MAGIC_FAT = b"\xca\xfe\xba\xbe"
_CPUS = {0x0100000C: "arm64", 0x01000007: "x86_64"}
_LC_ID_DYLIB, _LC_RPATH, _LC_CODE_SIGNATURE = 0x0D, 0x8000001C, 0x1D
# LOAD_DYLIB, LOAD_WEAK_DYLIB, REEXPORT_DYLIB, LAZY_LOAD_DYLIB, LOAD_UPWARD_DYLIB
_LOADS = {0x0C, 0x80000018, 0x8000001F, 0x20, 0x80000023}
_LC_BUILD_VERSION, _LC_VERSION_MIN_MACOSX = 0x32, 0x24
# A Java class file begins like a fat file; no fat file has this many images.
_MOST_IMAGES = 8


class MachOError(ValueError):
    """A file that begins as Mach-O and is cut off or of a kind that is not read here."""


@dataclass(frozen=True)
class Image:
    """One architecture's image. `minimum_macos` is empty if it names none."""

    architecture: str
    loads: tuple[str, ...]
    search_paths: tuple[str, ...]
    own_name: str
    minimum_macos: str
    signed: bool


@dataclass(frozen=True)
class Slice:
    """Where an image lies in its file, or a signature in its image, in bytes."""

    architecture: str
    offset: int
    size: int


def is_macho(path: Path) -> bool:
    """Whether the file begins as a Mach-O image or a fat file of some."""
    with path.open("rb") as file:
        head = file.read(8)
    if head[:4] == _MAGIC_64:
        return True
    return head[:4] == _MAGIC_FAT and 0 < int.from_bytes(head[4:8], "big") <= _MOST_IMAGES


def slices(content: bytes) -> list[Slice]:
    """The images of a file. Raises `MachOError`."""
    if content[:4] == _MAGIC_64:
        return [Slice(_cpu(_unpack("<I", content, 4)[0]), 0, len(content))]
    if content[:4] != _MAGIC_FAT:
        raise MachOError("It does not begin as a Mach-O file.")
    found = []
    for index in range(_unpack(">I", content, 4)[0]):
        cpu, _, offset, size, _ = _unpack(">5I", content, 8 + 20 * index)
        if offset + size > len(content):
            raise MachOError("An image is cut off.")
        found.append(Slice(_cpu(cpu), offset, size))
    return found


def images(content: bytes) -> list[Image]:
    """All images of a file, read. Raises `MachOError`."""
    return [_image(content[s.offset : s.offset + s.size], s.architecture) for s in slices(content)]


def thin(content: bytes, architecture: str) -> bytes:
    """The image of `architecture` alone; the same bytes if there is no other. Raises `MachOError`."""
    for part in slices(content):
        if part.architecture == architecture:
            return content[part.offset : part.offset + part.size]
    raise MachOError(f"It has no {architecture} image.")


def signature_place(image: bytes) -> Slice | None:
    """Where the signature of one image lies in it; None if it has none. Raises `MachOError`."""
    for command, body in _commands(image):
        if command == _LC_CODE_SIGNATURE:
            offset, size = _unpack("<2I", body, 8)
            if offset + size > len(image):
                raise MachOError("The signature is cut off.")
            return Slice("", offset, size)
    return None


def _commands(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Each load command's number and its bytes."""
    if content[:4] != _MAGIC_64:
        raise MachOError("An image is not a 64-bit Mach-O.")
    offset = 32
    for _ in range(_unpack("<I", content, 16)[0]):
        command, size = _unpack("<II", content, offset)
        if size < 8:
            raise MachOError("A load command has no length.")
        yield command, content[offset : offset + size]
        offset += size


def _image(content: bytes, architecture: str) -> Image:
    loads: list[str] = []
    paths: list[str] = []
    own_name = minimum = ""
    signed = False
    for command, body in _commands(content):
        if command in _LOADS:
            loads.append(_text(body))
        elif command == _LC_ID_DYLIB:
            own_name = _text(body)
        elif command == _LC_RPATH:
            paths.append(_text(body))
        elif command == _LC_BUILD_VERSION:
            minimum = _version(_unpack("<I", body, 12)[0])
        elif command == _LC_VERSION_MIN_MACOSX:
            minimum = _version(_unpack("<I", body, 8)[0])
        signed = signed or command == _LC_CODE_SIGNATURE
    return Image(architecture, tuple(loads), tuple(paths), own_name, minimum, signed)


def _text(body: bytes) -> str:
    """The string that a command's third word points at."""
    start = _unpack("<I", body, 8)[0]
    return body[start:].split(b"\0", 1)[0].decode("utf-8", "replace")


def _version(packed: int) -> str:
    return f"{packed >> 16}.{packed >> 8 & 0xFF}"


def _cpu(number: int) -> str:
    return _CPUS.get(number, f"cpu {number:#x}")


def _unpack(form: str, content: bytes, offset: int) -> tuple[int, ...]:
    try:
        return struct.unpack_from(form, content, offset)
    except struct.error:
        raise MachOError("It is cut off.") from None
