"""Controls that are on or off: Switch and CheckBox."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QKeyEvent, QPaintEvent
from PySide6.QtWidgets import QCheckBox, QSizePolicy, QWidget

from app.controls.buttons.button import pressed_by
from app.controls.focus_ring import FocusRing
from app.controls.shapes import draw_box, draw_text
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.theme import Theme
from app.theme.zoom import height_of, painter_on, px_size, ratio_of, width_of


class Toggle(QCheckBox):
    """Base of on/off controls: a QCheckBox, painted by subclasses. `ring_px` is the ring's radius."""

    def __init__(self, theme: Theme, text: str, ring_px: float, parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self._theme = theme
        self.setAttribute(Qt.WidgetAttribute.WA_LayoutUsesWidgetRect)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._ring = FocusRing(self, theme, ring_px)

    def hitButton(self, pos: QPoint) -> bool:
        return self.rect().contains(pos)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not pressed_by(self, event):
            super().keyPressEvent(event)


_SIZE = (32, 18)
_KNOB_PX = 14
_INSET_PX = 2


class Switch(Toggle):
    """A switch; a QCheckBox for assistive technology."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, "", _SIZE[1] / 2, parent)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return px_size(QSize(*_SIZE))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        width, height = _SIZE
        rect = QRectF(0, (height_of(self) - height) / 2, width, height)
        on, enabled = self.isChecked(), self.isEnabled()
        track = self._theme.color("accent_fill" if on else "fill2")
        if on and not enabled:
            track.setAlphaF(0.45)
        frame = None if on else QColor(0, 0, 0, 20)
        draw_box(painter, rect, height / 2, track, frame)
        left = rect.left() + (width - _KNOB_PX - _INSET_PX if on else _INSET_PX)
        knob = QRectF(left, rect.top() + _INSET_PX, _KNOB_PX, _KNOB_PX)
        draw_box(painter, knob.translated(0, 0.6).adjusted(-0.4, -0.4, 0.4, 0.4), 8, QColor(0, 0, 0, 40))
        knob_color = QColor(Qt.GlobalColor.white)
        if not enabled:
            knob_color = self._theme.color("fill1" if not self._theme.is_dark else "text3")
        draw_box(painter, knob, _KNOB_PX / 2, knob_color)


_BOX_PX = 16
_TICK_PX = 12
_GAP_PX = 9
_HEIGHT_PX = 24


class CheckBox(Toggle):
    """A check box; `note` is shown small at the right end."""

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
