"""UserMessage: a message of the person as a bubble at the right, with its attachments and images above it.

More than three attachments are folded into one row. On hover or focus, Copy and Edit appear left of the
bubble, or of the images of a message without text.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QEnterEvent,
    QGuiApplication,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QMenu, QSizePolicy, QWidget

from app.chat import reading_map, strings
from app.chat.attachment_chip import Chip, full_words, note_words
from app.chat.entry import QuestionEntry, image_boxes, images_height
from app.chat.image_files import ImageFiles
from app.chat.image_tile import ImageTile
from app.chat.intents import DeleteMessage, EditMessage, Intent, OpenAttachment, OpenImage, OpenPassage
from app.chat.reading_map import MapCell, draw_map
from app.controls.buttons import Button, on_click
from app.controls.shapes import draw_box, in_own_direction
from app.richtext.canvas_menu import ActionButton, add_command
from app.richtext.markdown.markdown import pieces_of
from app.richtext.origin_paint import source_color
from app.richtext.text_canvas import MARGIN_PX, TextCanvas
from app.session.reading import totals_of_passages
from app.theme.icons import icon_pixmap
from app.theme.theme import color, theme
from app.theme.zoom import area_of, design_px, painter_on, place, px, px_size, ratio_of, width_of
from core.events import Attachment, Passage

_CHIP_PX = 48
_EYE_PX = 16
_MAP = QSize(180, 18)
_LEAST_MAP_PX = 24
_COLOR_PX, _COLOR_LEFT_PX, _COLOR_BOTTOM_PX = 2, 10, 4  # the line in a document's color


class MessageChip(Chip):
    """An attachment of a sent message: a click shows it in the Document tab; on its map, the passage there.

    Shows an eye, or the reading map once it is known which passages were read.
    """

    def __init__(self, attachment: Attachment, parent: QWidget | None = None) -> None:
        self.map = _ReadMap()
        self._at: Passage | None = None
        self._color = ""
        super().__init__(attachment.name, self.map, _CHIP_PX, parent)
        self._attachment = attachment
        self.setAccessibleName(strings.OPEN_DOCUMENT.format(name=attachment.name))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.show_passages(())

    def show_color(self, name: str) -> None:
        """Paint a line in that color at the chip's lower edge; empty: none."""
        self._color = name
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._color:
            painter = painter_on(self)
            area = area_of(self)
            left, width = _COLOR_LEFT_PX, area.width() - 2 * _COLOR_LEFT_PX
            rule = QRectF(left, area.bottom() - _COLOR_BOTTOM_PX, width, _COLOR_PX)
            painter.fillRect(rule, color(self._color))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._at = self.map.passage_at(self.map.mapFrom(self, event.position()))
        super().mouseReleaseEvent(event)
        self._at = None

    @property
    def clicked_passage(self) -> Passage | None:
        """During a click on the map, the passage there."""
        return self._at

    def show_passages(self, passages: tuple[Passage, ...]) -> None:
        """Show which passages were read, and their share of the tokens. Empty: all, or unknown."""
        self.map.show_passages(passages)
        note = note_words(self._attachment)
        if passages:
            percent = totals_of_passages(passages).known_percent
            note = strings.READ_PERCENT.format(size=note, percent=percent)
        self.set_note(note)
        full = full_words(self._attachment, note)
        self.setAccessibleDescription(full)
        name = strings.OPEN_DOCUMENT.format(name=in_own_direction(self._attachment.name))
        self.setToolTip(f"{name}\n{full.removeprefix(note).strip()}".strip())


class _ReadMap(QWidget):
    """The read passages of a document as a strip; an eye without any."""

    def __init__(self) -> None:
        super().__init__()
        self._passages: tuple[Passage, ...] = ()
        self.cells: list[MapCell] = []
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)

    def show_passages(self, passages: tuple[Passage, ...]) -> None:
        self._passages, self.cells = passages, []
        self.updateGeometry()
        self.update()

    def passage_at(self, point: QPointF) -> Passage | None:
        """The passage at a point of the map; None outside it, or without a map."""
        if not (self._passages and QRectF(self.rect()).contains(point)):
            return None
        first, last = self._passages[0].start, self._passages[-1].end
        token = first + point.x() / self.width() * (last - first)
        return next((each for each in reversed(self._passages) if each.start <= token), None)

    def sizeHint(self) -> QSize:
        return px_size(_MAP if self._passages else QSize(_EYE_PX, _EYE_PX))

    def minimumSizeHint(self) -> QSize:
        return px_size(QSize(_LEAST_MAP_PX, _MAP.height())) if self._passages else self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        if not self._passages:
            painter.drawPixmap(0, 0, icon_pixmap("eye", color("text3"), _EYE_PX, ratio_of(self)))
            return
        pixels = round(width_of(self) * ratio_of(self))
        if len(self.cells) != pixels:
            self.cells = reading_map.cells(self._passages, pixels)
        draw_map(painter, area_of(self), self.cells, radius_px=3)


_MAX_WIDTH_PX = 560
_PAD_X_PX = 14
_PAD_Y_PX = 9
_RADIUS_PX = 14
_GAP_PX = 6
_COPY_GAP_PX = 8
_MAX_UNFOLDED = 3
_FOLD_PX = 24


class _MessageBody(TextCanvas):
    """The text of a message; `delete` is called by the menu, Delete and Backspace."""

    def __init__(self, delete: Callable[[], object], parent: QWidget) -> None:
        super().__init__((14.5, 21), parent)
        self.can_delete = True
        self._delete = delete

    def add_to_menu(self, menu: QMenu, at: QPointF) -> None:
        if self.can_delete:
            menu.addSeparator()
            add_command(menu, strings.MENU_DELETE, self._delete)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self.can_delete and event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self._delete()
        else:
            super().keyPressEvent(event)


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
        *,
        images: ImageFiles | None = None,
    ) -> None:
        super().__init__(parent)
        self._message = message = entry.message
        self._entry, self._act = entry, act
        self._resized = resized
        self._fitted: tuple[tuple[int, float], int, int] | None = None
        self.chips = [MessageChip(attachment, self) for attachment in message.attachments]
        for index, chip in enumerate(self.chips):
            chip.show_passages(entry.passages.get(index, ()))
            chip.clicked.connect(partial(self._open, index))
        self.tiles = [
            ImageTile(image, number, len(message.images), images, partial(self._open_image, number - 1), self)
            for number, image in enumerate(message.images, start=1)
        ]
        self._folded = len(self.chips) > _MAX_UNFOLDED
        self.fold_button = Button("", "link", True, self)
        self.fold_button.setVisible(self._folded)
        self._show_fold()

        def delete() -> None:
            act(DeleteMessage(entry.turn_id))

        self.body = _MessageBody(delete, self)
        self.body.setAccessibleName(strings.MESSAGE_NAME)
        self.body.setAccessibleDescription(message.content)
        self.body.set_pieces(pieces_of(entry.shown_text))
        self.more_button = Button("", "link", True, self)
        self._show_more()
        self.body.setVisible(bool(message.content))
        self.copy_button = ActionButton("copy", strings.COPY_MESSAGE, self)
        self.copy_button.set_revealed(False)
        self.copy_button.setVisible(bool(message.content))
        self.edit_button = ActionButton("edit", strings.EDIT_MESSAGE, self)
        self.edit_button.set_revealed(False)
        self.delete_button = ActionButton("trash", strings.DELETE_MESSAGE, self)
        self.delete_button.set_revealed(False)
        on_click(
            (self.fold_button, self._toggle_fold),
            (self.more_button, self._toggle_more),
            (self.copy_button, self._copy_text),
            (self.edit_button, lambda: act(EditMessage(entry.turn_id))),
            (self.delete_button, delete),
        )
        self.edit_button.setVisible(bool(message.content or message.images))

    def offer_copy_only(self) -> None:
        """Offer Copy only, for messages of API clients and of a race; their images open."""
        self.edit_button.hide()
        self.delete_button.hide()
        self.body.can_delete = False

    @property
    def is_ready(self) -> bool:
        """Always true: a message is laid out at once."""
        return True

    def prepare_step(self) -> bool:
        """Does nothing; for `WidgetPool`, which prepares answers in steps."""
        return True

    def show_colors(self, first: int | None) -> None:
        """Mark the chips in their documents' colors; `first` is the first one's number, None: no marks."""
        for index, chip in enumerate(self.chips):
            chip.show_color("" if first is None else source_color(first + index))

    def show_passages(self, index: int, passages: tuple[Passage, ...]) -> None:
        """Show which passages of attachment `index` were read."""
        self.chips[index].show_passages(passages)
        self._place_chips()

    def show_named(self, found: set[int], current: int | None) -> None:
        """Mark the images, by their numbers, whose names have the searched words."""
        for number, tile in enumerate(self.tiles):
            tile.show_found(number in found, number == current)

    def height_for(self, width: int) -> int:
        """The height in screen pixels in a text column of that width."""
        height = self._images_bottom(width)
        if not self._message.content:
            return height - px(_GAP_PX)
        return height + self._text_size(width)[1] + 2 * px(_PAD_Y_PX) + self._more_height

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._place_chips()
        self._place_tiles()
        bubble = self._bubble()
        text_width = round(bubble.width()) - 2 * px(_PAD_X_PX)
        left = round(bubble.left()) + px(_PAD_X_PX) - MARGIN_PX
        _, height = self._text_size(self._column)
        self.body.setGeometry(left, round(bubble.top()) + px(_PAD_Y_PX), text_width + 2 * MARGIN_PX, height)
        more = self.more_button.sizeHint()
        self.more_button.setGeometry(
            MARGIN_PX + self._column - more.width(),
            round(bubble.bottom()) + px(_GAP_PX),
            more.width(),
            px(_FOLD_PX),
        )
        size = px_size(ActionButton.SIZE)
        if not self._message.content and self.tiles:
            bubble = QRectF(self.tiles[0].geometry().united(self.tiles[-1].geometry()))
        top = round(bubble.center().y() - size.height() / 2)
        for index, button in enumerate(self._buttons):
            left = round(bubble.left()) - px(_COPY_GAP_PX) - (index + 1) * size.width()
            button.setGeometry(left, top, size.width(), size.height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        if self._message.content:
            draw_box(painter, self._bubble(), px(_RADIUS_PX), color("fill1"))

    @property
    def _buttons(self) -> tuple[ActionButton, ...]:
        """From the right to the left."""
        return (self.copy_button, self.edit_button, self.delete_button)

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
        lines = [(box.text_left, line) for box in boxes for line in box.layout.lines]
        widest = max((indent + line.right - line.left for indent, line in lines), default=0.0)
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
        top = self._images_bottom(self._column)
        return QRectF(MARGIN_PX + self._column - width, top, width, height)

    def _images_bottom(self, column: int) -> int:
        """The height of chips and images in a column of that width, and the gaps below them."""
        return self._chips_height + round(px(images_height(self._message.images, design_px(column))))

    def _place_tiles(self) -> None:
        boxes = image_boxes(self._message.images, design_px(self._column))
        for tile, (left, top, width, height) in zip(self.tiles, boxes):
            above = design_px(self._chips_height)
            place(tile, left + design_px(MARGIN_PX), top + above, width, height)

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

    @property
    def _more_height(self) -> int:
        return 0 if self.more_button.isHidden() else px(_GAP_PX) + px(_FOLD_PX)

    def _show_more(self) -> None:
        entry, whole = self._entry, len(self._message.content)
        left = whole - len(entry.shown_text)
        more = strings.SHOW_MORE.format(count=f"{whole:,}")
        less = strings.SHOW_LESS_OF_MANY.format(count=f"{left:,}") if left else strings.SHOW_LESS
        self.more_button.setText(less if entry.unfolded else more)
        self.more_button.setAccessibleName(self.more_button.text())
        self.more_button.setVisible(entry.unfolded or bool(left))

    def _toggle_more(self) -> None:
        self._entry.unfolded = not self._entry.unfolded
        self._fitted = None
        self.body.set_pieces(pieces_of(self._entry.shown_text))
        self._show_more()
        self._resized()
        self.resizeEvent(QResizeEvent(self.size(), self.size()))
        self.update()

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

    def _open(self, index: int, checked: bool = False) -> None:
        # The entry's id changes when its question is answered again.
        self._act(OpenAttachment(self._entry.turn_id, index))
        if passage := self.chips[index].clicked_passage:
            self._act(OpenPassage(passage))

    def _open_image(self, index: int) -> None:
        self._act(OpenImage(self._message.images, index))

    def _copy_text(self) -> None:
        QGuiApplication.clipboard().setText(self._message.content)
        self.copy_button.show_done()

    def enterEvent(self, event: QEnterEvent) -> None:
        self._reveal(True)

    def leaveEvent(self, event: QEvent) -> None:
        self._reveal(False)

    def _reveal(self, revealed: bool) -> None:
        for button in self._buttons:
            button.set_revealed(revealed)
