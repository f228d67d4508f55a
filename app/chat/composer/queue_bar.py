"""QueueBar: above the composer while messages wait for the answer under way to end. Takes them back."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from app.chat.composer import strings
from app.chat.composer.composer import WIDTH_PX
from app.controls.buttons.button import Button
from app.controls.shapes import draw_box
from app.controls.text_label import TextLabel
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.theme import Theme
from core.events import Message

_HEIGHT_PX = 36
_BOX_PX = 32


class QueueBar(QWidget):
    """Hidden while nothing waits."""

    remove_requested = Signal()  # the one that came last

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._text = ""
        self._label = TextLabel(theme, "", 12, 16, "text")
        self._label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.remove_button = Button(theme, strings.REMOVE, "link", True)
        self.remove_button.clicked.connect(self.remove_requested)
        row = QHBoxLayout(self)
        row.setContentsMargins(38, 0, 6, _HEIGHT_PX - _BOX_PX)
        row.addWidget(self._label, 1)
        row.addWidget(self.remove_button)
        self.setFixedHeight(_HEIGHT_PX)
        self.setMaximumWidth(WIDTH_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)
        self.hide()

    @property
    def text(self) -> str:
        """What it says, in full."""
        return self._text

    def show_messages(self, messages: Sequence[Message]) -> None:
        """These wait, the first to be sent first."""
        self._text = strings.queued([_short(message) for message in messages]) if messages else ""
        self._elide()
        self.setAccessibleName(self._text)
        self.setVisible(bool(messages))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        box = QRectF(0, 0, self.width(), _BOX_PX)
        draw_box(painter, box, 9, self._theme.color("fill1"))
        icon = icon_pixmap("send", self._theme.color("text2"), 14, self.devicePixelRatioF())
        painter.drawPixmap(QPointF(14, 9), icon)

    def _elide(self) -> None:
        metrics = QFontMetricsF(ui_font(12))
        room = max(1, self._label.width())
        self._label.setText(metrics.elidedText(self._text, Qt.TextElideMode.ElideRight, room))


def _short(message: Message) -> str:
    words = " ".join(message.content.split())
    return words or ", ".join(attachment.name for attachment in message.attachments)
