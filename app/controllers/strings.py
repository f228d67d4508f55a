"""UI strings of the controllers."""

from __future__ import annotations

from app.gauges.figures import gigabytes

BLOCKED_BY_ANSWER = "An answer is being written. The race can start when that is done."
SETTINGS_NOT_SAVED = "Your settings could not be saved and last until you close this window."
HELD = "Off for all chats, in Settings."
NO_FULL_TEXT = "This system has no full-text index, so each search looks through every text."
AFTER_RESTART = "Changes apply after the worker restarts."
NEXT_ANSWER = "Changes apply to the next answer."


def worker_detail(state: str, used_bytes: int, limit_bytes: int) -> str:
    if not used_bytes:
        return state
    if not limit_bytes:
        return f"{state} · {gigabytes(used_bytes)} GB"
    return f"{state} · {gigabytes(used_bytes)} of {gigabytes(limit_bytes)} GB"
