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


@pytest.mark.sweep
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


def _laid(rows: list[list[str]], pitch: float = 14) -> list[Word]:
    """Words of cells in three columns, row by row as a file draws them; lines are 10 points high."""
    return [
        Word(Box(left, 100 + pitch * at, left + 5 * len(cell), 110 + pitch * at), cell)
        for at, row in enumerate(rows)
        for left, cell in zip((50, 150, 250), row)
    ]


_ROWS = [["Item", "Price", "Sum"], ["Lamp", "20", "40"], ["Desk", "30", "90"], ["Bed", "70", "70"]]


def _texts(words: list[Word], rules: list[Box] | None = None) -> list[str]:
    return [table.text(words) for table in find_tables(words, rules or [])]


@pytest.mark.parametrize(("gap", "is_table"), [(0.5, False), (0.7, False), (0.8, True), (2.0, True)])
def test_columns_are_as_far_apart_as_three_quarters_of_a_line(gap: float, is_table: bool) -> None:
    height = 10.0
    words = []
    for at in range(4):
        words += [
            Word(Box(50, 100 + 14 * at, 80, 110 + 14 * at), f"left{at}"),
            Word(Box(80 + gap * height, 100 + 14 * at, 120, 110 + 14 * at), f"{at}"),
        ]
    assert bool(_texts(words)) is is_table


@pytest.mark.parametrize(("shift", "rows"), [(0.0, 4), (3.0, 4), (3.9, 4), (4.5, 8)])
def test_words_are_on_one_line_if_their_middles_are_less_than_two_fifths_of_it_apart(
    shift: float, rows: int
) -> None:
    words = []
    for at in range(4):
        top = 100 + 24 * at
        words.append(Word(Box(50, top, 80, top + 10), f"left{at}"))
        words.append(Word(Box(150, top + shift, 180, top + 10 + shift), f"{at}"))
    found = _texts(words)
    lines = found[0].split("\n") if found else ["" for _ in range(8)]
    assert len(lines) == rows


@pytest.mark.parametrize(("rows", "is_table"), [(2, False), (3, True)])
def test_a_table_without_rules_has_three_rows(rows: int, is_table: bool) -> None:
    assert bool(_texts(_laid(_ROWS[:rows]))) is is_table


@pytest.mark.parametrize(("pitch", "is_table"), [(29.0, True), (31.0, False)])
def test_lines_of_a_table_are_at_most_three_heights_apart(pitch: float, is_table: bool) -> None:
    assert bool(_texts(_laid(_ROWS, pitch))) is is_table


def test_a_line_below_in_the_first_column_ends_a_table_if_it_is_further_away() -> None:
    below = Word(Box(50, 160, 90, 170), "Total")
    assert "Total" not in _texts([*_laid(_ROWS), below])[0]
    for distance, is_inside in ((14, True), (18, True), (22, False)):
        top = 142 + distance
        rows = [Word(Box(left, top + 14, left + 20, top + 24), "9") for left in (50, 150, 250)]
        note = Word(Box(50, top, 90, top + 10), "Note")
        assert ("Note" in _texts([*_laid(_ROWS), note, *rows])[0]) is is_inside


def _grid(xs: list[float], ys: list[float]) -> list[Box]:
    down = [Box(x, ys[0], x, ys[-1]) for x in xs]
    return [*down, *(Box(xs[0], y, xs[-1], y) for y in ys)]


@pytest.mark.parametrize("apart", [0.0, 1.0, 2.5])
def test_rules_closer_than_three_points_are_one(apart: float) -> None:
    words = _laid(_ROWS)
    rules = _grid([40, 140, 240, 300], [98, 112, 126, 140, 154])
    rules += [Box(140 + apart, 98, 140 + apart, 154), Box(40, 112 + apart, 300, 112 + apart)]
    # They do not quite meet, either.
    across = [Box(rule.left + apart, rule.top, rule.right - apart, rule.bottom) for rule in rules[4:]]
    rules = [*rules[:4], *across]
    assert _texts(words, rules) == ["\n".join(map("\t".join, _ROWS))]


@pytest.mark.parametrize(("length", "is_table"), [(110, True), (70, True), (50, False)])
def test_a_grid_of_which_few_rules_are_drawn_is_a_drawing(length: int, is_table: bool) -> None:
    # Lines of several words, so that only rules make a table of them.
    words = [
        Word(Box(45 + 20 * at + (at >= 2) * 3, top, 62 + 20 * at + (at >= 2) * 3, top + 10), f"w{at}{top}")
        for top in (100, 114, 128, 142)
        for at in range(5)
    ]
    ys = [98.0, 112, 126, 140, 154]
    inner = [Box(40, y, 40 + length, y) for y in ys[1:-1]] + [Box(86, 98, 86, 154)]
    outer = [Box(40, 98, 150, 98), Box(40, 154, 150, 154), Box(40, 98, 40, 154), Box(150, 98, 150, 154)]
    assert bool(_texts(words, outer + inner)) is is_table


def test_columns_of_chinese_and_japanese_cells_that_wrap_have_no_spaces() -> None:
    words = [
        Word(Box(45, top, 95, top + 10), text, gap="\n") for top, text in ((100, "東京都"), (112, "港区"))
    ]
    words += [
        Word(Box(145, 100, 195, 110), "九四〇"),
        Word(Box(45, 130, 95, 140), "大阪"),
        Word(Box(145, 130, 195, 140), "七八〇"),
    ]
    rules = _grid([40, 140, 200], [98, 126, 144])
    assert _texts(words, rules) == ["東京都港区\t九四〇\n大阪\t七八〇"]
    latin = [
        word._replace(text={"東京都": "North", "港区": "side"}.get(word.text, word.text)) for word in words
    ]
    assert _texts(latin, rules)[0].startswith("North side\t")
    korean = [
        word._replace(text={"東京都": "서울", "港区": "시"}.get(word.text, word.text)) for word in words
    ]
    assert _texts(korean, rules)[0].startswith("서울 시\t")


@pytest.mark.parametrize("apart", [3.2, 5.0, 6.5])
def test_two_rules_that_belong_together_have_no_column_or_row_between_them(apart: float) -> None:
    """As where each cell has its own frame; a cell that spans others reaches over the strips."""
    single = ([40, 140, 240, 340], [90, 105, 119, 133, 147, 161])
    doubled = [[place + shift for place in places for shift in (0, apart)] for places in single]
    rows = [Word(Box(left, top + 8, right, top + 18), text) for left, right, top, text in _SPANNED]
    grids = [_grid(*single), _grid(doubled[0], single[1])]
    # The cell that spans the two last columns has no rules inside.
    grids = [[rule for rule in grid if rule.top == rule.bottom or rule.left < 200] for grid in grids]
    inner = [[Box(x, 105, x, 161) for x in (240, 340)], [Box(x, 105, x, 161) for x in doubled[0][4:]]]
    texts = [_texts(rows, [*grid, *rules]) for grid, rules in zip(grids, inner)]
    assert texts == [["\tBoth\nItem\tPrice\tSum\nLamp\t20\t40\nDesk\t30\t90\nBed\t70\t70"]] * 2


_SPANNED = [
    (220, 270, 84, "Both"),
    *(
        (left, left + 5 * len(cell), 98 + 14 * at, cell)
        for at, row in enumerate(_ROWS)
        for left, cell in zip((60, 170, 270), row)
    ),
]


@pytest.mark.parametrize("mixed", range(6))
def test_cells_whose_words_are_drawn_from_here_and_there_are_no_table(mixed: int) -> None:
    """At most one cell of two lines in ten has its second line drawn before its first."""
    words = []
    for cell in range(12):
        left, top = (50, 150, 250)[cell % 3], 100 + 28 * (cell // 3)
        lines = [
            Word(Box(left, top + 14 * at, left + 30, top + 10 + 14 * at), f"{cell}{at}") for at in (0, 1)
        ]
        words += lines[:: -1 if cell < mixed else 1]
    whole = "\n".join("\t".join(f"{3 * row + at}0 {3 * row + at}1" for at in range(3)) for row in range(4))
    assert (whole in _texts(words)) is (mixed <= 1)
    assert all(f"{cell}1 {cell}0" not in text for text in _texts(words) for cell in range(1, mixed))
