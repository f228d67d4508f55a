"""Every text of this folder that a person reads."""

from __future__ import annotations

COPIED = "Copied"
COPY_CODE = "Copy"
COPY_CODE_NAME = "Copy code"
UNSHOWN = "This text cannot be shown. “Copy” copies its source."
MENU_COPY = "Copy"
MENU_COPY_CODE = "Copy Code"
MENU_COPY_LINK = "Copy Link"
MENU_OPEN_LINK = "Open Link"
MENU_QUOTE = "Quote in Message"
MENU_SELECT_ALL = "Select All"

# ---- finding
FIND_NEXT = "Next match"
FIND_PREVIOUS = "Previous match"
FIND_CLOSE = "Close"
FIND_COUNT = "{number:,} of {count:,}"
FIND_AND_SIMILAR = "{number:,} of {count:,} + {similar:,}"
FIND_AND_SIMILAR_SPOKEN = "{number:,} of {count:,}, then {similar:,} similar passages"
FIND_SIMILAR = "Similar {number:,} of {count:,}"
FIND_SIMILAR_SPOKEN = "Similar passage {number:,} of {count:,}"
FIND_NONE = "No matches"
