"""Every text of this folder that a person reads."""

from __future__ import annotations

COPY_SOURCE = "Copy Source"
NEWEST = "Newest"
TRANSCRIPT_NAME = "Conversation"
SELECTED_MESSAGES = "Selected in {count} messages"
