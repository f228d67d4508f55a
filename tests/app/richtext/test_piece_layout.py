"""PieceLayout: characters and pixels, whatever the characters are, and growing text."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.richtext.piece_layout import PieceLayout
from app.richtext.text_style import TextStyle, answer_style, code_style

LONG = "The duty master may waive condition one, and only condition one, for a medical transfer. "


@pytest.fixture
def style(qtbot: QtBot) -> TextStyle:
    return answer_style()


def lines_of(layout: PieceLayout) -> list[str]:
    return [layout.text[line.start : line.end] for line in layout.lines]


def test_other_faces_do_not_move_the_baseline(style: TextStyle) -> None:
    layout = PieceLayout("plain\n日本語 🙂\nplain", style, 400)
    assert [line.baseline - line.top for line in layout.lines] == [style.baseline_px] * 3
    for line in layout.lines:
        assert line.line.y() + line.line.ascent() + line.chunk.top - line.top == pytest.approx(
            style.baseline_px
        )


def test_positions_are_characters_not_utf16_units(style: TextStyle) -> None:
    text = "a🙂🙂b"
    layout = PieceLayout(text, style, 400)
    (line,) = layout.lines
    assert (line.start, line.end) == (0, 4)
    edges = [line.x_at(char) for char in range(5)]
    assert edges == sorted(set(edges))
    for char in range(4):
        assert line.char_at((edges[char] + edges[char + 1]) / 2, between=False) == char


def test_empty_lines_have_a_line(style: TextStyle) -> None:
    assert lines_of(PieceLayout("a\n\nb", style, 400)) == ["a", "", "b"]
    assert len(PieceLayout("", style, 400).lines) == 1


@pytest.mark.parametrize("text", [LONG * 40, (LONG + "🙂\n") * 12, "word " * 400 + "\n" + LONG * 9])
@pytest.mark.parametrize("size", [7, 120])
def test_growing_gives_the_same_lines_as_all_at_once(style: TextStyle, text: str, size: int) -> None:
    whole = PieceLayout(text, style, 420)
    grown = PieceLayout("", style, 420)
    for end in range(size, len(text) + size, size):
        first = grown.extend(text[:end])
        assert first <= len(grown.lines)
    assert lines_of(grown) == lines_of(whole)
    assert [(line.top, line.right) for line in grown.lines] == [
        (line.top, line.right) for line in whole.lines
    ]


def test_rects_of_a_wrapped_range(style: TextStyle) -> None:
    layout = PieceLayout(LONG * 2, style, 420)
    rects = layout.rects(0, len(layout.text))
    assert len(rects) == len(layout.lines)
    assert rects[0].height() == 25


def test_stretches_that_touch_all_get_their_colour(qapp: QApplication) -> None:
    layout = PieceLayout("MMMMMMMM\nMM", code_style(), 400)
    inks = [QColor("#ff0000"), QColor("#00aa00"), QColor("#0000ff"), QColor("#ff0000")]
    colours = [(2 * place, 2 * place + 2, ink) for place, ink in enumerate(inks)]
    image = QImage(400, 60, QImage.Format.Format_RGB32)
    image.fill(QColor("white"))
    painter = QPainter(image)
    layout.draw(painter, 0, 0, QRectF(0, 0, 400, 60), colours)
    painter.end()
    for start, end, ink in colours:
        box = layout.rects(start, end)[0].toAlignedRect().adjusted(1, 0, -1, 0)
        darkest = min(
            (
                image.pixelColor(x, y)
                for x in range(box.left(), box.right())
                for y in range(box.top(), box.bottom())
            ),
            key=lambda colour: colour.lightness(),
        )
        assert abs(darkest.hue() - ink.hue()) < 12, (start, darkest.name())
    # The pen's own colour stays where there is none.
    rest = layout.rects(9, 11)[0].toAlignedRect()
    shades = {
        image.pixelColor(x, y).saturation()
        for x in range(rest.left(), rest.right())
        for y in range(rest.top(), rest.bottom())
    }
    assert max(shades) < 10
