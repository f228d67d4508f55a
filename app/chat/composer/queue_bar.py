"""QueueBar: the messages that wait to be sent, above the composer. Sends the next, takes back the last."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from app.chat.composer import strings
from app.chat.composer.composer import WIDTH_PX
from app.controls.buttons.button import Button
from app.controls.shapes import draw_box
from app.controls.text_label import TextLabel
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.measures import set_fixed_height, set_margins, set_maximum_width
from app.theme.theme import Theme
from app.theme.zoom import design_px, painter_on, ratio_of, width_of
from core.events import Message

_HEIGHT_PX = 36
_BOX_PX = 32


class QueueBar(QWidget):
    """Hidden while nothing waits."""

    remove_requested = Signal()  # the one that came last
    send_requested = Signal()  # the next one, now

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._text = ""
        self._label = TextLabel(theme, "", 12, 16, "text")
        self._label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.remove_button = Button(theme, strings.REMOVE, "link", True)
        self.remove_button.clicked.connect(self.remove_requested)
        self.send_button = Button(theme, strings.SEND_NOW, "link", True)
        self.send_button.clicked.connect(self.send_requested)
        row = QHBoxLayout(self)
        set_margins(row, 38, 0, 6, _HEIGHT_PX - _BOX_PX)
        row.addWidget(self._label, 1)
        row.addWidget(self.send_button)
        row.addWidget(self.remove_button)
        set_fixed_height(self, _HEIGHT_PX)
        set_maximum_width(self, WIDTH_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)
        theme.zoomed.connect(self._elide)
        self.hide()

    @property
    def text(self) -> str:
        """What it says, in full."""
        return self._text

    def show_messages(self, messages: Sequence[Message], held: bool = False) -> None:
        """These wait, the first to be sent first; `held`: an answer broke off, a person has to send them."""
        texts = [_short(message) for message in messages]
        self._text = (strings.held(texts) if held else strings.queued(texts)) if texts else ""
        self.send_button.setVisible(held)
        self._elide()
        self.setAccessibleName(self._text)
        self.setVisible(bool(messages))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        box = QRectF(0, 0, width_of(self), _BOX_PX)
        draw_box(painter, box, 9, self._theme.color("fill1"))
        icon = icon_pixmap("send", self._theme.color("text2"), 14, ratio_of(self))
        painter.drawPixmap(QPointF(14, 9), icon)

    def _elide(self) -> None:
        metrics = QFontMetricsF(ui_font(12))
        room = max(1.0, design_px(self._label.width()))
        self._label.setText(metrics.elidedText(self._text, Qt.TextElideMode.ElideRight, room))


def _short(message: Message) -> str:
    words = " ".join(message.content.split())
    return words or ", ".join(attachment.name for attachment in message.attachments)
