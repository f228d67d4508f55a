"""Base class of all messages, and the replacement of text in them that cannot be encoded. No Qt, no MLX.

Programs that count in UTF-16 can produce half an emoji, a lone surrogate; Python strings can hold it, but it
cannot be encoded. Undecodable bytes from a terminal look the same. `well_formed` is applied to all incoming
text: typed, pasted, attached, imported, or decoded.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace


def _tag(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class Wire(Struct, frozen=True, tag_field="type", tag=_tag, forbid_unknown_fields=True):
    """A message: a frozen struct with its name in snake case as `type`."""


# ---- text that can be encoded

_T = TypeVar("_T")
_ESCAPES = re.compile(
    rb"\\(?:(?P<pair>u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.S,
)


def well_formed(text: str) -> str:
    """`text` with surrogate pairs joined and lone surrogates replaced by U+FFFD."""
    if text.isascii():  # a flag of the string, so the check is free
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def well_formed_record(record: _T) -> _T:
    """`record` with all its texts well formed; the same object if nothing changed.

    Texts are found in structs, lists, plain tuples (no named ones) and dicts.
    """
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
        made = {well_formed_record(key): well_formed_record(value) for key, value in record.items()}
        found = record if made == record else made
    return found  # type: ignore[no-any-return]


def well_formed_json(line: bytes) -> bytes:
    """A line of JSON with U+FFFD for lone surrogates, escaped or not, and invalid bytes."""
    line = line.decode("utf-8", "replace").encode()
    return _ESCAPES.sub(lambda found: b"\\ufffd" if found["half"] else found[0], line)
