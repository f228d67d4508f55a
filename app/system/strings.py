"""What the system is told, and may show, about what Draftlight is doing."""

from __future__ import annotations

ANSWERING = "Draftlight is answering"
NOT_HEARD = "Draftlight is running already, but it does not answer."


def not_heard_hint(lock: str) -> str:
    return f"Look for its window, or end it and start again. If none is running, remove {lock}."
