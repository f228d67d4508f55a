"""Text that can be sent, stored and shown: lone halves of characters are replaced. No Qt, no MLX.

Where a program counts in UTF-16, half an emoji may stand alone; Python holds it, but nothing can
encode it. Bytes that are no text, in what a terminal hands over, look the same. `well_formed` is
called wherever text comes in: typed, pasted, attached, imported, handed over or decoded.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

_T = TypeVar("_T")
_ESCAPES = re.compile(
    rb"\\(?:(?P<pair>u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.S,
)


def well_formed(text: str) -> str:
    """`text`, halves that belong together joined, and a lone one replaced by U+FFFD."""
    if text.isascii():  # known to every string, so it costs nothing
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def well_formed_record(record: _T) -> _T:
    """`record` with all texts in it well formed; itself if they are."""
    found: Any = record
    if isinstance(record, str):
        found = well_formed(record)
    elif isinstance(record, Struct):
        values = {name: getattr(record, name) for name in record.__struct_fields__}
        better = {name: well_formed_record(value) for name, value in values.items()}
        if any(better[name] is not value for name, value in values.items()):
            found = replace(record, **better)
    elif isinstance(record, tuple | list):
        parts = [well_formed_record(part) for part in record]
        if any(part is not before for part, before in zip(parts, record)):
            found = type(record)(parts)
    elif isinstance(record, dict):
        found = {well_formed_record(key): well_formed_record(value) for key, value in record.items()}
    return found  # type: ignore[no-any-return]


def well_formed_json(line: bytes) -> bytes:
    """A line of JSON with U+FFFD for what is no text in it: lone halves, escaped or not, and stray bytes."""
    line = line.decode("utf-8", "replace").encode()
    return _ESCAPES.sub(lambda found: b"\\ufffd" if found["half"] else found[0], line)
