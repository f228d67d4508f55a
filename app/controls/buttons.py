"""Button (plain, primary, danger, link), CopyButton and IconButton; Return and Enter as a click."""

from __future__ import annotations

from typing import Literal

from PySide6.QtCore import QPointF, QSize, Qt, QTimer
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QGuiApplication, QKeyEvent, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from app.controls.focus_ring import FocusRing
from app.controls.shapes import draw_box, draw_text
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.theme import color
from app.theme.zoom import area_of, height_of, painter_on, px_size, ratio_of, width_of


def pressed_by(button: QAbstractButton, event: QKeyEvent) -> bool:
    """Clicks `button` if `event` is Return or Enter; returns whether it was.

    Auto-repeat does not click again.
    """
    if event.key() not in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
        return False
    if not event.isAutoRepeat():
        button.click()
    return True


class PaintedButton(QAbstractButton):
    """Base of painted buttons of a fixed size: focus by Tab and mouse, focus ring, hover, Return presses."""

    def __init__(self, radius_px: float, parent: QWidget | None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._radius_px = radius_px
        self._ring = FocusRing(self, radius_px)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not pressed_by(self, event):
            super().keyPressEvent(event)


Kind = Literal["plain", "primary", "link", "danger"]
_ICON_PX = 14
_ICON_GAP_PX = 6


class Button(PaintedButton):
    """`icon_name` adds an icon left of the text, in the text's colour."""

    def __init__(
        self,
        text: str,
        kind: Kind = "plain",
        small: bool = False,
        parent: QWidget | None = None,
        *,
        icon_name: str = "",
    ) -> None:
        super().__init__(6.0 if small else 7.0, parent)
        self._kind = kind
        self._small = small
        self._icon_name = icon_name
        self.setText(text)
        self.setAccessibleName(text)

    def set_kind(self, kind: Kind) -> None:
        self._kind = kind
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        padding = 7 if self._kind == "link" else 11 if self._small else 13
        width = QFontMetricsF(self._text_font()).horizontalAdvance(self.text()) + 2 * padding
        if self._icon_name:
            width += _ICON_PX + _ICON_GAP_PX
        return px_size(QSize(int(width + 0.999), 24 if self._small else 28))

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
        """Returns fill, frame and text colour for the current state."""
        pressed, hovered = self.isDown(), self.underMouse() and self.isEnabled()
        if self._kind == "primary":
            if not self.isEnabled():
                return color("fill2"), None, color("text3")
            name = "accent_pressed" if pressed else "accent_hover" if hovered else "accent_fill"
            return color(name), None, color("on_accent")
        fill = color("fill2") if pressed else color("fill1") if hovered else None
        if self._kind == "link":
            # Its own blue has too little contrast on the darker grey.
            fill = color("accent_tint") if pressed else fill
            return fill, None, color("accent" if self.isEnabled() else "text3")
        frame = color("accent_mid" if self._ring.shown else "control_border")
        if not self.isEnabled():
            return color("control"), frame, color("text3")
        return fill or color("control"), frame, color("danger" if self._kind == "danger" else "text")


_SAID_MS = 1500
COPIED = "Copied"


class CopyButton(Button):
    """A button that copies a value; its accessible name contains `name`."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__("", small=True, parent=parent, icon_name="copy")
        self._name = name
        self._shown = self._value = ""
        self._said = QTimer(self, interval=_SAID_MS, singleShot=True)
        self._said.timeout.connect(lambda: self._say(self._shown))
        self.clicked.connect(self._copy)

    @property
    def value(self) -> str:
        return self._value

    def set_value(self, shown: str, value: str) -> None:
        """Shows `shown`; a click copies `value`."""
        if (shown, value) == (self._shown, self._value):
            return
        self._shown, self._value = shown, value
        if not self._said.isActive():
            self._say(shown)
        self.setToolTip(f"{self._name}: {value}")
        self.setAccessibleName(f"{self._name} {value}")

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._value)
        self._say(COPIED)
        self._said.start()

    def _say(self, text: str) -> None:
        self.setText(text)
        self.setAccessibleDescription(COPIED if text == COPIED else "")
        self.updateGeometry()
        self.update()


_DRAWING_PX = 16


class IconButton(PaintedButton):
    """A 28 px square with a 16 px line drawing; `checkable` makes it stay on.

    The accessible name is also the tooltip.
    """

    def __init__(
        self,
        icon_name: str,
        accessible_name: str,
        checkable: bool = False,
        parent: QWidget | None = None,
        *,
        size: QSize | None = None,
    ) -> None:
        """`size` is for buttons that are not 28 × 28 (those of an answer are 26 × 24)."""
        self._size = size or QSize(28, 28)
        super().__init__(6.0 if self._size.width() >= 28 else 5.0, parent)
        self.icon_name = icon_name
        self.setCheckable(checkable)
        self.setAccessibleName(accessible_name)
        self.setToolTip(accessible_name)

    def set_icon_name(self, icon_name: str) -> None:
        """Changes the icon (Copy becomes a check mark)."""
        self.icon_name = icon_name
        self.update()

    def sizeHint(self) -> QSize:
        return px_size(self._size)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        rect = area_of(self)
        on = self.isDown() or self.isChecked()
        if on or (self.underMouse() and self.isEnabled()):
            # fill1 is too close to the sidebar's grey.
            fill = color("fill2")
            if not on:
                fill.setAlphaF(0.7)
            draw_box(painter, rect, self._radius_px, fill)
        ink = color("text3" if not self.isEnabled() else "text" if on else "text2")
        icon = icon_pixmap(self.icon_name, ink, _DRAWING_PX, ratio_of(self))
        painter.drawPixmap(
            QPointF((width_of(self) - _DRAWING_PX) // 2, (height_of(self) - _DRAWING_PX) // 2), icon
        )
