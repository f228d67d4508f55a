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
READING = "reading"
CHOOSING = "choosing"
NGRAMS_USED = "of {most} n-grams used"
OWN_INDEX = "The drafter’s index of the current text, emptied with each chat"
OF_GB = "of {limit} GB"
GB = "GB"

PLAIN_SPEED = "plain {speed} tok/s"
POSITIONS = "by position {shares}"
NO_FIGURE = "no value"


def table_use(family: str, hits: int, lookups: int, before: int) -> str:
    of = f"The table of {family}" if family else "The model’s table"
    was = f"{before:,} of them from before" if before else "it was empty before"
    return f"{of}: {was}; {hits:,} of {lookups:,} look-ups found a guess"
