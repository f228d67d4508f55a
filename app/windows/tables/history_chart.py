"""HistoryChart: one line over days, on three hairlines, with its last value as a dot."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from app.controls.shapes import draw_text
from app.theme.fonts import ui_font
from app.theme.measures import set_fixed_height
from app.theme.theme import Theme
from app.theme.zoom import height_of, painter_on, px_size, width_of
from app.windows.tables import strings
from app.windows.tables.history import Line

_AXIS_PX = 40
_TITLE_PX = 18
_TOP_PX = 30
_FOOT_PX = 22
_DOT_PX = 3.2
_FADE = 0.10  # of the line's colour, under the line


class HistoryChart(QLabel):
    """A QLabel, so that assistive technology reads it. Takes no focus: it is no control."""

    def __init__(
        self, theme: Theme, title: str, ink: str, *, filled: bool = False, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._title = title
        self._ink = ink
        self._filled = filled
        self._line: Line | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        set_fixed_height(self, _TOP_PX + 116 + _FOOT_PX)
        self.setAccessibleName(title)
        theme.changed.connect(self.update)

    def show_line(self, line: Line) -> None:
        """Draw this one."""
        self._line = line
        self.setAccessibleDescription(line.now or strings.NO_DAYS)
        self.setToolTip(f"{self._title}: {line.now}" if line.now else "")
        self.update()

    def sizeHint(self) -> QSize:
        return px_size(QSize(336, _TOP_PX + 116 + _FOOT_PX))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        color = self._theme.color
        left, right = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight
        title = QRectF(0, 0, width_of(self), _TITLE_PX)
        draw_text(painter, title, self._title, ui_font(12), color("text2"), left)
        line = self._line
        if line is None:
            return
        box = QRectF(_AXIS_PX, _TOP_PX, width_of(self) - _AXIS_PX - 5, height_of(self) - _TOP_PX - _FOOT_PX)
        small = ui_font(10.5, tabular=True)
        for part, label in zip((0.0, 0.5, 1.0), line.labels):
            y = box.bottom() - part * box.height()
            painter.fillRect(QRectF(box.left(), y, box.width(), 1), color("hair"))
            draw_text(painter, QRectF(0, y - 7, _AXIS_PX - 6, 14), label, small, color("text2"), right)
        if not line.points:
            upper = QRectF(box.left(), box.top(), box.width(), box.height() / 2)  # between two lines
            draw_text(painter, upper, strings.NO_DAYS, ui_font(11), color("text2"))
            return
        foot = QRectF(box.left(), box.bottom() + 6, box.width(), 14)
        draw_text(painter, foot, line.first, small, color("text2"), left)
        draw_text(painter, foot, strings.TODAY, small, color("text2"), right)
        self._paint_line(painter, box, line, color(self._ink))

    def _paint_line(self, painter: QPainter, box: QRectF, line: Line, ink: QColor) -> None:
        points = [
            QPointF(
                box.left() + line.place(point) * box.width(),
                box.bottom() - min(1.0, point.value / line.top) * box.height(),
            )
            for point in line.points
        ]
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if len(points) > 1:
            if self._filled:
                fill = QColor(ink)
                fill.setAlphaF(_FADE)
                floor = [QPointF(points[-1].x(), box.bottom()), QPointF(points[0].x(), box.bottom())]
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(fill)
                painter.drawPolygon(QPolygonF(points + floor))
            pen = QPen(ink, 1.5)
            pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
            pen.setCapStyle(Qt.PenCapStyle.RoundCap)
            painter.setPen(pen)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawPolyline(QPolygonF(points))
        painter.setPen(QPen(self._theme.color("window"), 1.4))
        painter.setBrush(ink)
        painter.drawEllipse(points[-1], _DOT_PX, _DOT_PX)
