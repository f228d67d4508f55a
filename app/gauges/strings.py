"""The words of the instrument strip."""

from __future__ import annotations

SPEED = "Speed"
FIRST_TOKEN = "First token"
DRAFTS_ACCEPTED = "Drafts accepted"
TABLE = "Table"
MEMORY = "Memory"
STRIP = "Instruments"

TOKENS_PER_S = "tok/s"
READ_PER_S = "tok/s read"
SECONDS = "s"
PER_STEP = "{mean} per step"
READ = "read"
CHOOSING = "choosing"
READ_SO_FAR = "{done} of {total} tokens read"
ENTRIES = "entries"
OF_ENTRIES = "of {capacity} entries"
OF_GB = "of {limit} GB"
GB = "GB"

PLAIN_SPEED = "plain speed {speed} tok/s"
POSITIONS = "by position {shares}"
NO_FIGURE = "no figure"


def hits(share: str) -> str:
    return f"{ENTRIES} · {share} hits"


def table_use(family: str, slots: str, hits: int, lookups: int, before: int) -> str:
    of = f"{family}’s, room for {slots}" if family else f"room for {slots}"
    was = f"warm: {before:,} entries were there before" if before else "cold: empty before"
    return f"{of}, {hits:,} of {lookups:,} look-ups found a guess, {was}"
