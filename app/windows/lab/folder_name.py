"""What the Lab calls a model by where it lies: apart from its widgets, which come in with its window."""

from __future__ import annotations

from pathlib import Path

from app.windows.lab import strings


def folder_name(reference: str) -> str:
    """What to call a model by its folder."""
    if reference == "starter":
        return strings.STARTER
    return Path(reference).name or reference
