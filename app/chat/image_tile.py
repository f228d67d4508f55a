"""ImageTile: an image of a sent message. A click, Space or Return opens it; it can be dragged out."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QRectF, QSizeF, Qt
from PySide6.QtGui import (
    QContextMenuEvent,
    QDrag,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractButton, QMenu, QWidget

from app.chat import strings
from app.chat.image_chip import draw_picture
from app.chat.image_files import ImageFiles
from app.controls.buttons import pressed_by
from app.controls.keys import DragStart
from app.controls.shapes import draw_box, draw_ring, in_own_direction
from app.richtext.canvas_menu import add_command, pop_up
from app.theme.fonts import ui_font
from app.theme.theme import color, theme
from app.theme.zoom import area_of, painter_on, px, ratio_of
from core.events import Image

_RADIUS_PX = 10
_FOUND_PX = 3
_WORDS_PX = 18
_DRAGGED_PX = 96


class ImageTile(QAbstractButton):
    """Image `number` of `count`, from 1. `open` is called by a click. Without `files` it is missing."""

    def __init__(
        self,
        image: Image,
        number: int,
        count: int,
        files: ImageFiles | None,
        open: Callable[[], object],
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self.image = image
        self._files = files
        self.shown: QPixmap | None = None  # at the tile's size; None until it is decoded, or missing
        self.is_missing = not (files and files.archive.is_kept(image.hash))
        self.is_found = self._is_current = False  # the searched words are in its name
        self._drag = DragStart()
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAccessibleName(strings.image_name(number, count, image.name))
        self._describe()
        self.clicked.connect(lambda: open())
        theme.changed.connect(self.update)

    def show_found(self, found: bool, current: bool) -> None:
        """Show that the searched words are in the image's name."""
        if (found, current) != (self.is_found, self._is_current):
            self.is_found, self._is_current = found, current
            self.update()

    def menu(self) -> QMenu:
        """The commands on the image. The caller deletes it."""
        menu, files = QMenu(self), self._files
        add_command(menu, strings.OPEN_IMAGE, self.click)
        if files and not self.is_missing:
            add_command(
                menu, strings.COPY_IMAGE, lambda: files.copy(self.image), QKeySequence.StandardKey.Copy
            )
            add_command(menu, strings.SAVE_IMAGE_AS, lambda: files.save_as(self.image, self))
        return menu

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        pop_up(self.menu(), event.globalPos())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy) and self._files and not self.is_missing:
            self._files.copy(self.image)
        elif not pressed_by(self, event):
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._drag.press(event)
        super().mousePressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if not self.is_missing and self._drag.begins(event):
            self.setDown(False)
            drag_out(self, self._files, self.image, self.shown)
        else:
            super().mouseMoveEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._want()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.DevicePixelRatioChange:
            self._want()
        return bool(super().event(event))

    def _want(self) -> None:
        """Have the picture decoded at this size. The last one is shown until then."""
        if self._files and not self.is_missing:
            size = (QSizeF(self.size()) * self.devicePixelRatioF()).toSize()
            self._files.picture_for(self, self.image, size, self._show)

    def _show(self, shown: QPixmap | None) -> None:
        self.shown, self.is_missing = shown, shown is None
        self._describe()
        self.update()

    def _describe(self) -> None:
        image = self.image
        says = strings.IMAGE_MISSING if self.is_missing else strings.pixels(image.width, image.height)
        self.setAccessibleDescription(says)
        self.setToolTip(in_own_direction(f"{image.name}\n{says}"))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, area = painter_on(self), area_of(self)
        if self.shown is None and not self.is_missing:
            draw_box(painter, area, _RADIUS_PX, color("fill2"), color("hair"))
        else:
            draw_picture(painter, area, self.shown, ratio_of(self), _RADIUS_PX)
        if self.is_missing and area.width() > 2 * _WORDS_PX:
            words = area.adjusted(8, area.height() / 2 + _WORDS_PX / 2, -8, 0)
            painter.setFont(ui_font(10.5))
            painter.setPen(color("text2"))
            lines = Qt.AlignmentFlag.AlignHCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(words, int(lines), strings.IMAGE_MISSING)
        if self.is_found:
            pen = QPen(color("accent" if self._is_current else "accent_mid"), _FOUND_PX)
            painter.setPen(pen)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            half = _FOUND_PX / 2
            painter.drawRoundedRect(area.adjusted(half, half, -half, -half), _RADIUS_PX, _RADIUS_PX)
        painter.end()
        if self.hasFocus():
            draw_ring(QPainter(self), QRectF(self.rect()), px(float(_RADIUS_PX)))


def drag_out(owner: QWidget, files: ImageFiles | None, image: Image, shown: QPixmap | None) -> None:
    """Drag a copy of the image's file from `owner` to another program."""
    data = files.drag_data(image) if files else None
    if data is None:
        return
    drag = QDrag(owner)
    drag.setMimeData(data)
    if shown is not None:
        side = px(_DRAGGED_PX)
        drag.setPixmap(shown.scaled(side, side, Qt.AspectRatioMode.KeepAspectRatio))
    drag.exec(Qt.DropAction.CopyAction)
