"""A title as a file's name."""

from __future__ import annotations

import re

_CHARACTERS = 80


def file_name(title: str) -> str:
    """`title` as systems allow it in a file's name, without an ending; empty if nothing is left of it."""
    return re.sub(r'[\x00-\x1f<>:"/\\|?*]+', " ", title).strip(" .")[:_CHARACTERS].strip()
