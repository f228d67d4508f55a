"""Names for exported files."""

from __future__ import annotations

import re

_CHARACTERS = 80


def file_name(title: str) -> str:
    """Returns `title` as a valid file name on all systems, without a suffix; may be empty."""
    return re.sub(r'[\x00-\x1f<>:"/\\|?*]+', " ", title).strip(" .")[:_CHARACTERS].strip()
