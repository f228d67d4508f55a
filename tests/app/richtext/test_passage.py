"""A line with marked spans: base direction by the text, cut at its end, marks on their words."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QTextCharFormat
from PySide6.QtWidgets import QApplication

from app.controls.shapes import draw_text, elided_at
from app.richtext.passage import draw_passage
from app.theme.fonts import ui_font

_WIDTH, _HEIGHT = 400, 20


def _painted(painter: QPainter, text: str, marks: list[tuple[int, int]], width: int) -> None:
    marked = QTextCharFormat()
    marked.setBackground(QColor("red"))
    marked.setForeground(QColor("red"))
    draw_passage(painter, QRectF(0, 0, width, _HEIGHT), text, ui_font(12), QColor("blue"), marks, marked)


def _columns(text: str, marks: list[tuple[int, int]], width: int = _WIDTH) -> tuple[list[int], list[int]]:
    """The columns of the image with ink, and those with a mark."""
    image = QImage(_WIDTH, _HEIGHT, QImage.Format.Format_RGB32)
    image.fill(QColor("white"))
    painter = QPainter(image)
    _painted(painter, text, marks, width)
    painter.end()
    colors = [[image.pixelColor(x, y) for y in range(_HEIGHT)] for x in range(_WIDTH)]
    ink = [x for x, column in enumerate(colors) if any(color.green() < 128 for color in column)]
    return ink, [x for x in ink if any(color == QColor("red") for color in colors[x])]


@pytest.mark.parametrize(
    ("text", "word", "from_right"),
    [
        ("first second third", "first", False),
        ("ראשון שני שלישי", "ראשון", True),
        ("ראשון second שלישי", "שלישי", True),
        ("first שני third", "third", False),
    ],
)
def test_a_mark_is_on_its_word_in_either_direction(
    qapp: QApplication, text: str, word: str, from_right: bool
) -> None:
    start = text.index(word)
    ink, marked = _columns(text, [(start, start + len(word))])
    assert (max(ink) > _WIDTH - 5) if from_right else (min(ink) < 5)
    at_right = (start == 0) == from_right
    assert max(marked) == max(ink) if at_right else min(marked) == min(ink)
    assert max(marked) - min(marked) < (max(ink) - min(ink)) / 2


@pytest.mark.parametrize("text", ["first second third " * 6, "ראשון שני שלישי " * 6, "ראשון second " * 8])
def test_a_line_that_is_too_wide_is_cut_at_its_end(qapp: QApplication, text: str) -> None:
    ink, marked = _columns(text, [(0, 5)], 150)
    assert max(ink) < 150
    assert max(ink) - min(ink) > 100
    from_right = text[0] > "z"
    assert max(marked) > 140 if from_right else min(marked) < 5
    assert elided_at(lambda painter: _painted(painter, text, [], 150), QPointF(50, 10)) == text


@pytest.mark.parametrize("align", [Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight])
def test_a_title_has_the_direction_of_its_text(qapp: QApplication, align: Qt.AlignmentFlag) -> None:
    def columns(text: str) -> list[int]:
        image = QImage(_WIDTH, _HEIGHT, QImage.Format.Format_RGB32)
        image.fill(QColor("white"))
        painter = QPainter(image)
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # as a widget's
        draw_text(painter, QRectF(0, 0, _WIDTH, _HEIGHT), text, ui_font(12), QColor("black"), align)
        assert painter.layoutDirection() == Qt.LayoutDirection.LeftToRight
        painter.end()
        return [
            x for x in range(_WIDTH) if any(image.pixelColor(x, y).lightness() < 128 for y in range(_HEIGHT))
        ]

    words, sentence = columns("המחיר של iPhone הוא"), columns("המחיר של iPhone הוא.")
    assert max(words) == max(sentence) > _WIDTH - 5  # the period is at the left end
    assert min(sentence) < min(words)
    assert (min(columns("first")) < 5) == (align == Qt.AlignmentFlag.AlignLeft)
