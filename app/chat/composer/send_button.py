"""SendButton: the round button of the composer. Sends, or stops while an answer is written."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.chat.composer import strings
from app.controls.focus_ring import FocusRing
from app.theme.icons import icon_pixmap
from app.theme.measures import set_fixed_size
from app.theme.theme import Theme
from app.theme.zoom import area_of, painter_on, px_size, ratio_of, width_of

_SIDE_PX = 28
_ICON_PX = 16


class SendButton(QAbstractButton):
    """28 px. `stops` says which of the two it does."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._stops = False
        set_fixed_size(self, QSize(_SIDE_PX, _SIDE_PX))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self._ring = FocusRing(self, theme, _SIDE_PX / 2)
        theme.changed.connect(self.update)
        self.set_stops(False)

    @property
    def stops(self) -> bool:
        """Whether a click stops instead of sending."""
        return self._stops

    def set_stops(self, stops: bool) -> None:
        """Become the stop button, or the send button again."""
        self._stops = stops
        self.setAccessibleName(strings.STOP if stops else strings.SEND)
        self.setToolTip(strings.STOP if stops else strings.SEND)
        self.update()

    def sizeHint(self) -> QSize:
        return px_size(QSize(_SIDE_PX, _SIDE_PX))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.color(self._fill()))
        painter.drawEllipse(area_of(self))
        ink = self._theme.color("on_accent" if self.isEnabled() else "text3")
        pixmap = icon_pixmap("stop" if self._stops else "send", ink, _ICON_PX, ratio_of(self))
        corner = (width_of(self) - _ICON_PX) / 2
        painter.drawPixmap(QPointF(corner, corner), pixmap)
        painter.end()

    def _fill(self) -> str:
        if not self.isEnabled():
            return "fill2"
        if self.isDown():
            return "accent_pressed"
        return "accent_hover" if self.underMouse() else "accent_fill"
