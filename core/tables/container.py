"""A header and arrays as one checked file: safetensors with a typed header and a checksum over every byte.

The safetensors metadata holds two strings: `draftlight`, the header as JSON, which starts with `format` and
`version`, and `sha256`, the checksum of the whole file with its own 64 digits as zeros. A change of any byte
is therefore an error with a message and never a wrong table. Errors are `InvalidFileError`, whose message
continues a sentence that starts with the file's name.
"""

from __future__ import annotations

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
_CHECKSUM_KEY = "sha256"
_NO_CHECKSUM = "0" * 64
# The history of a table takes some kilobytes.
_MOST_HEADER_BYTES = 1 << 20

H = TypeVar("H", bound=Struct)
Arrays = dict[str, NDArray[Any]]


class InvalidFileError(Exception):
    """The file cannot be used; the message says why and continues after the file's name."""


class _FormatVersion(Struct):
    format: str
    version: int


def encode(header: Struct, arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The file's content. `header` has the fields `format` and `version`."""
    metadata = {_HEADER_KEY: msgspec.json.encode(header).decode(), _CHECKSUM_KEY: _NO_CHECKSUM}
    content = save(dict(arrays), metadata=metadata)
    digest = hashlib.sha256(content).hexdigest()
    return content.replace(_checksum_field(_NO_CHECKSUM), _checksum_field(digest), 1)


def decode(content: bytes, header: type[H], file_format: str, version: int) -> tuple[H, Arrays]:
    """The header and arrays given to `encode`. Raises `InvalidFileError` if anything differs."""
    metadata = _metadata(content)
    stated = _decoded(metadata.get(_HEADER_KEY), _FormatVersion)
    if stated is None or stated.format != file_format:
        raise InvalidFileError("is not a Draftlight file of this kind")
    digest = metadata.get(_CHECKSUM_KEY)
    if (
        not isinstance(digest, str)
        or len(digest) != len(_NO_CHECKSUM)
        or _checksum(content, digest) != digest
    ):
        raise InvalidFileError("is damaged: its checksum does not match")
    if stated.version != version:
        raise InvalidFileError(
            f"has format version {stated.version}; this Draftlight reads version {version}"
        )
    typed = _decoded(metadata[_HEADER_KEY], header)
    if typed is None:
        raise InvalidFileError("has an invalid header")
    try:
        return typed, load(content)
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise InvalidFileError(f"holds arrays that cannot be read ({error})") from None


def check_arrays(arrays: Arrays, shapes: Mapping[str, tuple[type[np.generic], tuple[int, ...]]]) -> None:
    """Raises `InvalidFileError` unless the arrays have exactly these names, dtypes and shapes."""
    if arrays.keys() != shapes.keys():
        raise InvalidFileError("does not contain the expected arrays")
    for name, (dtype, shape) in shapes.items():
        if arrays[name].dtype != dtype or arrays[name].shape != shape:
            raise InvalidFileError(f"has an array an array “{name}” of the wrong size or type")


def _metadata(content: bytes) -> dict[str, Any]:
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > min(_MOST_HEADER_BYTES, len(content) - 8):
        raise InvalidFileError("is damaged: it ends too early")
    try:
        metadata = msgspec.json.decode(content[8 : 8 + length], type=dict[str, Any]).get("__metadata__")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InvalidFileError("is damaged: its header cannot be read") from None
    return metadata if isinstance(metadata, dict) else {}


def _checksum_field(digest: str) -> bytes:
    # Quotes inside the header's JSON are escaped, so this occurs once.
    return f'"{_CHECKSUM_KEY}":"{digest}"'.encode()


def _checksum(content: bytes, digest: str) -> str:
    return hashlib.sha256(
        content.replace(_checksum_field(digest), _checksum_field(_NO_CHECKSUM), 1)
    ).hexdigest()


def _decoded(text: object, file_format: type[H]) -> H | None:
    if not isinstance(text, str):
        return None
    try:
        return msgspec.json.decode(text, type=file_format)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def read_file(path: Path, most_bytes: int) -> bytes:
    """The content of a regular file. Raises `InvalidFileError` for other or larger files, and `OSError`."""
    # Non-blocking: opening a pipe without a writer must not hang.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidFileError("is not a regular file")
        if status.st_size > most_bytes:
            raise InvalidFileError(f"is larger than {most_bytes // 1024:,} KiB, the limit for such a file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(most_bytes)
    finally:
        os.close(descriptor)
