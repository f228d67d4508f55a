"""Campaign: one way of attacking one part of Draftlight, in as many seeded cases as wanted.

A case is known by its number: everything random in it comes from `case_random`, so that a case that
failed can be run again by itself. A campaign yields one `Outcome` a case, in order, as it comes. What
it attacks is the real thing, never a stand-in for it; only the model may be a tiny one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct


class Outcome(Struct, frozen=True, omit_defaults=True):
    """How one case ended. `fault`: what went wrong, in a sentence; empty if nothing did.

    Of all cases `counts` are added up, and of `peaks` the largest is told; names carry their units.
    `notes` are words about this case alone, for a table of the campaign's own.
    """

    case: int
    fault: str = ""
    counts: dict[str, float] = {}
    peaks: dict[str, float] = {}
    notes: dict[str, str] = {}


class Campaign(Struct, frozen=True):
    """`run(seed, cases)` yields an outcome for each of `cases`.

    `promise` says what must hold, in a sentence for `docs/reliability.md`. `quick` cases are part of
    `make test` and take a few seconds; `full` ones are `make attack`'s.
    """

    name: str
    promise: str
    quick: int
    full: int
    run: Callable[[int, Sequence[int]], Iterator[Outcome]]


def case_random(name: str, seed: int, case: int) -> random.Random:
    """The randomness of one case; the same on every machine."""
    return random.Random(f"{name}:{seed}:{case}")
