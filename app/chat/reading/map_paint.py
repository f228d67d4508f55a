"""Painting the reading map: a strip of cells, lying or standing, in the map's colours.

One pixel a cell, scaled to the place given: however many passages there are, painting costs the
same. Blue is what is read, paler what waits for it, blue-grey what an earlier turn read, grey what is
skipped, darker where it came close to being read.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPainterPath

from app.chat.reading.reading_map import MapCell
from app.controls.shapes import blend
from app.theme.theme import Theme

# By the visual design, skipped cells blend this much text over the empty map, by score.
_LEAST, _MOST = 0.045, 0.155
_RADIUS_PX = 5.0


def cell_color(theme: Theme, cell: MapCell) -> QColor:
    """What one cell is painted with."""
    if cell.state == "read":
        return theme.color("accent")
    if cell.state == "kept":
        return theme.color("accent_mid")
    empty = theme.color("map_empty")
    if cell.state == "earlier":
        return blend(theme.color("accent_mid"), theme.color("text2"), 0.5)
    if cell.state == "empty":
        return empty
    share = _LEAST + (_MOST - _LEAST) * max(0.0, min(1.0, cell.score))
    return blend(theme.color("text"), empty, share)


def draw_map(
    painter: QPainter,
    rect: QRectF,
    cells: Sequence[MapCell],
    theme: Theme,
    *,
    radius_px: float = _RADIUS_PX,
    vertical: bool = False,
) -> None:
    """Fill `rect` with `cells`, from left to right or from top to bottom."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    shape = QPainterPath()
    shape.addRoundedRect(rect, radius_px, radius_px)
    painter.setClipPath(shape)
    painter.fillRect(rect, theme.color("map_empty"))
    if cells:
        count = len(cells)
        image = QImage(*((1, count) if vertical else (count, 1)), QImage.Format.Format_RGB32)
        colors: dict[MapCell, int] = {}
        for place, cell in enumerate(cells):
            color = colors.get(cell)
            if color is None:
                color = colors[cell] = cell_color(theme, cell).rgb()
            image.setPixel(*((0, place) if vertical else (place, 0)), color)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
        painter.drawImage(rect, image)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.restore()
