"""Every text of this folder that a person reads."""

from __future__ import annotations

DELETED = "Recently Deleted"
DELETED_NOTE = "Deleted chats are kept here for 30 days."
NONE_DELETED = "No chat was deleted in the last 30 days."
RESTORE = "Restore"
ERASE = "Delete Now"

ARCHIVED = "Archived Chats"
ARCHIVED_NOTE = "Archived chats are not in the sidebar. Search finds them."
NONE_ARCHIVED = "No chat is archived."
OPEN = "Open"
UNARCHIVE = "Unarchive"
DELETE = "Delete"


def deleted_row(title: str, days_left: int) -> str:
    return f"{title}   ·   {'1 day' if days_left == 1 else f'{days_left} days'} left"


def archived_row(title: str, last_used: str) -> str:
    return f"{title}   ·   {last_used}"
