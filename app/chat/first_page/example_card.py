"""ExampleCard: a button that puts an example into the composer."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QKeyEvent, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.controls.buttons.button import pressed_by
from app.controls.focus_ring import FocusRing
from app.controls.shapes import draw_box, draw_text
from app.richtext.layout.piece_layout import PieceLayout
from app.richtext.layout.text_style import note_style
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.theme import Theme
from app.theme.zoom import area_of, painter_on, ratio_of, width_of

_PAD_X_PX = 17
_TILE_TOP_PX = 15
_TITLE_TOP_PX = 53
_TEXT_TOP_PX = 74
_BOTTOM_PX = 16


class ExampleCard(QAbstractButton):
    """`example` is what it puts there."""

    def __init__(
        self, theme: Theme, icon_name: str, title: str, text: str, example: str, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._icon_name = icon_name
        self._words = text
        self.example = example
        self.setText(title)
        self.setAccessibleName(title)
        self.setAccessibleDescription(text)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self._ring = FocusRing(self, theme, 12)
        theme.changed.connect(self.update)

    @property
    def least_width(self) -> float:
        """What its title needs, in design pixels."""
        return QFontMetricsF(_title_font()).horizontalAdvance(self.text()) + 2 * _PAD_X_PX

    def height_for(self, width: float) -> int:
        """How high the card is with its text broken to that width, in design pixels."""
        return _TEXT_TOP_PX + round(self._layout(width).height) + _BOTTOM_PX

    def _layout(self, width: float) -> PieceLayout:
        return PieceLayout(self._words, note_style(), width - 2 * _PAD_X_PX)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not pressed_by(self, event):
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        color = self._theme.color
        fill = color("fill2" if self.isDown() else "fill1" if self.underMouse() else "raised")
        area = area_of(self)
        draw_box(painter, area, 12, fill, color("hair"))
        draw_box(painter, QRectF(_PAD_X_PX, _TILE_TOP_PX, 28, 28), 7, color("accent_tint"))
        icon = icon_pixmap(self._icon_name, color("accent"), 16, ratio_of(self))
        painter.drawPixmap(_PAD_X_PX + 6, _TILE_TOP_PX + 6, icon)
        title = QRectF(_PAD_X_PX, _TITLE_TOP_PX, area.width() - 2 * _PAD_X_PX, 18)
        draw_text(painter, title, self.text(), _title_font(), color("text"), Qt.AlignmentFlag.AlignLeft)
        painter.setPen(color("text2"))
        self._layout(width_of(self)).draw(painter, _PAD_X_PX, _TEXT_TOP_PX, area)


def _title_font() -> QFont:
    return ui_font(13.5, 600)
