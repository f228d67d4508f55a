"""Fonts: sizes in pixels, figures of one width, a mono face that is one."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QFont, QFontInfo, QFontMetricsF, QGuiApplication

from app.theme.fonts import mono_font, ui_font


def test_whole_sizes_are_pixels(qapp: QGuiApplication) -> None:
    assert ui_font(17).pixelSize() == 17
    assert ui_font(13, 600).weight() == QFont.Weight.DemiBold


@pytest.mark.parametrize("size_px", [10.5, 11.5, 12.5, 14.5])
def test_half_sizes_come_within_half_a_pixel(size_px: float, qapp: QGuiApplication) -> None:
    assert abs(QFontInfo(ui_font(size_px)).pixelSize() - size_px) <= 0.5


def test_tabular_figures_have_one_width(qapp: QGuiApplication) -> None:
    metrics = QFontMetricsF(ui_font(17, 600, tabular=True))
    widths = [metrics.horizontalAdvance(digit) for digit in "0123456789"]
    assert max(widths) - min(widths) < 0.05  # glyph advances are rounded to 1/64 px


def test_the_mono_face_is_mono(qapp: QGuiApplication) -> None:
    metrics = QFontMetricsF(mono_font(12.5))
    assert metrics.horizontalAdvance("iiii") == metrics.horizontalAdvance("WWWW")
    assert metrics.horizontalAdvance("->==!=") == 6 * metrics.horizontalAdvance("-")
