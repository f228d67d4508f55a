"""The names of the ways in which `bench quality` reads a prompt; `core.bench.quality.readers` has the
ways."""

from __future__ import annotations

DENSE = "dense"
SCORELESS = ("random", "head-and-tail", "end")
_HINDSIGHT = "hindsight-"


def hindsight(name: str) -> int:
    """By how many of the tokens that follow the reader `name` chooses; 0 if by none."""
    count = name.removeprefix(_HINDSIGHT) if name.startswith(_HINDSIGHT) else ""
    return int(count) if count.isdecimal() else 0
