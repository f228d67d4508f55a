"""Every text of this folder that a person reads."""

from __future__ import annotations

TITLE = "Recently deleted"
NOTE = "Deleted chats are kept here for 30 days."
NOTHING = "No chat was deleted in the last 30 days."
RESTORE = "Restore"
ERASE = "Delete now"


def row(title: str, days_left: int) -> str:
    return f"{title}   ·   {'1 day' if days_left == 1 else f'{days_left} days'} left"
