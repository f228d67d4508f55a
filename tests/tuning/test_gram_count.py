"""Counting: shares and totals are those of a slow count by hand, and pruning keeps what tells most."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import pytest

from core.drafting.gram_table import GramTable
from tests.tuning.gram_count import GramCounter, Pruning

EVERYTHING = Pruning(most_bytes=10**9, highest_order=3, followers=20, least_share=0.0)


def answers(seed: int, count: int) -> list[tuple[list[int], list[int], list[list[int]], list[list[float]]]]:
    """Random prompts and answers of a small alphabet, with made-up rankings."""
    rng = random.Random(seed)
    rows = []
    for _ in range(count):
        prompt = [rng.randrange(6) for _ in range(rng.randrange(5))]
        out = [rng.randrange(6) for _ in range(rng.randrange(1, 30))]
        tops = [rng.sample(range(6), 3) for _ in out]
        rows.append((prompt, out, tops, [[0.6, 0.3, 0.05] for _ in out]))
    return rows


def counted(rows: list[tuple[list[int], list[int], list[list[int]], list[list[float]]]]) -> GramTable:
    counter = GramCounter(3)
    for row in rows:
        counter.add(*row)
    return counter.table(EVERYTHING)


def test_shares_are_the_mean_probabilities() -> None:
    rows = answers(0, 40)
    totals: Counter[tuple[int, ...]] = Counter()
    sums: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
    for prompt, out, tops, shares in rows:
        text = prompt + out
        for i, (ids, likely) in enumerate(zip(tops, shares)):
            end = len(prompt) + i
            for order in range(min(3, end) + 1):
                context = tuple(text[end - order : end])
                totals[context] += 1
                for token, share in zip(ids, likely):
                    sums[context][token] += share
    table = counted(rows)
    checked = 0
    for context, total in totals.items():
        found = {seen.order: seen for seen in table.lookup(context)}
        if len(context) not in found:
            continue  # it says exactly what the shorter one says
        seen = found[len(context)]
        assert seen.total == pytest.approx(total, rel=0.023)
        assert dict(seen.followers) == {
            token: pytest.approx(summed / total, abs=0.003) for token, summed in sums[context].items()
        }
        assert [share for _, share in seen.followers] == sorted((s for _, s in seen.followers), reverse=True)
        checked += 1
    assert checked > 0.9 * len(totals)


def test_a_text_counts_each_token_as_certain() -> None:
    counter = GramCounter(2)
    counter.add([], [1, 2, 1, 2, 1, 3])
    seen = counter.table(EVERYTHING).lookup([1])[0]
    assert (seen.order, dict(seen.followers)) == (
        1,
        {2: pytest.approx(2 / 3, abs=0.003), 3: pytest.approx(1 / 3, abs=0.003)},
    )


def test_the_prompt_is_context_and_nothing_in_it_is_counted() -> None:
    counter = GramCounter(2)
    counter.add([1, 2, 3], [4])
    table = counter.table(EVERYTHING)
    assert dict(table.lookup([2, 3])[0].followers) == {4: 1.0}
    assert [seen.order for seen in table.lookup([1, 2])] == [0]
    assert counter.positions == 1


def test_a_context_that_says_what_the_shorter_one_says_goes_first() -> None:
    counter = GramCounter(2)
    for _ in range(50):
        counter.add([8, 1], [5])  # after 1 always 5, whatever is before it
        counter.add([9, 1], [5])
        counter.add([9, 2], [6])  # after 2 it depends on what is before it
        counter.add([8, 2], [7])
    table = counter.table(Pruning(most_bytes=57, highest_order=2))
    assert [seen.order for seen in table.lookup([8, 1])] == [1, 0]
    assert table.lookup([9, 2])[0].followers == ((6, 1.0),)
    assert table.lookup([8, 2])[0].followers == ((7, 1.0),)


def test_a_table_is_as_small_as_asked() -> None:
    counter = GramCounter(3)
    for row in answers(1, 200):
        counter.add(*row)
    sizes = []
    for most in (1_000_000, 3_000, 1_500, 700):
        table = counter.table(Pruning(most_bytes=most, highest_order=3))
        sizes.append(sum(6 * len(level.keys) + 3 * len(level.ids) for level in table.levels))
        assert sizes[-1] <= most
    assert sizes[0] > 3_000
    assert all(size > 0.9 * most for size, most in zip(sizes[1:], (3_000, 1_500, 700)))


def test_nothing_counted_is_an_empty_table() -> None:
    assert len(GramCounter(3).table(EVERYTHING)) == 0


def test_no_context_reaches_before_the_text() -> None:
    counter = GramCounter(3)
    counter.add([], [1, 2])
    assert [len(level.keys) for level in counter.table(EVERYTHING).levels] == [1, 1, 0, 0]
