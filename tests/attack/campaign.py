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

    `promise` says what must hold, in a sentence for `docs/reliability.md`. `make test-sweeps` runs `quick`
    cases with a new seed each time, which takes some seconds; `make attack` runs `full` cases. `listed`:
    the cases are entries of a fixed list, so that a number means the same case whatever the seed.
    """

    name: str
    promise: str
    quick: int
    full: int
    run: Callable[[int, Sequence[int]], Iterator[Outcome]]
    listed: bool = False

    def quick_cases(self, seed: int) -> list[int]:
        """Cases of a quick run: the first ones, or a random choice from a fixed list."""
        if not self.listed:
            return list(range(self.quick))
        return sorted(case_random(self.name, seed, -1).sample(range(self.full), self.quick))


def new_seed() -> int:
    """A seed that differs from run to run, short enough to type."""
    return random.SystemRandom().randrange(1, 1_000_000)


def rerun_command(name: str, seed: int, case: int) -> str:
    """The command that repeats one case."""
    return f"python -m tests.attack {name} --seed {seed} --case {case}"


def case_random(name: str, seed: int, case: int) -> random.Random:
    """The randomness of one case; the same on every machine."""
    return random.Random(f"{name}:{seed}:{case}")
