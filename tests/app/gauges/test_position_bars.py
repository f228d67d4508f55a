"""Position bars: shares by place, and their heights."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QImage, QPainter

from app.gauges.position_bars import MAX_BARS, paint_bars, shares
from core.events import PositionStat

INK, FLOOR, PAPER = QColor("#009E73"), QColor("#D2D2D8"), QColor("white")


def _height(image: QImage, x: int) -> int:
    """How many pixels of ink stand over the bottom at `x`."""
    return sum(image.pixelColor(x, y) == INK for y in range(image.height()))


def _painted(positions: list[PositionStat]) -> QImage:
    image = QImage(64, 30, QImage.Format.Format_RGB32)
    image.fill(PAPER)
    painter = QPainter(image)
    paint_bars(painter, QRectF(0, 0, 64, 30), positions, INK, FLOOR)
    painter.end()
    return image


def test_shares_leave_out_places_that_were_never_tested() -> None:
    positions = [PositionStat(10, 8), PositionStat(4, 1), PositionStat(0, 0)]
    assert shares(positions) == [0.8, 0.25]
    assert shares([]) == []
    assert len(shares([PositionStat(1, 1)] * 64)) == MAX_BARS


def test_heights_are_the_shares(qapp: object) -> None:
    image = _painted([PositionStat(10, 10), PositionStat(10, 5)])
    assert _height(image, 4) == 30
    assert _height(image, 15) == pytest.approx(15, abs=1)
    assert _height(image, 9) == 0  # the gap
    assert image.pixelColor(30, 29) == PAPER


def test_a_place_without_an_accepted_token_keeps_a_floor(qapp: object) -> None:
    image = _painted([PositionStat(10, 10), PositionStat(10, 0)])
    assert image.pixelColor(15, 29) == FLOOR
    assert image.pixelColor(15, 28) == PAPER


def test_many_places_still_fit(qapp: object) -> None:
    image = _painted([PositionStat(10, 10)] * 64)
    inked = [x for x in range(64) if _height(image, x) > 20]
    assert inked[0] <= 1
    assert inked[-1] >= 60
    assert len(inked) < 60  # gaps remain
