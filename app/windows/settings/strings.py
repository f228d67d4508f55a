"""Every text of this folder that a person reads."""

from __future__ import annotations

from app.gauges.figures import gigabytes
from app.session.worker.strings import MACHINE
from core.events import SavedChatsListed

APP_SETTINGS = "Settings"
RESET_APP_SETTINGS = "Reset These Settings"
AT_ONCE = "Changes apply at once, in all chats."
NEW_CHATS = "New chats"
SAVED_CHATS = "Saved chats"
CLEAR_SAVED = "Clear Saved Chats"
RESET_DEFAULTS = "Reset Defaults for New Chats"


def saved_note(saved: SavedChatsListed | None) -> str:
    start = (
        f"What the model has read of a chat is saved on {MACHINE}, so that it answers at once when it is"
        " opened again. It is erased with the chat. Clearing it costs only time."
    )
    if saved is None:
        return start
    count = "1 chat" if saved.files == 1 else f"{saved.files:,} chats"
    size = f"{count}, {_size(saved.size_bytes)}" if saved.files else "Nothing is saved"
    end = f" Not saved: {saved.problem}." if saved.problem else ""
    return f"{start} {size}; {_size(saved.written_today_bytes)} written today.{end}"


def defaults_note(own: int) -> str:
    start = (
        "How answers are drafted, read and sampled is set in the panel beside each chat."
        " “Make Default” there is what new chats start with."
    )
    if not own:
        return f"{start} They start with Draftlight’s own settings now."
    return f"{start} They start with {'1 setting' if own == 1 else f'{own} settings'} of yours now."


def _size(size_bytes: int) -> str:
    """Returns `412 MB` or `1.2 GB`."""
    return f"{size_bytes / 2**20:,.0f} MB" if size_bytes < 2**30 else f"{gigabytes(size_bytes)} GB"
