"""MemoryBar: what the memory would go into, as one bar of the limit's length, with its legend."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainterPath, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.controls.shapes import draw_box, draw_text
from app.theme.fonts import ui_font
from app.theme.theme import Theme
from app.theme.zoom import painter_on, px_size, width_of
from app.windows.models import strings
from app.windows.models.facts import MemoryPart
from app.windows.models.painting import LEFT

_BAR_PX = 14
_LINE_PX = 21
_GAP_PX = 7
_SQUARE_PX = 9
_RIGHT = Qt.AlignmentFlag.AlignRight


class MemoryBar(QWidget):
    """Longer than the limit is cut at its end; the words above it say by how much."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._parts: tuple[MemoryPart, ...] = ()
        self._limit_bytes = 0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(strings.MEMORY)
        theme.changed.connect(self.update)

    @property
    def parts(self) -> tuple[MemoryPart, ...]:
        """What it shows."""
        return self._parts

    def show_parts(self, parts: Sequence[MemoryPart], limit_bytes: int) -> None:
        """Show `parts` of `limit_bytes`."""
        self._parts, self._limit_bytes = tuple(parts), limit_bytes
        told = ", ".join(f"{part.label} {strings.size(part.size_bytes)}" for part in parts)
        self.setAccessibleDescription(told)
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return px_size(QSize(200, _BAR_PX + _GAP_PX + _LINE_PX * len(self._parts)))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        color = self._theme.color
        bar = QRectF(0, 0, width_of(self), _BAR_PX)
        draw_box(painter, bar, 4, color("fill2"))
        path = QPainterPath()
        path.addRoundedRect(bar, 4, 4)
        painter.save()
        painter.setClipPath(path)
        left = 0.0
        for part in self._parts:
            width = part.size_bytes / max(1, self._limit_bytes) * width_of(self)
            painter.fillRect(QRectF(left, 0, max(1.0, width - 1.5), _BAR_PX), color(part.color))
            left += max(2.5, width)
        painter.restore()
        top = float(_BAR_PX + _GAP_PX)
        for part in self._parts:
            middle = top + _LINE_PX / 2
            square = QRectF(0, middle - _SQUARE_PX / 2, _SQUARE_PX, _SQUARE_PX)
            draw_box(painter, square, 2, color(part.color))
            line = QRectF(_SQUARE_PX + 8, top, width_of(self) - _SQUARE_PX - 8, _LINE_PX)
            font = ui_font(12, tabular=True)
            draw_text(painter, line, part.label, font, color("text"), LEFT)
            draw_text(painter, line, strings.size(part.size_bytes), font, color("text2"), _RIGHT)
            top += _LINE_PX
