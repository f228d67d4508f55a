"""VersionSwitch: which version of an answer is shown, ‹ 2/3 ›, and the way to the others."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QKeyEvent, QMouseEvent, QPaintEvent
from PySide6.QtWidgets import QWidget

from app.chat.answer import strings
from app.controls.focus_ring import FocusRing
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.theme import Theme
from app.theme.zoom import area_of, design_point, painter_on, px_size, ratio_of, width_of

_HEIGHT_PX = 24
_ARROW_PX = 20
_ICON_PX = 16
_SIZE_PX = 11


class VersionSwitch(QWidget):
    """Hidden while there is one version only. ← and → go from one to the next; so do clicks."""

    version_requested = Signal(int)  # the place of another version, from 0

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._place, self._count = 0, 1
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._ring = FocusRing(self, theme, 5.0)
        theme.changed.connect(self.update)
        self.hide()

    @property
    def text(self) -> str:
        """What stands between the arrows."""
        return f"{self._place + 1}/{self._count}"

    def show_version(self, place: int, count: int) -> None:
        """The one at `place` of `count` is shown."""
        self._place, self._count = place, count
        words = strings.VERSION.format(place=place + 1, count=count)
        self.setAccessibleName(words)
        self.setToolTip(f"{words}. {strings.VERSION_KEYS}")
        self.setVisible(count > 1)
        self.updateGeometry()
        self.update()

    def step(self, by: int) -> None:
        """Ask for the version before or after, if there is one."""
        place = self._place + by
        if self.isEnabled() and 0 <= place < self._count:
            self.version_requested.emit(place)

    def sizeHint(self) -> QSize:
        words_px = QFontMetricsF(ui_font(_SIZE_PX, tabular=True)).horizontalAdvance(self.text)
        return px_size(QSize(round(words_px) + 2 * _ARROW_PX, _HEIGHT_PX))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            self.step(-1 if event.key() == Qt.Key.Key_Left else 1)
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.step(-1 if design_point(event.position()).x() < width_of(self) / 2 else 1)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        for icon, left, is_way in (
            ("left", 0, self._place > 0),
            ("right", width_of(self) - _ARROW_PX, self._place + 1 < self._count),
        ):
            ink = self._theme.color("text2" if is_way and self.isEnabled() else "text3")
            pixmap = icon_pixmap(icon, ink, _ICON_PX, ratio_of(self))
            painter.drawPixmap(
                QPointF(left + (_ARROW_PX - _ICON_PX) // 2, (_HEIGHT_PX - _ICON_PX) // 2), pixmap
            )
        painter.setFont(ui_font(_SIZE_PX, tabular=True))
        painter.setPen(self._theme.color("text2"))
        painter.drawText(area_of(self), Qt.AlignmentFlag.AlignCenter, self.text)
        painter.end()
