"""NewestButton: floats over the transcript's end while the reader is elsewhere."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.chat.transcript import strings
from app.controls.focus_ring import FocusRing
from app.controls.shapes import draw_box, draw_text
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.theme import Theme
from app.theme.zoom import area_of, painter_on, px_size, ratio_of

_HEIGHT_PX = 28
_PAD_PX = 12
_ICON_PX = 14
_GAP_PX = 5


class NewestButton(QAbstractButton):
    """A round-ended button."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setText(strings.NEWEST)
        self.setAccessibleName(strings.NEWEST)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self._ring = FocusRing(self, theme, _HEIGHT_PX / 2)
        theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        text = QFontMetricsF(ui_font(12, 500)).horizontalAdvance(self.text())
        return px_size(QSize(int(text + _ICON_PX + _GAP_PX + 2 * _PAD_PX + 0.999), _HEIGHT_PX))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        color = self._theme.color
        fill = color("fill2" if self.isDown() else "fill1" if self.underMouse() else "raised")
        draw_box(painter, area_of(self), _HEIGHT_PX / 2, fill, color("hair2"))
        icon = icon_pixmap("down", color("text2"), _ICON_PX, ratio_of(self))
        painter.drawPixmap(_PAD_PX - 1, (_HEIGHT_PX - _ICON_PX) // 2, icon)
        area = area_of(self).adjusted(_PAD_PX + _ICON_PX + _GAP_PX - 1, 0, -_PAD_PX + 2, 0)
        draw_text(painter, area, self.text(), ui_font(12, 500), color("text"), Qt.AlignmentFlag.AlignLeft)
