"""Every text of this room that a person reads."""

from __future__ import annotations

COPY_SOURCE = "Copy as it was written"
NEWEST = "Newest"
TRANSCRIPT_NAME = "Conversation"
SELECTED_MESSAGES = "Selected in {count} messages"
