"""Tooltips are framed in the theme's hairline colour and lie on its paper."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QRect
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QApplication, QStyle, QStyleOptionFrame

from app.launch.desktop_style import DesktopStyle
from app.theme.theme import Scheme, Theme


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_tooltips_frame_is_a_hairline(qapp: QApplication, scheme: Scheme) -> None:
    theme = Theme(scheme)
    style = DesktopStyle(theme)
    option = QStyleOptionFrame()
    option.rect = QRect(0, 0, 40, 20)
    option.palette = theme.qpalette()
    image = QImage(40, 20, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    style.drawPrimitive(QStyle.PrimitiveElement.PE_PanelTipLabel, option, painter)
    painter.end()

    frame = {image.pixelColor(x, y).name() for x, y in ((0, 0), (39, 19), (20, 0))}
    assert frame == {theme.color("hair2").name()}
    assert image.pixelColor(20, 10).name() == theme.color("tip").name()
