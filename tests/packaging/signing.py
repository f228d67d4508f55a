"""Signs what the tests write, ad hoc, as <kern/cs_blobs.h> has it: enough to be read, and to be damaged."""

from __future__ import annotations

import hashlib
import plistlib
import struct
from collections.abc import Mapping
from pathlib import Path

from bundle.signing.signature import ADHOC, INFO_PLIST, RESOURCES, RUNTIME

PAGE_BYTES = 4096
_PLACE = struct.pack("<2I", 0x1D, 16)


def sign(image: bytes, parts: Mapping[int, bytes] | None = None, flags: int = ADHOC) -> bytes:
    """`image`, which has the load command of a signature, with one at its end. `parts` are contents."""
    at = image.index(_PLACE)
    image += bytes(-len(image) % 16)
    size = len(_signature(b"", len(image), parts or {}, flags)) + 32 * -(-len(image) // PAGE_BYTES)
    image = image[: at + 8] + struct.pack("<2I", len(image), size) + image[at + 16 :]
    return image + _signature(image, len(image), parts or {}, flags)


def _signature(image: bytes, covered: int, parts: Mapping[int, bytes], flags: int) -> bytes:
    name, last = b"test\0", max(parts, default=0)
    pages = [image[at : at + PAGE_BYTES] for at in range(0, len(image), PAGE_BYTES)]
    digests = b"".join(
        hashlib.sha256(parts[slot]).digest() if slot in parts else bytes(32) for slot in range(last, 0, -1)
    )
    digests += b"".join(hashlib.sha256(page).digest() for page in pages)
    digests_at = 44 + len(name) + 32 * last
    head = struct.pack(
        ">9I4BI",
        *(
            0xFADE0C02,
            44 + len(name) + len(digests),
            0x20001,
            flags,
            digests_at,
            44,
            last,
            len(pages),
            covered,
        ),
        *(32, 2, 0, 12, 0),
    )
    directory = head + name + digests
    return struct.pack(">5I", 0xFADE0CC0, 20 + len(directory), 1, 0, 20) + directory


def seal(contents: Path, launcher: bytes, flags: int = ADHOC | RUNTIME) -> None:
    """Seal the folder `Contents` with `launcher`, unsigned, as its main executable."""
    with (contents / "Info.plist").open("rb") as file:
        executable = contents / "MacOS" / plistlib.load(file)["CFBundleExecutable"]
    listed: dict[str, dict[str, object]] = {}
    for path in sorted(contents.rglob("*")):
        name = path.relative_to(contents).as_posix()
        if path.is_symlink():
            listed[name] = {"symlink": str(path.readlink())}
        elif path.is_file() and name != "Info.plist":
            listed[name] = {"hash2": hashlib.sha256(path.read_bytes()).digest()}
    place = contents / "_CodeSignature" / "CodeResources"
    place.parent.mkdir()
    place.write_bytes(plistlib.dumps({"files2": listed}))
    parts = {INFO_PLIST: (contents / "Info.plist").read_bytes(), RESOURCES: place.read_bytes()}
    executable.parent.mkdir()
    executable.write_bytes(sign(launcher, parts, flags))
