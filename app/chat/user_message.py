"""UserMessage: what the person wrote, as a bubble at the right, with its attachments above.

The copy button appears left of the bubble when the mouse is there or the keyboard reaches it.
"""

from __future__ import annotations

import math

from PySide6.QtCore import QEvent, QRectF, Qt, Signal
from PySide6.QtGui import QEnterEvent, QFontMetricsF, QGuiApplication, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QWidget

from app.chat import action_button, strings
from app.chat.action_button import ActionButton
from app.chat.piece import plain_piece
from app.chat.text_canvas import MARGIN_PX, TextCanvas
from app.chat.text_style import answer_style
from app.controls.shapes import draw_box, draw_text
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.theme import Theme
from core.events import Attachment, Message

_MAX_WIDTH_PX = 560
_PAD_X_PX = 14
_PAD_Y_PX = 9
_RADIUS_PX = 14
_GAP_PX = 6
_COPY_GAP_PX = 8
_CHIP_PX = 48


class UserMessage(QWidget):
    """Stands `OUTDENT_PX` out of the reading column on both sides, like an answer."""

    OUTDENT_PX = MARGIN_PX
    selection_started = Signal(object)  # self

    def __init__(self, theme: Theme, message: Message, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._message = message
        self.body = TextCanvas(theme, answer_style(14.5, 21), self)
        self.body.setAccessibleName(strings.MESSAGE_NAME)
        self.body.setAccessibleDescription(message.content)
        self.body.set_pieces([plain_piece(message.content, 0, len(message.content))])
        self.body.selection_started.connect(self._selection_started)
        self.body.setVisible(bool(message.content))
        self._copy = ActionButton(theme, "copy", strings.COPY_MESSAGE, self)
        self._copy.set_revealed(False)
        self._copy.clicked.connect(self._copy_text)
        self._copy.setVisible(bool(message.content))
        theme.changed.connect(self.update)

    @property
    def is_ready(self) -> bool:
        """A message is always all there."""
        return True

    def ready_some(self) -> bool:
        """Nothing to do: see `Answer`."""
        return True

    @property
    def copy_button(self) -> ActionButton:
        """The button left of the bubble."""
        return self._copy

    def height_for(self, width: int) -> int:
        """The height when the reading column is `width` wide."""
        height = len(self._message.attachments) * (_CHIP_PX + _GAP_PX)
        if not self._message.content:
            return height - _GAP_PX
        return height + self._text_height(width) + 2 * _PAD_Y_PX

    def resizeEvent(self, event: QResizeEvent) -> None:
        bubble = self._bubble()
        text_width = round(bubble.width()) - 2 * _PAD_X_PX
        left = round(bubble.left()) + _PAD_X_PX - MARGIN_PX
        height = self.body.height_for(self._room(self._column))
        self.body.setGeometry(left, round(bubble.top()) + _PAD_Y_PX, text_width + 2 * MARGIN_PX, height)
        size = action_button.SIZE
        self._copy.setGeometry(
            round(bubble.left()) - _COPY_GAP_PX - size.width(),
            round(bubble.center().y() - size.height() / 2),
            size.width(),
            size.height(),
        )

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        top = 0.0
        for attachment in self._message.attachments:
            self._paint_chip(painter, attachment, top)
            top += _CHIP_PX + _GAP_PX
        if self._message.content:
            draw_box(painter, self._bubble(), _RADIUS_PX, self._theme.color("fill1"))

    @property
    def _column(self) -> int:
        return self.width() - 2 * self.OUTDENT_PX

    def _room(self, column: int) -> int:
        return min(_MAX_WIDTH_PX, column - 40) - 2 * _PAD_X_PX

    def _text_height(self, column: int) -> int:
        return self.body.height_for(self._room(column))

    def _bubble(self) -> QRectF:
        """As wide as the longest line."""
        height = self._text_height(self._column) + 2 * _PAD_Y_PX
        widest = max((line.right for box in self.body.boxes for line in box.layout.lines), default=0.0)
        width = math.ceil(widest) + 2 * _PAD_X_PX
        top = len(self._message.attachments) * (_CHIP_PX + _GAP_PX)
        return QRectF(self.OUTDENT_PX + self._column - width, top, width, height)

    def _paint_chip(self, painter: QPainter, attachment: Attachment, top: float) -> None:
        color = self._theme.color
        name_font, note_font = ui_font(12.5, 500), ui_font(11, tabular=True)
        note = strings.attachment_size(attachment.tokens, len(attachment.text))
        widest = max(
            QFontMetricsF(name_font).horizontalAdvance(attachment.name),
            QFontMetricsF(note_font).horizontalAdvance(note),
        )
        # frame 1, padding 9, icon 28, gap 10, text, padding 12, frame 1
        width = min(float(self._column), math.ceil(widest) + 61)
        chip = QRectF(self.OUTDENT_PX + self._column - width, top, width, _CHIP_PX)
        draw_box(painter, chip, 10, color("raised"), color("hair"))
        tile = QRectF(chip.left() + 10, top + 8, 28, 32)
        draw_box(painter, tile, 5, color("fill1"))
        icon = icon_pixmap("doc", color("text2"), 16, self.devicePixelRatioF())
        painter.drawPixmap(round(tile.left() + 6), round(tile.top() + 8), icon)
        left = tile.right() + 10
        room = chip.right() - 13 - left
        align = Qt.AlignmentFlag.AlignLeft
        draw_text(painter, QRectF(left, top + 8, room, 16), attachment.name, name_font, color("text"), align)
        draw_text(painter, QRectF(left, top + 24, room, 15), note, note_font, color("text2"), align)

    def _copy_text(self) -> None:
        QGuiApplication.clipboard().setText(self._message.content)
        self._copy.show_done()

    def _selection_started(self) -> None:
        self.selection_started.emit(self)

    def enterEvent(self, event: QEnterEvent) -> None:
        self._copy.set_revealed(True)

    def leaveEvent(self, event: QEvent) -> None:
        self._copy.set_revealed(False)
