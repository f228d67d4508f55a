"""UI strings of this package."""

from __future__ import annotations

NEW_CHAT = "New chat"

TOKEN_TINT = "Token tint"
TINT_OPTIONS = (("always", "Always"), ("hover", "On hover"), ("never", "Never"))
GAUGES = "Always show all gauges"
SERVER = "Local server, a click copies"
CHOOSE_MODEL = "Choose model"
SHOW_INSPECTOR = "Settings panel"
SHOW_SIDEBAR = "Chats panel"

# ---- the column at the right
SIDE_TABS = (("settings", "Settings"), ("document", "Document"))
SIDE_TABS_NAME = "Panel"


def new_chat_in(project: str) -> str:
    return f"New chat in “{project}”"
