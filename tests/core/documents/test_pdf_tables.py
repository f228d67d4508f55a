"""Tables of PDF pages, as readers of pages make them: ruled or not, row by row or column by column."""

from __future__ import annotations

import random

import pytest

from core.documents.pdf_tables import Box, Word, find_tables


@pytest.mark.parametrize("seed", range(20))
def test_every_word_is_in_one_cell_of_one_table_at_most(seed: int) -> None:
    dice = random.Random(seed)
    words = []
    for number in range(dice.choice((5, 60, 300))):
        left, top = (
            dice.choice((20, 90, 200, dice.random() * 500)),
            dice.choice((12, 14, 20)) * dice.randrange(30),
        )
        words.append(Word(Box(left, top, left + dice.random() * 80, top + 11), f"w{number}"))
    rules = [
        Box(x, y, x + dice.choice((0, 200)), y) if dice.random() < 0.5 else Box(x, y, x, y + 150)
        for x, y in (
            (dice.choice((10, 80, 190)), 20 * dice.randrange(20)) for _ in range(dice.choice((0, 40)))
        )
    ]
    tables = find_tables(words, rules)
    found = [index for table in tables for index in table.words]
    assert len(found) == len(set(found))
    assert set(found) <= set(range(len(words)))
    for table in tables:
        columns = len(table.rows[0])
        assert columns > 1
        assert len(table.rows) > 1
        assert all(len(row) == columns for row in table.rows)
        cells = table.text(words).replace("\n", "\t").replace(" ", "\t").split("\t")
        assert sorted(filter(None, cells)) == sorted(words[index].text for index in table.words)


def test_a_page_of_many_pieces_takes_bounded_work() -> None:
    words = [
        Word(Box(left, top, left + 8, top + 10), "x")
        for top in range(0, 6_000, 12)
        for left in range(0, 384, 24)
    ]
    assert find_tables(words, [])
    dice = random.Random(1)
    loose = [
        Word(Box(left, top, left + 8, top + 10), "x")
        for top in range(0, 6_000, 12)
        for left in (24 * at + dice.random() * 12 for at in range(16))
    ]
    find_tables(loose, [])
