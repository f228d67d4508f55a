"""A header and arrays as one checked file: safetensors with a typed header and a checksum over every byte.

The safetensors metadata holds two texts: `draftlight`, the header as JSON, whose first words are
`format` and `version`, and `sha256`, over the whole file with these 64 digits as zeros. So any
other byte, in the header or in the arrays, is an error with words and never a wrong table.

Knows no table and no folder. Raises `Refused`, with a phrase that goes on after “it”.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

_HEADER_KEY = "draftlight"
_SUM_KEY = "sha256"
_NO_SUM = "0" * 64
# History and teachers of a table are some kilobytes.
_MOST_HEADER_BYTES = 1 << 20

H = TypeVar("H", bound=Struct)
Arrays = dict[str, NDArray[Any]]


class Refused(Exception):
    """This content is not used; the message says why."""


class _Kind(Struct):
    format: str
    version: int


def encode(header: Struct, arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The file's content. `header` has fields `format` and `version`."""
    texts = {_HEADER_KEY: msgspec.json.encode(header).decode(), _SUM_KEY: _NO_SUM}
    content = save(dict(arrays), metadata=texts)
    digest = hashlib.sha256(content).hexdigest()
    return content.replace(_sum_field(_NO_SUM), _sum_field(digest), 1)


def decode(content: bytes, header: type[H], kind: str, version: int) -> tuple[H, Arrays]:
    """What `encode` was given. Raises `Refused` for anything that is not exactly that."""
    texts = _texts(content)
    found = _convert(texts.get(_HEADER_KEY), _Kind)
    if found is None or found.format != kind:
        raise Refused("is not a Draftlight file of this kind")
    digest = texts.get(_SUM_KEY)
    if not isinstance(digest, str) or len(digest) != len(_NO_SUM) or _sum_of(content, digest) != digest:
        raise Refused("is damaged: its checksum does not match")
    if found.version != version:
        raise Refused(f"has format version {found.version}, and this Draftlight reads {version}")
    typed = _convert(texts[_HEADER_KEY], header)
    if typed is None:
        raise Refused("has a header that makes no sense")
    try:
        return typed, load(content)
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise Refused(f"holds arrays that cannot be read ({error})") from None


def checked(arrays: Arrays, shapes: Mapping[str, tuple[type[np.generic], tuple[int, ...]]]) -> None:
    """Raises `Refused` unless the arrays are exactly those, with these types and shapes."""
    if arrays.keys() != shapes.keys():
        raise Refused("does not hold the arrays it should")
    for name, (dtype, shape) in shapes.items():
        if arrays[name].dtype != dtype or arrays[name].shape != shape:
            raise Refused(f"has “{name}” of the wrong size or type")


def _texts(content: bytes) -> dict[str, Any]:
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > min(_MOST_HEADER_BYTES, len(content) - 8):
        raise Refused("is damaged: it ends too early")
    try:
        texts = msgspec.json.decode(content[8 : 8 + length], type=dict[str, Any]).get("__metadata__")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Refused("is damaged: its header cannot be read") from None
    return texts if isinstance(texts, dict) else {}


def _sum_field(digest: str) -> bytes:
    # Inside the header's own text the quotes are escaped, so this occurs once.
    return f'"{_SUM_KEY}":"{digest}"'.encode()


def _sum_of(content: bytes, digest: str) -> str:
    return hashlib.sha256(content.replace(_sum_field(digest), _sum_field(_NO_SUM), 1)).hexdigest()


def _convert(text: object, kind: type[H]) -> H | None:
    if not isinstance(text, str):
        return None
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def read_file(path: Path, most_bytes: int) -> bytes:
    """The whole of a regular file. Raises `Refused` for what is none or too large, and `OSError`."""
    # Not blocking: a pipe with nobody at its other end must not hang whoever opens it.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise Refused("is not a regular file")
        if facts.st_size > most_bytes:
            raise Refused(f"is larger than {most_bytes // 1024:,} KiB, which no such file is")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(most_bytes)
    finally:
        os.close(descriptor)


def write_whole(target: Path, content: bytes, *, keep: Path | None = None) -> None:
    """Put a file in its place in one rename; what was there goes to `keep`, if that is given.

    Raises `OSError`, and then `target` is what it was.
    """
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    moved = False
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if keep is not None:
            with contextlib.suppress(FileNotFoundError):
                os.replace(target, keep)
                moved = True
        os.replace(temporary, target)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if moved and keep is not None:
            with contextlib.suppress(OSError):
                os.replace(keep, target)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make the renames last. The files are whole either way, so a system that cannot is let be."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
