"""What every message is: a frozen struct with a tag that names it."""

from __future__ import annotations

import re

from msgspec import Struct


def _tag(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class Wire(Struct, frozen=True, tag_field="type", tag=_tag, forbid_unknown_fields=True):
    """A message with its tag."""
