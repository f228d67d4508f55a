"""DesktopStyle: Qt's own style where the desktop has none of its own, with tooltips in the theme's colours.

Qt frames tooltips in the colour of their text, which is a hard black line. macOS draws its own.
"""

from __future__ import annotations

import sys

from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QApplication, QProxyStyle, QStyle, QStyleOption, QWidget

from app.theme.theme import Theme


class DesktopStyle(QProxyStyle):
    """Everything but the frame of tooltips is the style's that was there."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(QApplication.style().name())
        self._theme = theme

    def drawPrimitive(
        self,
        element: QStyle.PrimitiveElement,
        option: QStyleOption,
        painter: QPainter,
        widget: QWidget | None = None,
    ) -> None:
        if element != QStyle.PrimitiveElement.PE_PanelTipLabel:
            super().drawPrimitive(element, option, painter, widget)
            return
        painter.fillRect(option.rect, self._theme.color("hair2"))
        painter.fillRect(option.rect.adjusted(1, 1, -1, -1), self._theme.color("tip"))


def frame_tooltips(application: QApplication, theme: Theme) -> None:
    """Once, before there are windows."""
    if sys.platform != "darwin":
        application.setStyle(DesktopStyle(theme))
