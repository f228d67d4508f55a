"""UndoBar: reports for a few seconds that a chat was deleted or archived, with Undo.

Shown above the worker's status. The time runs only while the bar is visible; after `expired` the offer has
ended.
"""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QAccessible, QAccessibleEvent, QFontMetricsF, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from app.controls.buttons import Button
from app.controls.shapes import in_own_direction
from app.controls.text_label import TextLabel
from app.panels import strings
from app.theme.fonts import ui_font
from app.theme.measures import set_fixed_height, set_margins, set_spacing
from app.theme.theme import Theme
from app.theme.zoom import design_px, painter_on, width_of

SHOWN_MS = 8_000
_HEIGHT_PX = 40


class UndoBar(QWidget):
    """Hidden until `show_done()`."""

    undo_requested = Signal()
    expired = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._text = ""
        self._label = TextLabel(theme, "", 12, 16, "text")
        self._label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.undo_button = Button(theme, strings.UNDO, "link", True)
        self.undo_button.clicked.connect(self.undo_requested)
        row = QHBoxLayout(self)
        set_margins(row, 20, 1, 6, 0)
        set_spacing(row, 4)
        row.addWidget(self._label, 1)
        row.addWidget(self.undo_button, 0, Qt.AlignmentFlag.AlignVCenter)
        set_fixed_height(self, _HEIGHT_PX)
        self._timer = QTimer(self, interval=SHOWN_MS, singleShot=True)
        self._timer.timeout.connect(self.expired)
        theme.zoomed.connect(self._elide)
        self.hide()

    @property
    def text(self) -> str:
        """The full message."""
        return self._text

    def set_time_ms(self, time_ms: int) -> None:
        """Set the display time of later messages."""
        self._timer.setInterval(time_ms)

    def show_done(self, text: str) -> None:
        """Show a message and restart the time."""
        self._text = text
        self._elide()
        self.setAccessibleName(text)
        self.show()
        self._timer.start()
        QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.Alert))

    def clear(self) -> None:
        """Hide the bar; there is nothing to undo."""
        self._timer.stop()
        self.hide()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        painter.fillRect(QRectF(0, 0, width_of(self), 1), self._theme.color("hair"))

    def _elide(self) -> None:
        room = max(1.0, width_of(self) - 34 - design_px(self.undo_button.sizeHint().width()))
        metrics = QFontMetricsF(ui_font(12))
        self._label.setText(metrics.elidedText(self._text, Qt.TextElideMode.ElideMiddle, room))
        self._label.setToolTip(in_own_direction(self._text))
