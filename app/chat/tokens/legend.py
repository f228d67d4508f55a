"""Legend: what the marks under tokens mean, in one line under the composer."""

from __future__ import annotations

from PySide6.QtCore import QLineF, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.chat.tokens import strings
from app.controls.shapes import draw_box, draw_text
from app.richtext.layout.tint_paint import dots
from app.theme.fonts import ui_font
from app.theme.theme import Theme
from app.theme.zoom import painter_on, px_size, width_of
from core.events import Origin

HEIGHT_PX = 34
_SWATCH_WIDTH_PX = 26
_SWATCH_HEIGHT_PX = 16
_LABEL_GAP_PX = 7
_ITEM_GAP_PX = 20
_CLASSES: tuple[Origin, ...] = ("accepted", "bonus", "normal")


class Legend(QWidget):
    """34 high, centred; the hint goes first when there is no room."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.is_wanted = True  # False while token tint is off
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(", ".join(strings.CLASS_NAMES[origin] for origin in _CLASSES))
        self.setAccessibleDescription(" ".join(strings.CLASS_EXPLAINED[origin] for origin in _CLASSES))
        theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return px_size(QSize(560, HEIGHT_PX))

    def minimumSizeHint(self) -> QSize:
        return px_size(QSize(0, HEIGHT_PX))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        font = ui_font(11)
        metrics = QFontMetricsF(font)
        labels = [metrics.horizontalAdvance(strings.CLASS_NAMES[origin]) for origin in _CLASSES]
        keys = sum(labels) + 3 * (_SWATCH_WIDTH_PX + _LABEL_GAP_PX) + 2 * _ITEM_GAP_PX
        hint = metrics.horizontalAdvance(strings.LEGEND_HINT)
        with_hint = keys + _ITEM_GAP_PX + hint <= width_of(self) - 16
        x = (width_of(self) - keys - (_ITEM_GAP_PX + hint if with_hint else 0)) / 2
        ink = self._theme.color("text2")
        for origin, width in zip(_CLASSES, labels):
            self._paint_swatch(painter, origin, QPointF(round(x), (HEIGHT_PX - _SWATCH_HEIGHT_PX) / 2))
            x += _SWATCH_WIDTH_PX + _LABEL_GAP_PX
            area = QRectF(x, 0, width + 1, HEIGHT_PX)
            draw_text(painter, area, strings.CLASS_NAMES[origin], font, ink, Qt.AlignmentFlag.AlignLeft)
            x += width + _ITEM_GAP_PX
        if with_hint:
            area = QRectF(x, 0, hint + 1, HEIGHT_PX)
            draw_text(painter, area, strings.LEGEND_HINT, font, ink, Qt.AlignmentFlag.AlignLeft)

    def _paint_swatch(self, painter: QPainter, origin: Origin, corner: QPointF) -> None:
        box = QRectF(corner.x(), corner.y(), _SWATCH_WIDTH_PX, _SWATCH_HEIGHT_PX)
        if origin == "normal":
            pen = QPen(self._theme.color("hair2"), 1, Qt.PenStyle.CustomDashLine)
            pen.setDashPattern([2.5, 2])
            painter.setPen(pen)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 3.5, 3.5)
            return
        draw_box(painter, box, 4, self._theme.color(f"{origin}_tint"))
        line = self._theme.color(f"{origin}_line")
        if origin == "accepted":
            painter.fillRect(QRectF(box.left() + 3, box.bottom() - 3, 18.5, 1.5), line)
            return
        painter.setPen(dots(line))
        y = box.bottom() - 2.5
        painter.drawLine(QLineF(box.left() + 4, y, box.left() + 22.5, y))
