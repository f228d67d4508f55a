"""EditingBar: above the composer while it holds a message that was sent before. Says so, and cancels."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Signal
from PySide6.QtGui import QAccessible, QAccessibleEvent, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from app.chat.composer import strings
from app.chat.composer.composer import WIDTH_PX
from app.controls.buttons.button import Button
from app.controls.shapes import draw_box
from app.controls.text_label import TextLabel
from app.theme.icons import icon_pixmap
from app.theme.measures import set_fixed_height, set_margins, set_maximum_width
from app.theme.theme import Theme
from app.theme.zoom import painter_on, ratio_of, width_of

_HEIGHT_PX = 36
_BOX_PX = 32


class EditingBar(QWidget):
    """Hidden until `show_text()`."""

    cancel_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._label = TextLabel(theme, "", 12, 16, "text")
        self.cancel_button = Button(theme, strings.CANCEL, "link", True)
        self.cancel_button.clicked.connect(self.cancel_requested)
        row = QHBoxLayout(self)
        set_margins(row, 38, 0, 6, _HEIGHT_PX - _BOX_PX)
        row.addWidget(self._label, 1)
        row.addWidget(self.cancel_button)
        set_fixed_height(self, _HEIGHT_PX)
        set_maximum_width(self, WIDTH_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)
        self.hide()

    @property
    def text(self) -> str:
        """What it says."""
        return self._label.text()

    def show_text(self, text: str) -> None:
        """Say what sending will do."""
        self._label.setText(text)
        self.setAccessibleName(text)
        self.show()
        QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.Alert))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        box = QRectF(0, 0, width_of(self), _BOX_PX)
        draw_box(painter, box, 9, self._theme.color("accent_tint"))
        icon = icon_pixmap("edit", self._theme.color("accent"), 14, ratio_of(self))
        painter.drawPixmap(QPointF(14, 9), icon)
