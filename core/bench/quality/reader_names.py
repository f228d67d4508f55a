"""The names of the ways in which `bench quality` reads a prompt; `core.bench.quality.readers` has the
ways."""

from __future__ import annotations

DENSE = "dense"
SCORELESS = ("random", "head-and-tail", "end")
_HINDSIGHT = "hindsight-"
_TRUE = "-true"


def hindsight(name: str) -> int:
    """By how many of the tokens that follow the reader `name` chooses; 0 if by none."""
    way, _ = at_true_positions(name)
    count = way.removeprefix(_HINDSIGHT) if way.startswith(_HINDSIGHT) else ""
    return int(count) if count.isdecimal() else 0


def at_true_positions(name: str) -> tuple[str, bool]:
    """The name of the way that `name` stands for, and whether it reads at true positions (“lexical-true”)."""
    return name.removesuffix(_TRUE), name.endswith(_TRUE)
