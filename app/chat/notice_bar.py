"""NoticeBar: above the composer, what was done as it was asked, and one thing that can be done with it.

Nothing is wrong: what is wrong is the banner's. It goes by its cross, or by itself after a while in
which neither the mouse nor the keyboard was at it.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPointF, QRectF, Qt, QTimer
from PySide6.QtGui import QAccessible, QAccessibleEvent, QFontMetricsF, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QHBoxLayout, QSizePolicy, QWidget

from app.chat import strings
from app.controls.buttons.button import Button
from app.controls.buttons.icon_button import IconButton
from app.controls.shapes import draw_box, in_own_direction
from app.controls.text_label import TextLabel
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.measures import set_fixed_height, set_margins, set_maximum_width, set_spacing
from app.theme.theme import Theme
from app.theme.zoom import design_px, painter_on, px, ratio_of, width_of

SHOWN_MS = 20_000
WIDTH_PX = 752
_HEIGHT_PX = 36
_BOX_PX = 32


class NoticeBar(QWidget):
    """Hidden until `show_notice()`. One at a time, the newest."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._text = ""
        self._act: Callable[[], object] | None = None
        self._label = TextLabel(theme, "", 12, 16, "text")
        self._label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.action_button = Button(theme, "", "link", True)
        self.close_button = IconButton(theme, "x", strings.CLOSE_NOTICE)
        row = QHBoxLayout(self)
        set_margins(row, 38, 0, 4, _HEIGHT_PX - _BOX_PX)
        set_spacing(row, 4)
        row.addWidget(self._label, 1)
        row.addWidget(self.action_button)
        row.addWidget(self.close_button)
        set_fixed_height(self, _HEIGHT_PX)
        set_maximum_width(self, WIDTH_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._timer = QTimer(self, interval=SHOWN_MS, singleShot=True)
        self._timer.timeout.connect(self._time_is_over)
        self.action_button.clicked.connect(self._acted)
        self.close_button.clicked.connect(self.clear)
        theme.changed.connect(self.update)
        theme.zoomed.connect(self._elide)
        self.hide()

    @property
    def text(self) -> str:
        """What it says, in full; empty while hidden."""
        return self._text

    def set_time_ms(self, time_ms: int) -> None:
        """How long it stays from the next time on."""
        self._timer.setInterval(time_ms)

    def show_notice(self, text: str, action: str = "", act: Callable[[], object] | None = None) -> None:
        """Say `text`; the button `action` does `act`."""
        self._text, self._act = text, act
        self.action_button.setText(action)
        self.action_button.setAccessibleName(action)
        self.action_button.setVisible(bool(action))
        self.action_button.updateGeometry()
        self._label.setToolTip(in_own_direction(text))
        self.setAccessibleName(text)
        self.show()
        self._elide()
        self._timer.start()
        QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.Alert))

    def clear(self) -> None:
        """Nothing to say."""
        self._timer.stop()
        self._text, self._act = "", None
        self.hide()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        draw_box(painter, QRectF(0, 0, width_of(self), _BOX_PX), 9, self._theme.color("fill1"))
        icon = icon_pixmap("check", self._theme.color("text2"), 14, ratio_of(self))
        painter.drawPixmap(QPointF(14, 9), icon)

    def _acted(self) -> None:
        if self._act:
            self._act()

    def _time_is_over(self) -> None:
        focus = QApplication.focusWidget()
        if self.underMouse() or (focus is not None and self.isAncestorOf(focus)):
            self._timer.start()
        else:
            self.clear()

    def _elide(self) -> None:
        button = self.action_button
        used = button.sizeHint().width() + 4 if button.text() else 0
        room = design_px(max(1, self.width() - px(42 + 4) - used - self.close_button.sizeHint().width()))
        metrics = QFontMetricsF(ui_font(12))
        self._label.setText(metrics.elidedText(self._text, Qt.TextElideMode.ElideMiddle, room))
