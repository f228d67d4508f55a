"""UserMessage: a message of the person as a bubble at the right, with its attachments above it.

More than three attachments are folded into one row. On hover or focus, Copy and Edit appear left of the
bubble.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QEnterEvent,
    QFontMetricsF,
    QGuiApplication,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QWidget

from app.chat import reading_map, strings
from app.chat.attachment_chip import full_words, note_words
from app.chat.entry import QuestionEntry
from app.chat.intents import EditMessage, Intent, OpenAttachment
from app.chat.reading_map import MapCell, draw_map
from app.controls.buttons import Button, PaintedButton
from app.controls.shapes import draw_box, draw_text, in_own_direction
from app.richtext.canvas_menu import ActionButton
from app.richtext.markdown.markdown import pieces_of
from app.richtext.text_canvas import MARGIN_PX, TextCanvas
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.theme import color, theme
from app.theme.zoom import area_of, painter_on, px, px_size, ratio_of, width_of
from core.events import Attachment, Passage

HEIGHT_PX = 48
_CHIP_RADIUS_PX = 10
_EYE_PX = 16
_MAP_PX, _MAP_HEIGHT_PX = 180, 18
# Frame 1, padding 9, icon 28, gap 10; gap 18 and padding 12 at the other side.
_BEFORE_PX, _AFTER_PX = 48, 13
_CHIP_GAP_PX = 18


class MessageChip(PaintedButton):
    """An attachment of a sent message: a click shows it in the Document tab.

    Shows an eye, or the reading map once it is known which passages were read.
    """

    def __init__(self, attachment: Attachment, parent: QWidget | None = None) -> None:
        super().__init__(_CHIP_RADIUS_PX, parent)
        self._attachment = attachment
        self._passages: tuple[Passage, ...] = ()
        self._cells: list[MapCell] = []
        self.setText(attachment.name)
        self.setAccessibleName(strings.OPEN_DOCUMENT.format(name=attachment.name))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self._describe()

    @property
    def note(self) -> str:
        """The second line: the size, and the percentage that was read."""
        size = note_words(self._attachment)
        tokens = sum(passage.end - passage.start for passage in self._passages)
        if not tokens:
            return size
        kept = sum(passage.end - passage.start for passage in self._passages if passage.kept)
        return strings.READ_PERCENT.format(size=size, percent=round(100 * kept / tokens))

    def show_passages(self, passages: tuple[Passage, ...]) -> None:
        """Show which passages were read. Empty: all, or unknown."""
        self._passages = passages
        self._cells = []
        self._describe()
        self.update()

    def sizeHint(self) -> QSize:
        words = max(
            QFontMetricsF(ui_font(12.5, 500)).horizontalAdvance(self.text()),
            QFontMetricsF(ui_font(11, tabular=True)).horizontalAdvance(self.note),
        )
        right = _MAP_PX if self._passages else _EYE_PX
        return px_size(QSize(math.ceil(_BEFORE_PX + words + _CHIP_GAP_PX + right + _AFTER_PX), HEIGHT_PX))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        lit = self.isDown() or self.underMouse()
        box = area_of(self)
        fill, frame = color("fill1" if lit else "raised"), color("hair2" if lit else "hair")
        draw_box(painter, box, _CHIP_RADIUS_PX, fill, frame)
        tile = QRectF(10, 8, 28, 32)
        draw_box(painter, tile, 5, color("fill2" if lit else "fill1"))
        icon = icon_pixmap("doc", color("text2"), 16, ratio_of(self))
        painter.drawPixmap(QPointF(tile.left() + 6, tile.top() + 8), icon)
        right = self._paint_right(painter)
        available = right - _BEFORE_PX
        align = Qt.AlignmentFlag.AlignLeft
        name = QRectF(_BEFORE_PX, 8, available, 16)
        draw_text(painter, name, self.text(), ui_font(12.5, 500), color("text"), align)
        note = QRectF(_BEFORE_PX, 24, available, 15)
        draw_text(painter, note, self.note, ui_font(11, tabular=True), color("text2"), align)

    def _paint_right(self, painter: QPainter) -> float:
        """Paint the map or the eye. Returns the right end of the text in design pixels."""
        end = width_of(self) - _AFTER_PX
        if not self._passages:
            eye = icon_pixmap("eye", color("text3"), _EYE_PX, ratio_of(self))
            painter.drawPixmap(QPointF(end - _EYE_PX, (HEIGHT_PX - _EYE_PX) / 2), eye)
            return end - _EYE_PX - _CHIP_GAP_PX / 2
        width = min(_MAP_PX, max(24, end - _BEFORE_PX - 120))
        pixels = round(_MAP_PX * ratio_of(self))
        if len(self._cells) != pixels:
            self._cells = reading_map.cells(self._passages, pixels)
        strip = QRectF(end - width, (HEIGHT_PX - _MAP_HEIGHT_PX) / 2, width, _MAP_HEIGHT_PX)
        draw_map(painter, strip, self._cells, radius_px=3)
        return strip.left() - _CHIP_GAP_PX / 2

    def _describe(self) -> None:
        full = full_words(self._attachment, self.note)
        self.setAccessibleDescription(full)
        missing = full.removeprefix(self.note).strip()
        name = strings.OPEN_DOCUMENT.format(name=in_own_direction(self._attachment.name))
        self.setToolTip(f"{name}\n{missing}" if missing else name)
        self.updateGeometry()


_MAX_WIDTH_PX = 560
_PAD_X_PX = 14
_PAD_Y_PX = 9
_RADIUS_PX = 14
_GAP_PX = 6
_COPY_GAP_PX = 8
_CHIP_PX = HEIGHT_PX
_MAX_UNFOLDED = 3
_FOLD_PX = 24


class UserMessage(QWidget):
    """Extends `MARGIN_PX` beyond the text column on both sides, like an answer.

    `act` gets the person's intents, `resized` is called when the height changed.
    """

    def __init__(
        self,
        entry: QuestionEntry,
        act: Callable[[Intent], object],
        resized: Callable[[], object],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._message = message = entry.message
        self._resized = resized
        self._fitted: tuple[tuple[int, float], int, int] | None = None
        self.chips = [MessageChip(attachment, self) for attachment in message.attachments]
        for index, chip in enumerate(self.chips):
            chip.show_passages(entry.passages.get(index, ()))
            # The entry's id changes when its question is answered again.
            chip.clicked.connect(lambda checked=False, at=index: act(OpenAttachment(entry.turn_id, at)))
        self._folded = len(self.chips) > _MAX_UNFOLDED
        self.fold_button = Button("", "link", True, self)
        self.fold_button.setVisible(self._folded)
        self.fold_button.clicked.connect(self._toggle_fold)
        self._show_fold()
        self.body = TextCanvas((14.5, 21), self)
        self.body.setAccessibleName(strings.MESSAGE_NAME)
        self.body.setAccessibleDescription(message.content)
        self.body.set_pieces(pieces_of(message.content))
        self.body.setVisible(bool(message.content))
        self.copy_button = ActionButton("copy", strings.COPY_MESSAGE, self)
        self.copy_button.set_revealed(False)
        self.copy_button.clicked.connect(self._copy_text)
        self.copy_button.setVisible(bool(message.content))
        self.edit_button = ActionButton("edit", strings.EDIT_MESSAGE, self)
        self.edit_button.set_revealed(False)
        self.edit_button.clicked.connect(lambda: act(EditMessage(entry.turn_id)))
        self.edit_button.setVisible(bool(message.content))

    def offer_copy_only(self) -> None:
        """Offer Copy only, for messages of API clients."""
        self.edit_button.hide()

    @property
    def is_ready(self) -> bool:
        """Always true: a message is laid out at once."""
        return True

    def prepare_step(self) -> bool:
        """Does nothing; for `WidgetPool`, which prepares answers in steps."""
        return True

    def show_passages(self, index: int, passages: tuple[Passage, ...]) -> None:
        """Show which passages of attachment `index` were read."""
        self.chips[index].show_passages(passages)
        self._place_chips()

    def height_for(self, width: int) -> int:
        """The height in screen pixels in a text column of that width."""
        height = self._chips_height
        if not self._message.content:
            return height - px(_GAP_PX)
        return height + self._text_size(width)[1] + 2 * px(_PAD_Y_PX)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._place_chips()
        bubble = self._bubble()
        text_width = round(bubble.width()) - 2 * px(_PAD_X_PX)
        left = round(bubble.left()) + px(_PAD_X_PX) - MARGIN_PX
        _, height = self._text_size(self._column)
        self.body.setGeometry(left, round(bubble.top()) + px(_PAD_Y_PX), text_width + 2 * MARGIN_PX, height)
        size = px_size(ActionButton.SIZE)
        top = round(bubble.center().y() - size.height() / 2)
        for index, button in enumerate((self.copy_button, self.edit_button)):
            left = round(bubble.left()) - px(_COPY_GAP_PX) - (index + 1) * size.width()
            button.setGeometry(left, top, size.width(), size.height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        if self._message.content:
            draw_box(painter, self._bubble(), px(_RADIUS_PX), color("fill1"))

    @property
    def _column(self) -> int:
        return self.width() - 2 * MARGIN_PX

    def _available_width(self, column: int) -> int:
        return min(px(_MAX_WIDTH_PX), column - 40) - 2 * px(_PAD_X_PX)

    def _text_size(self, column: int) -> tuple[int, int]:
        """The width of the longest line and the height, in screen pixels.

        Right-to-left lines are aligned to the right edge, so the text is laid out again at the width of the
        longest line.
        """
        key = (self._available_width(column), theme.zoom)
        if self._fitted and self._fitted[0] == key and not self.body.is_given_up:
            return self._fitted[1:]
        available = key[0]
        height = self.body.height_for(available)
        boxes = self.body.boxes
        widest = max((line.right - line.left for box in boxes for line in box.layout.lines), default=0.0)
        width = available if any(box.is_code for box in boxes) else math.ceil(widest)
        if width < available and any(line.chunk.rtl for box in boxes for line in box.layout.lines):
            width = min(available, width + 1)
            if self.body.height_for(width) != height:
                width, height = available, self.body.height_for(available)
        self._fitted = (key, width, height)
        return width, height

    def _bubble(self) -> QRectF:
        """The bubble's rectangle, as wide as the longest line."""
        text_width, text_height = self._text_size(self._column)
        width, height = text_width + 2 * px(_PAD_X_PX), text_height + 2 * px(_PAD_Y_PX)
        top = self._chips_height
        return QRectF(MARGIN_PX + self._column - width, top, width, height)

    @property
    def _fold_height(self) -> int:
        return px(_FOLD_PX) + px(_GAP_PX) if len(self.chips) > _MAX_UNFOLDED else 0

    @property
    def _chips_height(self) -> int:
        """The height of the chips and the gap below them."""
        unfolded = 0 if self._folded else len(self.chips)
        return self._fold_height + unfolded * (px(_CHIP_PX) + px(_GAP_PX))

    def _place_chips(self) -> None:
        size = self.fold_button.sizeHint()
        right = MARGIN_PX + self._column
        self.fold_button.setGeometry(right - size.width(), 0, size.width(), px(_FOLD_PX))
        for number, chip in enumerate(self.chips):
            width = min(self._column, chip.sizeHint().width())
            top = self._fold_height + number * (px(_CHIP_PX) + px(_GAP_PX))
            chip.setGeometry(right - width, top, width, px(_CHIP_PX))

    def _toggle_fold(self) -> None:
        self._folded = not self._folded
        self._show_fold()
        self._resized()
        self.resizeEvent(QResizeEvent(self.size(), self.size()))
        self.update()

    def _show_fold(self) -> None:
        form = strings.SHOW_ATTACHMENTS if self._folded else strings.HIDE_ATTACHMENTS
        self.fold_button.setText(form.format(count=len(self.chips)))
        self.fold_button.setAccessibleName(self.fold_button.text())
        for chip in self.chips:
            chip.setVisible(not self._folded)

    def _copy_text(self) -> None:
        QGuiApplication.clipboard().setText(self._message.content)
        self.copy_button.show_done()

    def enterEvent(self, event: QEnterEvent) -> None:
        self._reveal(True)

    def leaveEvent(self, event: QEvent) -> None:
        self._reveal(False)

    def _reveal(self, revealed: bool) -> None:
        for button in (self.copy_button, self.edit_button):
            button.set_revealed(revealed)
