"""Every text of this folder that a person reads."""

from __future__ import annotations

TITLE = "Compare Versions"
VERSION = "Version {place} of {count}"
SIDES = ("Left version", "Right version")
SAME = "Both say the same."
DIFFERENT = "{percent}% of the words are the same. What only one has is marked."
