"""Base class of all messages. A separate module, because every other one of this package imports it."""

from __future__ import annotations

import re

from msgspec import Struct


def _tag(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class Wire(Struct, frozen=True, tag_field="type", tag=_tag, forbid_unknown_fields=True):
    """A message: a frozen struct with its name in snake case as `type`."""
