"""A Mach-O image's embedded signature: what it vouches for, and whether the image is still that.

Read as the kernel reads it (<kern/cs_blobs.h>): a super blob of blobs, big-endian; among them code
directories, each with a digest of every page up to the signature and of the bundle's own parts.
Whether a signer may be trusted is not looked at: that only the system can say.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from bundle.signing.macho import MachOError, signature_place

ADHOC, RUNTIME = 0x2, 0x10000
# Where a code directory keeps the digests of what is not in the image.
INFO_PLIST, REQUIREMENTS, RESOURCES = 1, 2, 3
_SUPER_BLOB, _CODE_DIRECTORY = 0xFADE0CC0, 0xFADE0C02
_DIGESTS = {1: "sha1", 2: "sha256", 4: "sha384"}
_SHORT_SHA256 = 3
_HEADER = struct.Struct(">9I4B")


@dataclass(frozen=True)
class CodeDirectory:
    """`pages` are digests of `page_bytes` each, up to `covered_bytes`; `parts` those of the bundle's own."""

    identifier: str
    flags: int
    digest: str
    digest_bytes: int
    covered_bytes: int
    page_bytes: int
    pages: tuple[bytes, ...]
    parts: Mapping[int, bytes]

    def of(self, content: bytes) -> bytes:
        """The digest of `content` as this directory keeps it."""
        return hashlib.new(self.digest, content).digest()[: self.digest_bytes]


def code_directories(image: bytes) -> list[CodeDirectory]:
    """Those of one image, the weakest digest first, as signers write them; none if it is not signed.

    Raises `MachOError` if the signature is cut off or of a kind that is not read here.
    """
    place = signature_place(image)
    if place is None:
        return []
    blob = image[place.offset : place.offset + place.size]
    magic, _, count = _unpack(">3I", blob, 0)
    if magic != _SUPER_BLOB:
        raise MachOError("The signature is none.")
    starts = [_unpack(">2I", blob, 12 + 8 * index)[1] for index in range(count)]
    return [_directory(blob[at:]) for at in starts if _unpack(">I", blob, at)[0] == _CODE_DIRECTORY]


def changed(image: bytes) -> str:
    """What of a signed image is not as its signature says; empty if all of it is. Raises `MachOError`."""
    directories = code_directories(image)
    if not directories:
        return "has no signature"
    for directory in directories:
        size = directory.page_bytes
        for number, digest in enumerate(directory.pages):
            start = number * size
            if directory.of(image[start : min(start + size, directory.covered_bytes)]) != digest:
                return f"was changed after it was signed, at byte {start:,}"
        if len(directory.pages) * size < directory.covered_bytes:
            return "is signed only in part"
    return ""


def _directory(blob: bytes) -> CodeDirectory:
    _, _, _, flags, digests_at, name_at, parts, pages, covered, width, kind, _, page = _header(blob)
    name = _DIGESTS.get(kind, "sha256" if kind == _SHORT_SHA256 else "")
    if not name:
        raise MachOError(f"The signature's digests are of the unknown kind {kind}.")

    def digest(slot: int) -> bytes:
        at = digests_at + slot * width
        return blob[at : at + width]

    return CodeDirectory(
        blob[name_at:].split(b"\0", 1)[0].decode("utf-8", "replace"),
        flags,
        name,
        width,
        covered,
        1 << page if page else covered,
        tuple(digest(slot) for slot in range(pages)),
        {slot: digest(-slot) for slot in range(1, parts + 1) if any(digest(-slot))},
    )


def _header(blob: bytes) -> tuple[int, ...]:
    try:
        return _HEADER.unpack_from(blob)
    except struct.error:
        raise MachOError("The signature is cut off.") from None


def _unpack(form: str, content: bytes, offset: int) -> tuple[int, ...]:
    try:
        return struct.unpack_from(form, content, offset)
    except struct.error:
        raise MachOError("The signature is cut off.") from None
