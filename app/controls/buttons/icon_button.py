"""IconButton: a 28 px square with a 16 px line drawing. `checkable` makes it stay on."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QSize, Qt
from PySide6.QtGui import QKeyEvent, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from app.controls.buttons.button import pressed_by
from app.controls.focus_ring import FocusRing
from app.controls.shapes import draw_box
from app.theme.icons import icon_pixmap
from app.theme.theme import Theme
from app.theme.zoom import area_of, height_of, painter_on, px_size, ratio_of, width_of

_ICON_PX = 16


class IconButton(QAbstractButton):
    """The accessible name is also the tooltip."""

    def __init__(
        self,
        theme: Theme,
        icon_name: str,
        accessible_name: str,
        checkable: bool = False,
        parent: QWidget | None = None,
        *,
        size: QSize | None = None,
    ) -> None:
        """`size` is for buttons that are not 28 × 28 (those of an answer are 26 × 24)."""
        super().__init__(parent)
        self._theme = theme
        self._icon_name = icon_name
        self._size = size or QSize(28, 28)
        self.setCheckable(checkable)
        self.setAccessibleName(accessible_name)
        self.setToolTip(accessible_name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._radius_px = 6.0 if self._size.width() >= 28 else 5.0
        self._ring = FocusRing(self, theme, self._radius_px)

    @property
    def icon_name(self) -> str:
        """The icon's name."""
        return self._icon_name

    def set_icon_name(self, icon_name: str) -> None:
        """Changes the icon (Copy becomes a check mark)."""
        self._icon_name = icon_name
        self.update()

    def sizeHint(self) -> QSize:
        return px_size(self._size)

    def minimumSizeHint(self) -> QSize:
        return px_size(self._size)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not pressed_by(self, event):
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        rect = area_of(self)
        color = self._theme.color
        on = self.isDown() or self.isChecked()
        if on or (self.underMouse() and self.isEnabled()):
            # fill1 is too close to the sidebar's grey.
            fill = color("fill2")
            if not on:
                fill.setAlphaF(0.7)
            draw_box(painter, rect, self._radius_px, fill)
        ink = color("text3" if not self.isEnabled() else "text" if on else "text2")
        icon = icon_pixmap(self._icon_name, ink, _ICON_PX, ratio_of(self))
        painter.drawPixmap(QPointF((width_of(self) - _ICON_PX) // 2, (height_of(self) - _ICON_PX) // 2), icon)
