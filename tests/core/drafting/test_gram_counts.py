"""GramCounts against plain dicts, its bounds and ageing, its trust by outcomes, files and copies."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from core.drafting.auto import AutoDrafter
from core.drafting.gram_counts import HIGHEST_ORDER, GramCounts
from core.drafting.shared_tables import NgramTables

ANSWERS = st.lists(st.lists(st.integers(0, 6), max_size=40), max_size=8)
SMALL = 2**12


def taught(answers: Sequence[Sequence[int]], slots: int = 2**18) -> GramCounts:
    table = GramCounts(slots)
    for answer in answers:
        table.learn((), answer)
    return table


@given(ANSWERS)
def test_with_room_it_counts_like_dicts(answers: list[list[int]]) -> None:
    """Only ever fewer followers than occurred, because a bucket is full: seven ids fit one."""
    expected: defaultdict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
    for answer in answers:
        for at, token in enumerate(answer):
            for order in range(min(at, HIGHEST_ORDER) + 1):
                context = tuple(answer[at - order : at])
                known = context in expected
                counts = expected[context]
                counts[token] += 1
                if counts[token] >= 64:
                    for each in counts:
                        counts[each] = max(1, counts[each] // 2)
                if not known:
                    break
    table = taught(answers)
    for context, counts in expected.items():
        row = table.lookup(context)[-1]
        assert row.order == len(context)
        assert {token: round(share * row.total) for token, share in row.followers} == counts
    assert table.used == sum(map(len, expected.values()))


def random_answers(seed: int, count: int, vocabulary: int = 5000) -> list[list[int]]:
    rng = random.Random(seed)
    return [[int(rng.random() ** 3 * vocabulary) for _ in range(200)] for _ in range(count)]


def test_it_never_grows_beyond_its_cells() -> None:
    table = taught(random_answers(1, 60), SMALL)
    entries = table.entries()
    assert 0.9 * SMALL < table.used == len(entries.slots) <= SMALL
    assert 1 <= int(entries.ages.min()) <= int(entries.ages.max()) < 64
    before = table.figures()
    table.learn((), random_answers(2, 1)[0])
    assert table.figures().overwrites > before.overwrites
    assert table.used <= SMALL


def test_what_came_lately_weighs_more() -> None:
    table = taught([[1, 2]] * 500)
    assert table.lookup((1,))[-1].followers[0][0] == 2
    for _ in range(64):
        table.learn((), [1, 3])
    followers = dict(table.lookup((1,))[-1].followers)
    assert followers[3] > followers[2]


def test_old_pairs_make_room_and_frequent_ones_stay() -> None:
    table = taught([[7, 8, 9]] * 30, SMALL)
    for answer in random_answers(3, 40):
        table.learn((), answer)
    assert max(table.lookup((7,))[-1].followers, key=lambda each: each[1])[0] == 8
    recent = random_answers(4, 1)[0]
    table.learn((), recent)
    named = [
        any(token in dict(row.followers) for row in table.lookup(recent[at - 1 : at])[1:])
        for at, token in enumerate(recent[-40:], 160)
    ]
    assert sum(named) > 20


def test_trust_follows_what_came_true() -> None:
    """Rows that say the same are believed where such rows were right, not where they were wrong."""
    right, wrong = taught([[1, 2, 3, 4, 5]] * 8), taught([[1, 2, 3, 4, 5]] * 8)
    for seed in range(20):
        rng = random.Random(seed)
        right.learn((), [1, 2, 3, 4, 5])
        wrong.learn((), [each for token in (1, 2, 3, 4) for each in (token, rng.randrange(9, 5000))])
    rows = [table.lookup((1,))[-1] for table in (right, wrong)]
    assert right.trust(rows[0]) > 0.9
    assert wrong.trust(rows[1]) < 0.3


def test_an_answer_is_tested_by_earlier_answers_only() -> None:
    table = taught([[5, 6] * 50])
    assert table.figures().tested == 0
    table.learn((6,), [5, 6, 7])
    assert (table.figures().tested, table.figures().accepted) == (3, 2)


@given(ANSWERS)
def test_a_restored_table_equals_the_saved_one(answers: list[list[int]]) -> None:
    table, other = taught(answers, SMALL), taught([[3, 4, 5]] * 9, SMALL)
    other.restore(table.entries(), table.figures())
    assert other.figures() == table.figures()
    for answer in [*answers, [3, 4, 5]]:
        for end in range(len(answer)):
            assert other.lookup(answer[:end][-4:]) == table.lookup(answer[:end][-4:])


def test_entries_that_make_no_table_change_nothing() -> None:
    table = taught([[1, 2, 3]] * 3, SMALL)
    entries = table.entries()
    bad = [
        replace(entries, tags=entries.tags[1:]),
        replace(entries, ages=np.zeros_like(entries.ages)),
        replace(entries, slots=entries.slots + np.uint32(SMALL)),
        replace(entries, slots=entries.slots[::-1]),
    ]
    for each in bad:
        with pytest.raises(ValueError, match="table"):
            table.restore(each)
        assert table.lookup((1, 2))[-1].followers == ((3, 1.0),)


def test_copies_and_the_private_one_share_nothing() -> None:
    tables = NgramTables()
    table = tables.grams("a")
    table.learn((), [1, 2, 3])
    table.learn((), [1, 2, 3])
    row, before = table.lookup((1,))[-1], table.entries()
    trust = table.trust(row)
    private = tables.private_copies("a").grams("a")
    assert private.lookup((1,)) == table.lookup((1,))
    for _ in range(50):
        private.learn((), [1, 9, 8])
    assert (table.entries().slots == before.slots).all()
    assert (table.entries().ages == before.ages).all()
    assert table.trust(row) == trust != private.trust(row)


def test_auto_guesses_what_an_earlier_answer_said_in_passing() -> None:
    """A context of two tokens is too short for the table of long runs."""
    rng = random.Random(5)
    table = GramCounts()

    def answer() -> list[int]:
        return [each for _ in range(12) for each in (*rng.sample(range(100, 9000), 3), 50, 51, 52, 53)]

    for _ in range(6):
        drafter = AutoDrafter(4000, own=table)
        drafter.begin([1, 2])
        drafter.observe(answer())
        assert not table.lookup((50, 51))[1:] or table.used
        drafter.end()
    drafter = AutoDrafter(4000, own=table)
    drafter.begin([1, 2])
    drafter.observe([7, 8, 50])
    assert drafter.draft(8).tokens[:3] == (51, 52, 53)
    fresh = AutoDrafter(4000, own=GramCounts())
    fresh.begin([1, 2])
    fresh.observe([7, 8, 50])
    assert 51 not in fresh.draft(8).tokens


def test_nothing_is_learned_before_the_end_and_nothing_twice() -> None:
    table = GramCounts()
    drafter = AutoDrafter(4000, own=table)
    drafter.begin([1, 2])
    drafter.observe([3, 4, 5])
    assert table.used == 0
    drafter.end()
    counted = table.figures().inserts
    assert counted == 3
    drafter.end()
    assert table.figures().inserts == counted
