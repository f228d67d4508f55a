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
ENTRIES = "entries"
OF_ENTRIES = "of {capacity} entries"
OF_GB = "of {limit} GB"
GB = "GB"

PLAIN_SPEED = "plain speed {speed} tok/s"
POSITIONS = "by position {shares}"
NO_FIGURE = "no figure"
STALE = "{figures} (before the worker stopped)"


def table(family: str, *, warm: bool) -> str:
    return f"Table · {family}, {'warm' if warm else 'cold'}" if family else "Table"


def hits(share: str) -> str:
    return f"{ENTRIES} · {share} hits"


def table_use(slots: str, hits: int, lookups: int, before: int) -> str:
    found = f"room for {slots}, {hits:,} of {lookups:,} look-ups found a guess"
    return f"{found}, {before:,} entries were there before" if before else f"{found}, empty before"
