"""The words of the instrument strip."""

from __future__ import annotations

import sys

SPEED = "Speed"
READING_SPEED = "Reading speed"
FIRST_TOKEN = "First token"
DRAFTS_ACCEPTED = "Drafts accepted"
INDEX = "Index"
MEMORY = "GPU memory" if sys.platform == "darwin" else "Memory"
STRIP = "Instruments"

TOKENS_PER_S = "tok/s"
SECONDS = "s"
PER_STEP = "{mean} per step"
OF_READ = "of {total} read"
OF_ENTRIES = "of {capacity} entries"
OF_GB = "of {limit} GB"
GB = "GB"

PLAIN_SPEED = "plain speed {speed} tok/s"
POSITIONS = "by position {shares}"
NO_FIGURE = "no figure"
STALE = "{figures} (before the worker stopped)"
