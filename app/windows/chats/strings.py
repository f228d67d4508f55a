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

CHAT = "Chat"
LAST_USED = "Last used"
TIME_LEFT = "Time left"


def days_left(count: int) -> str:
    return "1 day" if count == 1 else f"{count} days"
