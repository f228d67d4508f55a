"""DocumentGutter: the whole document as a thin standing map, with a bracket for what is on the screen.

A click or a drag brings that place to the screen. It is the view's scroll bar to the mouse only:
the keyboard has the view itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.chat.reading_map import MapCell, draw_map
from app.panels.document import strings
from app.theme.measures import set_fixed_width
from app.theme.theme import Theme
from app.theme.zoom import area_of, design_point, height_of, painter_on, px_size, ratio_of

WIDTH_PX = 34
_LEFT_PX, _MAP_PX = 14, 10
_MARGIN_PX = 12
_BRACKET_OUT_PX = 4
_LEAST_BRACKET_PX = 10.0


class DocumentGutter(QWidget):
    """Places are shares of the text, 0 to 1."""

    place_chosen = Signal(float)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._cells: tuple[MapCell, ...] = ()
        self._view = (0.0, 1.0)
        set_fixed_width(self, WIDTH_PX)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(strings.DOCUMENT_MAP)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        theme.changed.connect(self.update)

    @property
    def rows(self) -> int:
        """How many cells it can show."""
        return max(1, round((height_of(self) - 2 * _MARGIN_PX) * ratio_of(self)))

    def show_cells(self, cells: Sequence[MapCell]) -> None:
        """The document from its beginning to its end; none: an even strip."""
        self._cells = tuple(cells)
        self.update()

    def show_view(self, first: float, last: float) -> None:
        """What is on the screen."""
        if (first, last) != self._view:
            self._view = (first, last)
            self.update()

    def bracket(self) -> QRectF:
        """Where the bracket is."""
        height = height_of(self) - 2 * _MARGIN_PX
        first, last = self._view
        tall = max(_LEAST_BRACKET_PX, (last - first) * height)
        top = min(_MARGIN_PX + first * height, _MARGIN_PX + height - tall)
        left = _LEFT_PX - _BRACKET_OUT_PX
        return QRectF(left, top, _MAP_PX + 2 * _BRACKET_OUT_PX, tall)

    def sizeHint(self) -> QSize:
        return px_size(QSize(WIDTH_PX, 200))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._choose(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._choose(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        painter.fillRect(area_of(self), self._theme.color("window"))
        strip = QRectF(_LEFT_PX, _MARGIN_PX, _MAP_PX, height_of(self) - 2 * _MARGIN_PX)
        draw_map(painter, strip, self._cells, self._theme, radius_px=3, vertical=True)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(self._theme.color("text2"), 1.5))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(self.bracket().adjusted(0.75, 0.75, -0.75, -0.75), 4, 4)

    def _choose(self, event: QMouseEvent) -> None:
        height = max(1, height_of(self) - 2 * _MARGIN_PX)
        share = (design_point(event.position()).y() - _MARGIN_PX) / height
        # The place that is pointed at comes to the middle.
        first, last = self._view
        self.place_chosen.emit(max(0.0, min(1.0, share - (last - first) / 2)))
