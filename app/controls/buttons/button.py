"""Button: a labelled push button: plain, primary, as a link, or for what cannot be undone.

28 high, 24 when small. Space and Return press it.
"""

from __future__ import annotations

from typing import Literal

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QKeyEvent, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from app.controls.buttons.press import pressed_by
from app.controls.focus_ring import FocusRing
from app.controls.shapes import draw_box, draw_text
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.theme import Theme
from app.theme.zoom import area_of, painter_on, px_size, ratio_of

Kind = Literal["plain", "primary", "link", "danger"]
_ICON_PX = 14
_ICON_GAP_PX = 6


class Button(QAbstractButton):
    """`icon_name` puts a line drawing left of the text, in the text's colour."""

    def __init__(
        self,
        theme: Theme,
        text: str,
        kind: Kind = "plain",
        small: bool = False,
        parent: QWidget | None = None,
        *,
        icon_name: str = "",
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._kind = kind
        self._small = small
        self._icon_name = icon_name
        self.setText(text)
        self.setAccessibleName(text)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._radius_px = 6.0 if small else 7.0
        self._ring = FocusRing(self, theme, self._radius_px)
        theme.changed.connect(self.update)

    def set_kind(self, kind: Kind) -> None:
        """Look like another kind from now on."""
        self._kind = kind
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        padding = 7 if self._kind == "link" else 11 if self._small else 13
        width = QFontMetricsF(self._text_font()).horizontalAdvance(self.text()) + 2 * padding
        if self._icon_name:
            width += _ICON_PX + _ICON_GAP_PX
        return px_size(QSize(int(width + 0.999), 24 if self._small else 28))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not pressed_by(self, event):
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        rect = area_of(self)
        fill, frame, ink = self._colors()
        draw_box(painter, rect, self._radius_px, fill, frame)
        font = self._text_font()
        if self._icon_name:
            text_px = QFontMetricsF(font).horizontalAdvance(self.text())
            left = (rect.width() - text_px - _ICON_PX - _ICON_GAP_PX) / 2
            icon = icon_pixmap(self._icon_name, ink, _ICON_PX, ratio_of(self))
            painter.drawPixmap(int(left), int((rect.height() - _ICON_PX) / 2), icon)
            rect.setLeft(left + _ICON_PX + _ICON_GAP_PX)
            draw_text(painter, rect, self.text(), font, ink, Qt.AlignmentFlag.AlignLeft)
        else:
            draw_text(painter, rect, self.text(), font, ink)

    def _text_font(self) -> QFont:
        return ui_font(12.0 if self._small else 12.5, 500)

    def _colors(self) -> tuple[QColor | None, QColor | None, QColor]:
        """Fill, frame and text as the button stands."""
        color = self._theme.color
        pressed, hovered = self.isDown(), self.underMouse() and self.isEnabled()
        if self._kind == "primary":
            if not self.isEnabled():
                return color("fill2"), None, color("text3")
            name = "accent_pressed" if pressed else "accent_hover" if hovered else "accent_fill"
            return color(name), None, color("on_accent")
        fill = color("fill2") if pressed else color("fill1") if hovered else None
        if self._kind == "link":
            # On the darker grey its own blue would not be read well.
            fill = color("accent_tint") if pressed else fill
            return fill, None, color("accent" if self.isEnabled() else "text3")
        frame = color("accent_mid" if self._ring.shown else "control_border")
        if not self.isEnabled():
            return color("control"), frame, color("text3")
        return fill or color("control"), frame, color("danger" if self._kind == "danger" else "text")
