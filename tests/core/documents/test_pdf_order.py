"""The order of reading a page whatever the order of drawing it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from core.documents.pdf_order import visible_lines
from core.documents.pdf_tables import Box, Word
from core.documents.reading import read_document
from tests.core.documents.made import pdf_drawn

SEEDS = range(12)


def _read(folder: Path, drawn: Sequence[str]) -> str:
    path = folder / "page.pdf"
    path.write_bytes(pdf_drawn("\n".join(drawn)))
    return read_document(path).text


def _line(left: float, bottom: float, text: str) -> str:
    return f"BT /F1 12 Tf {left} {bottom} Td ({text}) Tj ET"


def _column(left: float, top: float, text: str) -> str:
    return f"BT /F2 14 Tf {left} {top} Td <{text.encode('utf-16-be').hex()}> Tj ET"


@pytest.mark.parametrize("seed", SEEDS)
def test_lines_in_any_order_of_drawing_are_read_from_the_top(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    lines = [f"{dice.choice(('Footer', 'Label', 'A line of words'))} {number}" for number in range(8)]
    drawn = [
        _line(dice.choice((50, 80, 300)), 700 - 40 * number - dice.randrange(12), text)
        for number, text in enumerate(lines)
    ]
    dice.shuffle(drawn)
    assert _read(tmp_path, drawn) == "\n".join(lines)


@pytest.mark.parametrize("seed", SEEDS)
def test_words_in_any_order_of_drawing_are_read_from_the_left(seed: int, tmp_path: Path) -> None:
    """As the operators of a formula, which are of another font than its letters."""
    dice = random.Random(seed)
    words = [dice.choice(("a", "Bb", "+", "=", "12", "word")) for _ in range(6)]
    drawn = [_line(60 + 30 * number, 500, word) for number, word in enumerate(words)]
    dice.shuffle(drawn)
    assert _read(tmp_path, drawn).split() == words


@pytest.mark.parametrize("seed", SEEDS)
def test_columns_keep_the_order_in_which_they_are_drawn(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    columns = [[f"{name} line {number}" for number in range(4)] for name in ("Left", "Right")]
    places = [[(50, 700 - 30 * row), (320, 690 - 30 * row)] for row in range(4)]
    sides = dice.sample((0, 1), 2)
    drawn = [_line(*places[row][side], columns[side][row]) for side in sides for row in range(4)]
    assert _read(tmp_path, drawn).split("\n") == [text for side in sides for text in columns[side]]


@pytest.mark.parametrize("last", [0, 1, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_vertical_columns_are_read_from_the_right(seed: int, last: int, tmp_path: Path) -> None:
    """Of any length, in any order of drawing; the `last` column may have one letter."""
    dice = random.Random(seed)
    lengths = [*(dice.randint(3, 9) for _ in range(4)), last]
    texts = ["".join(dice.choice("会議日本電車九時駅集") for _ in range(length)) for length in lengths]
    drawn = [_column(500 - 24 * number, 700, text) for number, text in enumerate(texts)]
    *others, end = drawn
    dice.shuffle(others)
    assert "".join(_read(tmp_path, [*others, end]).split()) == "".join(texts)


def _words(*boxes: tuple[float, float, float, float], level: bool = True) -> list[Word]:
    return [Word(Box(*box), f"{number}", level=level) for number, box in enumerate(boxes)]


def test_what_is_not_certain_stays_as_it_is_drawn() -> None:
    swapped = _words((60, 0, 80, 10), (20, 0, 40, 10))
    assert visible_lines(swapped) == [[1, 0]]
    assert visible_lines(_words((20, 0, 40, 10), (60, 0, 80, 10))) is None
    assert visible_lines(_words((60, 0, 80, 10), (20, 0, 40, 10), level=False)) is None
    for overlap, lines in ((1.5, [[1, 0]]), (2.5, None)):  # words printed over each other
        assert visible_lines(_words((60, 0, 80, 10), (20, 0, 60 + overlap, 10))) == lines
    for overlap, lines in ((1.5, [[1], [0]]), (2.5, None)):  # lines
        assert visible_lines(_words((20, 30, 80, 40), (90, 20 + overlap, 120, 30 + overlap))) == lines
    for shift, lines in ((4.0, [[1, 0]]), (5.0, [[1, 0]]), (8.5, [[1], [0]])):  # an index and another line
        assert visible_lines(_words((60, 20, 80, 30), (20, 20 - shift, 40, 30 - shift))) == lines
    assert visible_lines([]) is None
