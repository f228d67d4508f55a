"""Files of model folders, which are untrusted: read within limits of size, depth and digits.

Everything that Draftlight reads of a model folder's JSON passes through `read_object`, so that no file can
exhaust the memory or the stack, block the process, or hand on a text or an integer that cannot be sent.
Infinity and NaN are handed on: Mamba's configs have them. Named pipes, devices and sockets are not opened for
reading.
"""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

# A config.json has some kilobytes, with settings for each tensor some megabytes.
MOST_BYTES = 16_000_000
# Settings with all added tokens, and indices of the tensors of the largest models.
MOST_LARGE_BYTES = 64_000_000
_MOST_VALUES = 2_000_000
_MOST_DEPTH = 64
# transformers writes 10**30 for “no limit”; Python refuses to print some thousand digits.
_MOST_DIGITS = 500
_HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F]")


def read_bytes(path: Path, most_bytes: int) -> bytes:
    """The content of a regular file. Raises `OSError`, and `ValueError` for another or a larger file."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("it is not a regular file")
        if found.st_size > most_bytes:
            raise ValueError(
                f"it has {found.st_size / 1e6:,.0f} MB, and at most {most_bytes / 1e6:,.0f} MB are read"
            )
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:  # it is growing
        raise ValueError(f"it has more than {most_bytes / 1e6:,.0f} MB")
    return content


def read_object(path: Path, most_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """The JSON object in `path`. Raises `OSError`, and `ValueError` with the reason in words."""
    content = read_bytes(path, most_bytes)
    if sum(map(content.count, (b",", b"[", b"{"))) > _MOST_VALUES:
        raise ValueError(f"it has more than {_MOST_VALUES:,} values")
    try:
        found = json.loads(content.decode("utf-8"), parse_int=_integer)
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON ({error})") from None
    except RecursionError:
        raise ValueError(f"it is nested more than {_MOST_DEPTH} times") from None
    if not isinstance(found, dict):
        raise ValueError("it holds no object")
    _check_depth(found)
    if _HALF_CHARACTER.search(content):
        try:
            json.dumps(found, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("it contains half of a surrogate pair") from None
    return found


def object_in(path: Path, most_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """The JSON object in `path`; empty if there is none that can be read."""
    try:
        return read_object(path, most_bytes)
    except (OSError, ValueError):
        return {}


def _integer(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"it has a number of {len(digits):,} digits")
    return int(digits)


def _check_depth(found: dict[str, Any]) -> None:
    layer: list[Any] = [found]
    for _ in range(_MOST_DEPTH):
        inner = (each.values() if isinstance(each, dict) else each for each in layer)
        layer = [value for values in inner for value in values if isinstance(value, dict | list)]
        if not layer:
            return
    raise ValueError(f"it is nested more than {_MOST_DEPTH} times")
