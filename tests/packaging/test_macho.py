"""Mach-O headers, on images written here byte by byte as <mach-o/loader.h> has them."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from bundle.signing.macho import MachOError, images, is_macho, thin

ARM, INTEL = 0x0100000C, 0x01000007


def text_command(command: int, text: str, header: int) -> bytes:
    body = text.encode() + b"\0"
    body += bytes(-(header + len(body)) % 8)
    return struct.pack("<III", command, header + len(body), header) + bytes(header - 12) + body


def image(cpu: int = ARM, *, signed: bool = True, minimum: int = 0x000E0000) -> bytes:
    commands = [
        text_command(0x0D, "@rpath/libself.dylib", 24),
        text_command(0x0C, "@rpath/libother.dylib", 24),
        text_command(0x80000018, "/usr/lib/libSystem.B.dylib", 24),
        text_command(0x8000001C, "@loader_path/lib", 12),
        struct.pack("<6I", 0x32, 24, 1, minimum, 0, 0),
    ]
    if signed:
        commands.append(struct.pack("<4I", 0x1D, 16, 4096, 64))
    body = b"".join(commands)
    return struct.pack("<4sIIIIIII", b"\xcf\xfa\xed\xfe", cpu, 0, 6, len(commands), len(body), 0, 0) + body


def fat(*parts: tuple[int, bytes]) -> bytes:
    offset = 8 + 20 * len(parts)
    head, body = struct.pack(">4sI", b"\xca\xfe\xba\xbe", len(parts)), b""
    for cpu, content in parts:
        head += struct.pack(">5I", cpu, 0, offset + len(body), len(content), 0)
        body += content
    return head + body


def test_an_image_is_read() -> None:
    (found,) = images(image())
    assert found.architecture == "arm64"
    assert found.own_name == "@rpath/libself.dylib"
    assert found.loads == ("@rpath/libother.dylib", "/usr/lib/libSystem.B.dylib")
    assert found.search_paths == ("@loader_path/lib",)
    assert found.minimum_macos == "14.0"
    assert found.signed


def test_an_unsigned_image_is_seen_as_such() -> None:
    assert not images(image(signed=False))[0].signed


def test_thinning_a_fat_file_gives_the_image_itself() -> None:
    arm, intel = image(ARM), image(INTEL)
    both = fat((INTEL, intel), (ARM, arm))
    assert [found.architecture for found in images(both)] == ["x86_64", "arm64"]
    assert thin(both, "arm64") == arm
    assert thin(arm, "arm64") == arm
    with pytest.raises(MachOError, match="no arm64"):
        thin(intel, "arm64")


@pytest.mark.parametrize("length", [5, 30, 60, 150])
def test_a_cut_off_image_is_an_error(length: int) -> None:
    with pytest.raises(MachOError):
        images(image()[:length])


def test_a_fat_file_whose_image_is_cut_off_is_an_error() -> None:
    with pytest.raises(MachOError, match="cut off"):
        images(fat((ARM, image()))[:-1])


def test_what_is_macho_and_what_only_begins_like_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content, expected in (
        (image(), True),
        (fat((ARM, image())), True),
        (b"\xca\xfe\xba\xbe\x00\x00\x00\x41", False),  # a Java class
        (b"#!/bin/sh\n", False),
        (b"", False),
    ):
        path.write_bytes(content)
        assert is_macho(path) is expected
