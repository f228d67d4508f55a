"""Every text of this folder that a person reads."""

from __future__ import annotations

APP_SETTINGS = "Settings"
RESET_APP_SETTINGS = "Reset These Settings"
AT_ONCE = "Changes apply at once, in all chats."
NEW_CHATS = "New chats"
RESET_DEFAULTS = "Reset Defaults for New Chats"


def defaults_note(own: int) -> str:
    start = (
        "How answers are drafted, read and sampled is set in the panel beside each chat."
        " “Make Default” there is what new chats start with."
    )
    if not own:
        return f"{start} They start with Draftlight’s own settings now."
    return f"{start} They start with {'1 setting' if own == 1 else f'{own} settings'} of yours now."
