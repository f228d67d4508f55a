"""Every text of this folder that a person reads."""

from __future__ import annotations

TITLE = "Keyboard Shortcuts"
WRITING = "Writing"
# What the fields do by themselves and no menu shows.
WRITING_KEYS = (
    ("Send", "Return"),
    ("Break the line", "Shift+Return"),
    ("Edit the last message", "Up"),
    ("Other versions", "Left, Right"),
)
