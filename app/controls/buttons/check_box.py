"""CheckBox: a 16 px box with a tick, and what it is about at its right. Space and Return turn it."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.controls.buttons.toggle import Toggle
from app.controls.shapes import draw_box, draw_text
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.theme import Theme
from app.theme.zoom import height_of, painter_on, px_size, ratio_of, width_of

_BOX_PX = 16
_TICK_PX = 12
_GAP_PX = 9
_HEIGHT_PX = 24


class CheckBox(Toggle):
    """`note` stands small at the right end of the row."""

    def __init__(self, theme: Theme, text: str, note: str = "", parent: QWidget | None = None) -> None:
        super().__init__(theme, text, 6, parent)
        self._note = note
        self.setAccessibleName(text)
        self.setAccessibleDescription(note)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        text = QFontMetricsF(ui_font(13)).horizontalAdvance(self.text())
        note = QFontMetricsF(ui_font(11, tabular=True)).horizontalAdvance(self._note)
        return px_size(
            QSize(int(_BOX_PX + _GAP_PX + text + (note + _GAP_PX if note else 0) + 0.999), _HEIGHT_PX)
        )

    def minimumSizeHint(self) -> QSize:
        return px_size(QSize(_BOX_PX + _GAP_PX, _HEIGHT_PX))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        color = self._theme.color
        on, enabled = self.isChecked(), self.isEnabled()
        box = QRectF(0, (height_of(self) - _BOX_PX) / 2, _BOX_PX, _BOX_PX)
        if on:
            draw_box(painter, box, 4, color("accent_fill" if enabled else "text3"))
            tick = icon_pixmap("check", color("on_accent"), _TICK_PX, ratio_of(self))
            painter.drawPixmap(int(box.left()) + 2, int(box.top()) + 2, tick)
        else:
            draw_box(painter, box, 4, color("control"), color("hair2"))
        ink = color("text" if enabled else "text3")
        rest = QRectF(_BOX_PX + _GAP_PX, 0, width_of(self) - _BOX_PX - _GAP_PX, height_of(self))
        draw_text(painter, rest, self.text(), ui_font(13), ink, Qt.AlignmentFlag.AlignLeft)
        small = ui_font(11, tabular=True)
        draw_text(painter, rest, self._note, small, color("text2"), Qt.AlignmentFlag.AlignRight)
