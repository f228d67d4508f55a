"""MessageChip: an attachment above the message it was sent with; a click opens it in the Document tab.

At its right an eye, or the map of what was read of it once that is known.
"""

from __future__ import annotations

import math

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.chat.answer import strings
from app.chat.attachments.token_estimate import size_words
from app.chat.reading import reading_map
from app.chat.reading.map_paint import draw_map
from app.chat.reading.reading_map import MapCell
from app.controls.buttons.button import pressed_by
from app.controls.focus_ring import FocusRing
from app.controls.shapes import draw_box, draw_text, in_own_direction
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.theme import Theme
from app.theme.zoom import area_of, painter_on, px_size, ratio_of, width_of
from core.events import Attachment, Passage

HEIGHT_PX = 48
_RADIUS_PX = 10
_EYE_PX = 16
_MAP_PX, _MAP_HEIGHT_PX = 180, 18
# Frame 1, padding 9, icon 28, gap 10; gap 18 and padding 12 at the other side.
_BEFORE_PX, _AFTER_PX = 48, 13
_GAP_PX = 18


class MessageChip(QAbstractButton):
    """As wide as its words and its map need."""

    def __init__(self, theme: Theme, attachment: Attachment, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._attachment = attachment
        self._passages: tuple[Passage, ...] = ()
        self._cells: list[MapCell] = []
        self.setText(attachment.name)
        self.setAccessibleName(strings.OPEN_DOCUMENT.format(name=attachment.name))
        self.setToolTip(strings.OPEN_DOCUMENT.format(name=in_own_direction(attachment.name)))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self._ring = FocusRing(self, theme, _RADIUS_PX)
        theme.changed.connect(self.update)
        self._describe()

    @property
    def note(self) -> str:
        """The second line: its size, and how much of it was read."""
        size = size_words(self._attachment)
        tokens = sum(passage.end - passage.start for passage in self._passages)
        if not tokens:
            return size
        kept = sum(passage.end - passage.start for passage in self._passages if passage.kept)
        return strings.READ_PERCENT.format(size=size, percent=round(100 * kept / tokens))

    def show_passages(self, passages: tuple[Passage, ...]) -> None:
        """What was read of it; empty: all of it, or it is not known."""
        self._passages = passages
        self._cells = []
        self._describe()
        self.update()

    def sizeHint(self) -> QSize:
        words = max(
            QFontMetricsF(ui_font(12.5, 500)).horizontalAdvance(self.text()),
            QFontMetricsF(ui_font(11, tabular=True)).horizontalAdvance(self.note),
        )
        right = _MAP_PX if self._passages else _EYE_PX
        return px_size(QSize(math.ceil(_BEFORE_PX + words + _GAP_PX + right + _AFTER_PX), HEIGHT_PX))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not pressed_by(self, event):
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        color = self._theme.color
        lit = self.isDown() or self.underMouse()
        box = area_of(self)
        fill, frame = color("fill1" if lit else "raised"), color("hair2" if lit else "hair")
        draw_box(painter, box, _RADIUS_PX, fill, frame)
        tile = QRectF(10, 8, 28, 32)
        draw_box(painter, tile, 5, color("fill2" if lit else "fill1"))
        icon = icon_pixmap("doc", color("text2"), 16, ratio_of(self))
        painter.drawPixmap(QPointF(tile.left() + 6, tile.top() + 8), icon)
        right = self._paint_right(painter)
        room = right - _BEFORE_PX
        align = Qt.AlignmentFlag.AlignLeft
        name = QRectF(_BEFORE_PX, 8, room, 16)
        draw_text(painter, name, self.text(), ui_font(12.5, 500), color("text"), align)
        note = QRectF(_BEFORE_PX, 24, room, 15)
        draw_text(painter, note, self.note, ui_font(11, tabular=True), color("text2"), align)

    def _paint_right(self, painter: QPainter) -> float:
        """Map or eye; where the words must end."""
        end = width_of(self) - _AFTER_PX
        if not self._passages:
            eye = icon_pixmap("eye", self._theme.color("text3"), _EYE_PX, ratio_of(self))
            painter.drawPixmap(QPointF(end - _EYE_PX, (HEIGHT_PX - _EYE_PX) / 2), eye)
            return end - _EYE_PX - _GAP_PX / 2
        width = min(_MAP_PX, max(24, end - _BEFORE_PX - 120))
        pixels = round(_MAP_PX * ratio_of(self))
        if len(self._cells) != pixels:
            self._cells = reading_map.cells(self._passages, pixels)
        strip = QRectF(end - width, (HEIGHT_PX - _MAP_HEIGHT_PX) / 2, width, _MAP_HEIGHT_PX)
        draw_map(painter, strip, self._cells, self._theme, radius_px=3)
        return strip.left() - _GAP_PX / 2

    def _describe(self) -> None:
        self.setAccessibleDescription(self.note)
        self.updateGeometry()
