"""Tables full of wrong tokens: they cost `auto` at most 5% of its speed, and use corrects them.

Recorded answers take the place of the model, and time is that of the CPU's cost table, so figures are exact.
`each` starts every answer with a fresh copy of the poison; `once` keeps the tables from answer to answer.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest

from core.decoding.planner import Planner
from core.drafting.gram_table import GramRow
from core.drafting.ngram_mod import Entries
from core.drafting.registry import Resources, drafter_spec
from core.drafting.shared_tables import NgramTables
from core.settings import Settings, assign_all
from tests.tuning.replay import COST_TABLES, ReplayTally, replay_stream
from tests.tuning.streams import Stream

# No answer has an id this large.
WRONG = 1 << 20
FAMILY = "poisoned"
SLOTS = 2**14
COST = COST_TABLES["cpu"]
MOST_LOSS = 0.05


def streams() -> list[Stream]:
    """Answers without repetition, where every draft is wrong, and answers that repeat the prompt."""
    rng = random.Random(4)

    def ids(count: int) -> list[int]:
        return [rng.randrange(900) for _ in range(count)]

    prompts = [ids(120) for _ in range(3)]
    return [
        *(Stream(ids(60), ids(80)) for _ in range(4)),
        *(Stream(p, [*p[20:90], *ids(20)]) for p in prompts),
    ]


class WrongContinuations:
    """A learned table that is certain of tokens that never occur."""

    def lookup(self, context: Sequence[int]) -> Sequence[GramRow]:
        return [
            GramRow(order, 1000.0, ((WRONG + order, 0.9),)) for order in range(min(4, len(context)), -1, -1)
        ]


def settings(drafter: str) -> Settings:
    return assign_all(Settings(), [("drafting.drafter", drafter), ("ngram_mod.slots", SLOTS)])


def clean() -> Resources:
    return Resources(1 << 17, FAMILY, NgramTables(), trees=True)


def poisoned_table() -> Resources:
    given = clean()
    slots = np.arange(SLOTS, dtype=np.uint32)
    full = Entries(slots, np.full_like(slots, WRONG), np.zeros(slots.size, np.uint8))
    given.tables.table(FAMILY, Settings().ngram_mod.n, SLOTS).restore(full)
    return given


def wrong_learned_table() -> Resources:
    return Resources(1 << 17, FAMILY, NgramTables(), trees=True, continuations=WrongContinuations())


@cache
def speed(drafter: str, given: Callable[[], Resources], *, once: bool = False) -> float:
    """Tokens per unit of time over all streams, as a multiple of plain decoding."""
    chosen, spec = settings(drafter), drafter_spec(drafter)
    total, kept = ReplayTally(), given()
    for stream in streams():
        built = spec.build(chosen, kept if once else given())
        planner = Planner(COST.cost) if spec.planned(chosen) else None
        total.add(replay_stream(built, stream, COST.cost, chosen.gate, planner))
    return total.speed


def test_poison_costs_and_heals() -> None:
    assert speed("auto", clean) > 1.2, "there is speed to lose"
    assert speed("ngram-mod", poisoned_table) < speed("ngram-mod", clean), "the poison is drafted"


@pytest.mark.parametrize("once", [False, True])
def test_a_poisoned_table_costs_auto_at_most_five_percent(once: bool) -> None:
    reference = speed("auto", clean, once=once)
    assert speed("auto", poisoned_table, once=once) >= (1 - MOST_LOSS) * reference


def test_the_table_heals_as_it_is_used() -> None:
    """Each written slot replaces a wrong token, so the same answers come faster from the used table."""
    given = poisoned_table()
    table = given.tables.table(FAMILY, Settings().ngram_mod.n, SLOTS)
    chosen, spec = settings("ngram-mod"), drafter_spec("ngram-mod")
    speeds = []
    for _ in range(2):
        total = ReplayTally()
        for stream in streams():
            total.add(replay_stream(spec.build(chosen, given), stream, COST.cost, chosen.gate))
        speeds.append(total.speed)
    assert speeds[1] > 1.5 * speeds[0]
    assert int(np.count_nonzero(table.entries().tokens != WRONG)) > 400


def test_a_wrong_learned_table_is_outweighed() -> None:
    assert speed("auto", wrong_learned_table, once=True) >= (1 - MOST_LOSS) * speed("auto", clean, once=True)
