"""Painting: the small things that rows and the detail share: the family's chip and the fit's bar."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter

from app.controls.shapes import draw_box, draw_text
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.theme import Theme
from app.theme.zoom import zoom
from app.windows.models import strings
from app.windows.models.facts import FitFacts

_CHIP_PX = 18
_DOT_PX = 8
_BAR_PX = 150
# Where on the bar the limit is: beyond it there is room to see by how much something is too large.
LIMIT_AT = 0.794
_ICON_PX = 13
LEFT = Qt.AlignmentFlag.AlignLeft


def chip_width(text: str) -> float:
    """Of a chip with that text."""
    return 6 + _DOT_PX + 5 + QFontMetricsF(ui_font(11, 500)).horizontalAdvance(text) + 6


def draw_chip(
    painter: QPainter, theme: Theme, box: QRectF, text: str, color: str, fill: str = "fill1"
) -> None:
    """A family's chip at the left of `box`, in its middle; cut where the box ends."""
    width = min(chip_width(text), box.width() - 6)
    chip = QRectF(box.left(), box.center().y() - _CHIP_PX / 2, width, _CHIP_PX)
    draw_box(painter, chip, 4, theme.color(fill))
    dot = QRectF(chip.left() + 6, chip.center().y() - _DOT_PX / 2, _DOT_PX, _DOT_PX)
    draw_box(painter, dot, 2, theme.color(color))
    words = chip.adjusted(6 + _DOT_PX + 5, 0, -4, 0)
    draw_text(painter, words, text, ui_font(11, 500), theme.color("text"), LEFT)


def draw_fit(painter: QPainter, theme: Theme, box: QRectF, fit: FitFacts) -> None:
    """The word, what is spare, and a bar with a mark where the limit is."""
    word, top = strings.FIT_WORDS[fit.fit], box.center().y() - 15
    icon = icon_pixmap(
        strings.FIT_ICONS[fit.fit],
        theme.color("text2"),
        _ICON_PX,
        painter.device().devicePixelRatioF() * zoom(),
    )
    painter.drawPixmap(QPointF(box.left(), top + 1.5), icon)
    line = QRectF(box.left() + _ICON_PX + 5, top, box.width() - _ICON_PX - 5, 16)
    draw_text(painter, line, word, ui_font(12, 500), theme.color("text"), LEFT)
    past = QFontMetricsF(ui_font(12, 500)).horizontalAdvance(word) + 5
    font = ui_font(12, tabular=True)
    draw_text(painter, line.adjusted(past, 0, 0, 0), fit.text, font, theme.color("text2"), LEFT)
    track = QRectF(box.left(), top + 22, _BAR_PX, 4)
    draw_box(painter, track, 2, theme.color("fill2"))
    filled = QRectF(track)
    filled.setWidth(max(4.0, min(1.0, fit.share * LIMIT_AT) * _BAR_PX))
    draw_box(painter, filled, 2, theme.color("series_vermilion" if fit.fit == "too-large" else "series_blue"))
    mark = QRectF(track.left() + _BAR_PX * LIMIT_AT - 0.75, track.top() - 3, 1.5, 10)
    painter.fillRect(mark, theme.color("text"))
