"""ReadingMapStrip: the document as a strip while it is read, with its headings below it.

A click says which place was meant; assistive technology hears how much of it is read.
"""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from app.chat.reading import reading_map, strings
from app.chat.reading.map_paint import draw_map
from app.chat.reading.reading_map import MapCell
from app.controls.shapes import draw_text
from app.theme.fonts import ui_font
from app.theme.theme import Theme
from app.theme.zoom import design_point, painter_on, px_size, ratio_of, width_of
from core.events import ReadingMap

STRIP_PX = 40
# The playhead stands out of the strip at both ends.
_OUT_PX = 4
_LABELS_PX = 18
_LABEL_GAP_PX = 12

Label = tuple[float, str]  # place on the strip from 0 to 1, words


class ReadingMapStrip(QWidget):
    """While there is no map yet, the part that has been looked at is grey."""

    HEIGHT_PX = _OUT_PX + STRIP_PX + _OUT_PX + _LABELS_PX
    place_chosen = Signal(object)  # events.Passage

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._reading: ReadingMap | None = None
        self._labels: tuple[Label, ...] = ()
        self._read_tokens = 0
        self._scored = 0.0
        self._cells: list[MapCell] | None = None
        self.setAccessibleName(strings.MAP_NAME)
        theme.changed.connect(self.update)

    def show_scoring(self, fraction: float) -> None:
        """How much of the prompt has been looked at."""
        self._scored = fraction
        self._forget()

    def show_map(self, reading: ReadingMap, labels: tuple[Label, ...] = ()) -> None:
        """What will be read, and what stands where."""
        self._reading, self._labels = reading, labels
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self._forget()

    def show_read(self, read_tokens: int) -> None:
        """How many of the kept tokens have been read."""
        self._read_tokens = read_tokens
        self._forget()

    def sizeHint(self) -> QSize:
        return px_size(QSize(680, self.HEIGHT_PX))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self._reading is not None and event.button() == Qt.MouseButton.LeftButton:
            passage = reading_map.passage_at(
                self._reading, design_point(event.position()).x() / max(1, width_of(self))
            )
            if passage is not None:
                self.place_chosen.emit(passage)

    def resizeEvent(self, event: object) -> None:
        self._forget()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        strip = QRectF(0, _OUT_PX, width_of(self), STRIP_PX)
        if self._cells is None or len(self._cells) != self._columns():
            self._cells = self._make_cells()
        draw_map(painter, strip, self._cells, self._theme)
        if self._reading is None:
            return
        self._paint_labels(painter, strip)
        if self._read_tokens < self._reading.read_tokens:
            x = reading_map.playhead(self._reading, self._read_tokens) * width_of(self)
            line = QRectF(x - 1, 0, 2, STRIP_PX + 2 * _OUT_PX)
            painter.fillRect(line.adjusted(-1.5, 0, 1.5, 0), self._theme.color("raised"))
            painter.fillRect(line, self._theme.color("text"))

    def _paint_labels(self, painter: QPainter, strip: QRectF) -> None:
        font = ui_font(10.5, tabular=True)
        metrics = QFontMetricsF(font)
        free_from = 0.0
        top = strip.bottom() + _OUT_PX
        for place, words in self._labels:
            x = place * width_of(self)
            width = metrics.horizontalAdvance(words) + 5
            if x < free_from or x + width > width_of(self):
                continue
            painter.setPen(self._theme.color("hair2"))
            painter.drawLine(QPointF(x + 0.5, top), QPointF(x + 0.5, top + 5))
            box = QRectF(x + 5, top + 1, width, 15)
            draw_text(painter, box, words, font, self._theme.color("text2"), Qt.AlignmentFlag.AlignLeft)
            free_from = x + width + _LABEL_GAP_PX

    def _columns(self) -> int:
        """One a pixel of the screen it is on."""
        return max(1, round(width_of(self) * ratio_of(self)))

    def _make_cells(self) -> list[MapCell]:
        width = self._columns()
        if self._reading is None:
            done = round(width * self._scored)
            return [MapCell("skipped", 0.3)] * done + [MapCell("empty")] * (width - done)
        return reading_map.cells(self._reading.passages, width, self._read_tokens)

    def _forget(self) -> None:
        self._cells = None
        self.update()
