"""Every text of this folder that a person reads."""

from __future__ import annotations

LOST_AT_THE_END = "Some chats or requests could not be saved before the window closed."
