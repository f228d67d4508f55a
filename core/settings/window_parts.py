"""The parts of the window's bench: the words that its command and the window share."""

from __future__ import annotations

PARTS = ("start", "ready", "scenes", "cost")
