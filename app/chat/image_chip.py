"""ImageChip: an attached image in the composer, with its thumbnail and its size in the prompt.

A click, Space or Return opens it, Delete removes it. A file that cannot be used stays as a chip with the
reason, until it is removed: nothing is sent meanwhile, so that no image is left out unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from PySide6.QtCore import QRectF, QSize, QSizeF, Qt
from PySide6.QtGui import (
    QContextMenuEvent,
    QImage,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPixmap,
    QPixmapCache,
)
from PySide6.QtWidgets import QMenu, QWidget

from app.chat import strings
from app.chat.attachment_chip import RemovableChip
from app.chat.file_reader import Source
from app.controls.shapes import draw_box, in_own_direction
from app.richtext.canvas_menu import pop_up
from app.session.images import ImageSource
from app.theme.icons import icon_pixmap
from app.theme.measures import set_fixed_size
from app.theme.theme import color
from app.theme.zoom import area_of, painter_on, ratio_of
from core.documents import strings as document_strings
from core.documents.reading import shown_name
from core.errors import RequestError
from core.events import Image

_PICTURE = QSize(34, 34)
_RADIUS_PX = 5
_ICON_PX = 16


class ImageRows(NamedTuple):
    """Size of an image in the loaded model's prompt: rows, and the size to which it is scaled."""

    rows: int
    width: int
    height: int


def decoded(png: bytes) -> QImage:
    """A PNG that the process that reads images has made; null if it is none."""
    return QImage.fromData(png, "PNG")  # type: ignore[arg-type]  # PySide takes no bytes, as it declares


def picture(image: Image, archive: ImageSource | None, size: QSize | None = None) -> QPixmap | None:
    """The thumbnail, which the process that reads images has made; None if the image is missing.

    With `size`, cropped to fill that many pixels.
    """
    if archive is None or not archive.is_kept(image.hash):
        return None
    if found := made_picture(image, size):
        return found
    thumbnail = archive.thumbnail(image.hash)
    read = decoded(thumbnail) if thumbnail else QImage()
    if read.isNull():
        return None
    if size is not None:
        smooth = Qt.TransformationMode.SmoothTransformation
        part = _part(read.size(), QSizeF(size)).toAlignedRect().intersected(read.rect())
        read = read.copy(part).scaled(size, Qt.AspectRatioMode.IgnoreAspectRatio, smooth)
    found = QPixmap.fromImage(read)
    QPixmapCache.insert(_key(image, size), found)
    return found


def made_picture(image: Image, size: QSize | None) -> QPixmap | None:
    """The earlier result of `picture`, if it is still in memory."""
    found = QPixmap()
    return found if QPixmapCache.find(_key(image, size), found) else None


def _key(image: Image, size: QSize | None) -> str:
    return f"draftlight-image:{image.hash}:{(size.width(), size.height()) if size else ''}"


def _part(size: QSize, area: QSizeF) -> QRectF:
    """The middle of a picture of `size`, as large as possible in the shape of `area`."""
    scale = max(area.width() / size.width(), area.height() / size.height())
    width, height = area.width() / scale, area.height() / scale
    return QRectF((size.width() - width) / 2, (size.height() - height) / 2, width, height)


def draw_picture(
    painter: QPainter, area: QRectF, shown: QPixmap | None, ratio: float, radius_px: float
) -> None:
    """Draw as much of `shown` as fills `area`, or a warning sign if it is missing."""
    if shown is None:
        draw_box(painter, area, radius_px, color("fill2"), color("hair"))
        icon = icon_pixmap("warn", color("danger"), _ICON_PX, ratio)
        left, top = area.center().x() - _ICON_PX / 2, area.center().y() - _ICON_PX / 2
        painter.drawPixmap(QRectF(left, top, _ICON_PX, _ICON_PX), icon, QRectF(icon.rect()))
        return
    part = _part(shown.size(), area.size())
    outline = QPainterPath()
    outline.addRoundedRect(area, radius_px, radius_px)
    painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.SmoothPixmapTransform)
    painter.save()
    painter.setClipPath(outline)
    painter.fillRect(area, Qt.GlobalColor.white)
    painter.drawPixmap(area, shown, part)
    painter.restore()
    draw_box(painter, area, radius_px, None, color("hair"))  # white pictures on white


class _Picture(QWidget):
    """The thumbnail, or a warning sign."""

    def __init__(self, shown: QPixmap | None) -> None:
        super().__init__()
        self._shown = shown
        set_fixed_size(self, _PICTURE)

    def paintEvent(self, event: QPaintEvent) -> None:
        draw_picture(painter_on(self), area_of(self), self._shown, ratio_of(self), _RADIUS_PX)


class ImageChip(RemovableChip):
    """An image; or a file that cannot be used, with the reason. `open` is called by Open Image."""

    def __init__(
        self,
        image: Image | None,
        shown: QPixmap | None,
        remove: Callable[[RemovableChip], object],
        parent: QWidget | None = None,
        *,
        refused: tuple[Source, RequestError] | None = None,
    ) -> None:
        """`shown`: the image, None if it is missing. `refused`: the file or the pasted bytes in place of an
        image, and why they cannot be used.
        """
        name = image.name if image else shown_name(Path(refused[0].name)) if refused else ""
        super().__init__(name, strings.remove_attachment, remove, parent, _Picture(shown))
        self.image = image
        self.refused = refused
        self.rows: ImageRows | None = None
        self._is_missing = image is not None and shown is None
        self._unseen = ""  # why the loaded model does not see it
        self._show()

    def show_rows(self, rows: ImageRows | None) -> None:
        """Show what the image takes in the prompt; None: not counted."""
        if rows != self.rows:
            self.rows = rows
            self._show()

    def show_unseen(self, reason: str) -> None:
        """Show why the loaded model does not see the image; empty: it does, or no model is loaded."""
        if reason != self._unseen:
            self._unseen = reason
            self._show()

    def _show(self) -> None:
        image = self.image
        ink, detail = "text2", ""
        if self.refused:
            ink, note = "danger", self.refused[1].message
            detail = self.refused[1].hint
        elif image is None or self._is_missing:
            ink, note, detail = "danger", strings.IMAGE_MISSING, strings.IMAGE_MISSING_HINT
        elif self._unseen:
            ink, note, detail = "danger", strings.NOT_SEEN, self._unseen
        else:
            note = strings.image_rows(*self.rows) if self.rows else strings.pixels(image.width, image.height)
            note = strings.without(note, document_strings.left_out(image.left_out))
            detail = strings.pixels(image.width, image.height) if self.rows else ""
        self.labels[1].set_color(ink)
        self.set_note(note)
        words = "\n".join(filter(None, (note, detail, strings.MOVE_KEYS if self.move_by else "")))
        self.setAccessibleDescription(words)
        self.setToolTip(in_own_direction(f"{self.name}\n{words}"))

    def menu(self) -> QMenu:
        """The commands on the chip. The caller deletes it."""
        menu = QMenu(self)
        if self.image is not None:
            menu.addAction(strings.OPEN_IMAGE, self.click)
        self.add_moves(menu)
        menu.addAction(strings.REMOVE, self.remove_button.click)
        return menu

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        pop_up(self.menu(), event.globalPos())
