"""Every text of this room that a person reads."""

from __future__ import annotations

UNFINISHED_NOTE = "Draftlight was closed before this answer was finished."
