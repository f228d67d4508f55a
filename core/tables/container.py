"""A header and arrays as one checked file: safetensors with a typed header and a checksum over every byte.

The safetensors metadata holds two texts: `draftlight`, the header as JSON, whose first words are
`format` and `version`, and `sha256`, over the whole file with these 64 digits as zeros. So any
other byte, in the header or in the arrays, is an error with words and never a wrong table.

Knows no table and no folder. Raises `Refused`, with a phrase that goes on after “it”.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
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
