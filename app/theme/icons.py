"""Icons: line drawings of 16 px in one colour.

Files are black on transparent in `resources/icons`; an icon's name is the file's without its suffix.
A pixmap keeps the shape and gets one colour (SourceIn). Rendered pixmaps are in Qt's cache. The drawings in
`controls` are for the style sheet, which cannot colour them.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPixmap, QPixmapCache
from PySide6.QtSvg import QSvgRenderer

_RESOURCES = Path(__file__).resolve().parents[2] / "resources"
ICONS = _RESOURCES / "icons"
APP_ICON = _RESOURCES / "app-icon" / "draftlight.svg"


def icon_pixmap(name: str, color: QColor, size_px: int = 16, ratio: float = 1.0) -> QPixmap:
    """Returns the icon `name` in `color`, `size_px` logical pixels wide, for a screen of that pixel ratio.

    Raises FileNotFoundError for an unknown name.
    """
    key = f"draftlight-icon:{name}:{color.rgba():x}:{size_px}:{ratio:g}"
    pixmap = QPixmap()
    if QPixmapCache.find(key, pixmap):
        return pixmap
    file = ICONS / f"{name}.svg"
    if not file.is_file():
        raise FileNotFoundError(f"There is no icon “{name}” in {ICONS.name}.")
    device_px = max(1, round(size_px * ratio))
    pixmap = QPixmap(device_px, device_px)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    QSvgRenderer(str(file)).render(painter, QRectF(0, 0, device_px, device_px))
    painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceIn)
    painter.fillRect(pixmap.rect(), color)
    painter.end()
    pixmap.setDevicePixelRatio(ratio)
    QPixmapCache.insert(key, pixmap)
    return pixmap
