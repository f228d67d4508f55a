"""Every text of this folder that a person reads."""

from __future__ import annotations

SHOW_LIBRARY = "Show Library"
GONE = "It is not in the library any more."


def kept(name: str) -> str:
    return f"“{name}” is kept in the library"


def kept_already(name: str) -> str:
    return f"This text is in the library already, as “{name}”"


def attached_already(name: str) -> str:
    return f"“{name}” is attached already"
