"""The words about stored chats."""

from __future__ import annotations

NEWER = "These chats were written by a newer Draftlight."
DISK_FULL = "The disk is full. Make some room, and it goes on by itself."
STORE_BUSY = "Another program is using the chat database."
NOT_WRITABLE = "The chat database may not be written to. Check the rights of its folder."


def newer_hint(found: int, known: int) -> str:
    return (
        f"Their format is version {found}, this Draftlight knows up to {known}. Update Draftlight to see"
        " them. Until then new chats are not saved."
    )


def not_saved(reason: str) -> str:
    return f"The chat database says: {reason}."


DAMAGED = "The chat database is damaged."
ELSEWHERE = "Your chats are open in another Draftlight."
ELSEWHERE_HINT = (
    "This window shows them and saves nothing. Close the other one and open this one again to go on."
)
UNUSABLE = "The chat database cannot be opened."
NOT_REPAIRED = "The chats could not be brought over to a new database."
