"""Tables of PDF pages, as readers of pages make them: ruled or not, row by row or column by column."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

import pytest

from core.documents.pdf_tables import Box, Word, find_tables
from core.documents.reading import document_text
from tests.core.documents.made import pdf_of_content

_ROWS = (("Item", "Price", "Pieces"), ("Tea", "1.20", "3"), ("Coffee", "", "4"), ("", "12.00", "5"))
_LINES = "Item\tPrice\tPieces\nTea\t1.20\t3\nCoffee\t\t4\n\t12.00\t5"
_XS = (60, 160, 260)
_LONG = ["the", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog", "at", "the", "quay"]


def _text(x: float, y: float, text: str) -> str:
    return f"BT /F1 10 Tf {x} {y} Td ({text}) Tj ET\n" if text else ""


def _cells(order: str = "rows", top: int = 700, pitch: int = 16) -> str:
    at = [(row, column) for row in range(len(_ROWS)) for column in range(3)]
    if order == "columns":
        at.sort(key=lambda each: each[1])
    elif order == "mixed":
        random.Random(7).shuffle(at)
    return "".join(_text(_XS[column], top - pitch * row, _ROWS[row][column]) for row, column in at)


def _line(left: float, bottom: float, right: float, top: float) -> str:
    return f"{left} {bottom} m {right} {top} l S\n"


def _grid(xs: Iterable[float], ys: Iterable[float]) -> str:
    xs, ys = list(xs), list(ys)
    across = (_line(xs[0], y, xs[-1], y) for y in ys)
    return "".join((*across, *(_line(x, ys[-1], x, ys[0]) for x in xs)))


def _read(tmp_path: Path, content: str, **page: str) -> str:
    file = tmp_path / "page.pdf"
    file.write_bytes(pdf_of_content(content, **page))
    return document_text(file)


@pytest.mark.parametrize("order", ["rows", "columns", "mixed"])
def test_empty_cells_keep_their_columns_in_whatever_order_cells_are_drawn(tmp_path: Path, order: str) -> None:
    content = _text(60, 740, "Before it.") + _cells(order) + _text(60, 600, "After it.")
    assert _read(tmp_path, content) == f"Before it.\n\n{_LINES}\n\nAfter it."


def test_a_ruled_table_has_two_rows_or_more_and_cells_that_wrap(tmp_path: Path) -> None:
    lines = [_text(165, 704 - 12 * at, " ".join(_LONG[3 * at : 3 * at + 3])) for at in range(4)]
    words = _text(65, 720, "Pump") + _text(165, 720, "Words") + _text(65, 686, "Valve") + "".join(lines)
    found = _read(tmp_path, _grid((60, 160, 300), (732, 716, 660)) + words)
    assert found == f"Pump\tWords\nValve\t{' '.join(_LONG[:12])}"


def test_a_cell_that_spans_columns_or_rows_is_in_its_first(tmp_path: Path) -> None:
    words = "".join(
        _text(x, y, text)
        for x, y, text in (
            *((65, 700, "Region"), (180, 708, "Year"), (125, 692, "2023"), (205, 692, "2024")),
            *((65, 676, "North"), (125, 676, "1"), (205, 676, "2"), (130, 660, "together"), (205, 644, "x")),
        )
    )
    rules = _grid((60, 280), (720, 688 - 16 + 12, 668, 652, 636))
    rules += _line(120, 636, 120, 720) + _line(200, 668, 200, 704) + _line(120, 704, 280, 704)
    rules += _line(200, 636, 200, 652)
    found = _read(tmp_path, rules + words)
    assert found.split("\n")[:3] == ["Region\tYear", "\t2023\t2024", "North\t1\t2"]
    assert found.split("\n")[3:] == ["\ttogether", "\t\tx"]


def test_rules_between_rows_hold_the_lines_of_a_row_together(tmp_path: Path) -> None:
    content = _line(60, 712, 400, 712) + _line(60, 696, 400, 696) + _line(60, 640, 400, 640)
    content += _text(60, 700, "Name") + _text(160, 700, "What it does") + _text(320, 700, "Note")
    # The name is in the middle of its row, and drawn first.
    content += _text(60, 668, "Pump") + "".join(
        _text(160, 680 - 12 * at, " ".join(_LONG[4 * at : 4 * at + 4])) for at in range(3)
    )
    content += (
        _text(320, 668, "x") + _text(60, 628, "Valve") + _text(160, 628, "shuts") + _text(320, 628, "y")
    )
    found = _read(tmp_path, content)
    assert found == f"Name\tWhat it does\tNote\nPump\t{' '.join(_LONG[:12])}\tx\nValve\tshuts\ty"


def test_a_turned_page_has_its_table_as_it_is_shown(tmp_path: Path) -> None:
    content = f"0 1 -1 0 800 0 cm\n{_cells()}"
    assert _read(tmp_path, content, extra="/Rotate 90") == _LINES


@pytest.mark.parametrize("step", [1, 2])
def test_text_set_in_columns_is_no_table(tmp_path: Path, step: int) -> None:
    lines = [" ".join(_LONG[at : at + 6]) for at in (0, 3, 6, 1, 4, 2, 5, 0)]
    content = "".join(
        _text(x, 700 - 14 * at, line)
        for x, half in ((60, lines[::step]), (310, lines[1::step]))
        for at, line in enumerate(half)
    )
    assert "\t" not in _read(tmp_path, content)


def test_lists_and_tables_of_contents_stay_lines(tmp_path: Path) -> None:
    items = "".join(
        _text(60, 700 - 14 * at, f"{at + 1}.") + _text(85, 700 - 14 * at, " ".join(_LONG[at : at + 3]))
        for at in range(5)
    )
    contents = "".join(
        _text(60, 500 - 14 * at, f"1.{at}") + _text(90, 500 - 14 * at, f"{_LONG[at]} ........... {at + 3}")
        for at in range(5)
    )
    found = _read(tmp_path, items + contents)
    assert "\t" not in found
    assert found.startswith("1. the quick brown\n2. quick brown fox\n")


def test_lines_that_are_not_horizontal_are_in_no_table(tmp_path: Path) -> None:
    turned = "".join(f"BT /F1 10 Tf 0 1 -1 0 {150 + 20 * at} 690 Tm (turned) Tj ET\n" for at in range(3))
    found = _read(tmp_path, turned + _cells())
    assert _LINES in found
    assert found.count("turned") == 3


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
