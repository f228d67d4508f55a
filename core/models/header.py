"""Headers of safetensors files: which tensors there are, how large, without reading one of them.

Form (format documentation of safetensors): eight bytes little-endian length, that many bytes of
JSON, then the tensors' bytes; offsets count from the end of the JSON.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path

from msgspec import Struct

from core.errors import ModelError

_LONGEST_HEADER_BYTES = 100_000_000  # the format's own limit
_AGAIN = "Download the model again, or copy it again from where it came."


class Tensor(Struct, frozen=True):
    """One tensor: its name, safetensors' name of its type (BF16, U32 …), its shape, its bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size_bytes: int


def read_header(path: Path) -> tuple[Tensor, ...]:
    """The tensors of the file. Raises `ModelError` if it is no safetensors file, or cut off."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            start = file.read(8)
            length = struct.unpack("<Q", start)[0] if len(start) == 8 else -1
            if not 2 <= length <= _LONGEST_HEADER_BYTES:
                raise ModelError(f"{path} is not a safetensors file.", _AGAIN)
            text = file.read(length)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error}.", _AGAIN) from error
    if len(text) < length:
        raise ModelError(f"{path} is cut off in its header ({size:,} bytes).", _AGAIN)
    try:
        header = json.loads(text)
        header.pop("__metadata__", None)
        tensors = tuple(
            Tensor(
                name,
                str(entry["dtype"]),
                tuple(int(each) for each in entry["shape"]),
                int(entry["data_offsets"][1]) - int(entry["data_offsets"][0]),
            )
            for name, entry in header.items()
        )
        end = max((int(entry["data_offsets"][1]) for entry in header.values()), default=0)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise ModelError(f"{path} has a header that cannot be read ({error}).", _AGAIN) from error
    if size < 8 + length + end:
        raise ModelError(f"{path} is cut off: it has {size:,} of {8 + length + end:,} bytes.", _AGAIN)
    return tensors
