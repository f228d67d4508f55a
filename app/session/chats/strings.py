"""Every text of this folder that a person reads."""

from __future__ import annotations

UNFINISHED_NOTE = "Draftlight was closed before this answer was finished."
