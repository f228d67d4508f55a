"""PageStrip: the pages of a PDF without text that the model read as images, with their numbers.

Such a page is drawn for the question that it is near to, and kept like an attached image; a click opens it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QWidget

from app.chat.image_files import ImageFiles
from app.chat.image_tile import ImageTile
from app.controls.scroll_bar import ScrollRow
from app.controls.text_label import TextLabel
from app.panels import strings
from app.session.chats.conversation import Document
from app.theme.measures import STRETCH, column_of, set_fixed_height, set_fixed_size
from core.events import Image

_TILE_PX = 92
_WIDTHS_PX = (48, 160)
_CAPTION_PX = 15
_BAR_PX = 9  # the scroll bar below


class PageStrip(QWidget):
    """Hidden for documents without such pages. `open` gets the images, and the index of the clicked one."""

    def __init__(
        self, open: Callable[[tuple[Image, ...], int], object], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.files: ImageFiles | None = None  # without them, images are shown as missing
        self._open = open
        self._shown: tuple[tuple[Image, ...], ImageFiles | None] = ((), None)
        self.tiles: list[ImageTile] = []
        self.label = TextLabel("", 11, 15, "text2", tabular=True, wrap=True)
        self._row = ScrollRow(8)
        set_fixed_height(self._row, _TILE_PX + _CAPTION_PX + _BAR_PX)
        column_of(self.label, self._row, gap=6, margins=(16, 8, 16, 0), parent=self)
        self.hide()

    def show_document(self, document: Document | None) -> None:
        """Show the pages of a document; None: of none."""
        scans = document.attachment.scans if document else None
        images = document.images if document else ()
        self.setVisible(scans is not None)
        if scans is not None:
            self.label.setText(strings.pages_seen([image.page for image in images], len(scans.pages)))
            self.label.updateGeometry()
        if (images, self.files) != self._shown:
            self._shown = images, self.files
            self._row.clear()
            self.tiles = [self._add(images, index) for index in range(len(images))]
            self._row.setVisible(bool(images))

    def _add(self, images: tuple[Image, ...], index: int) -> ImageTile:
        box, image = QWidget(), images[index]
        opens = partial(self._open, images, index)
        tile = ImageTile(image, index + 1, len(images), self.files, opens, box)
        least, most = _WIDTHS_PX
        width = max(least, min(most, round(_TILE_PX * image.width / image.height)))
        set_fixed_size(tile, QSize(width, _TILE_PX))
        caption = TextLabel(
            strings.page_caption(image.page), 11, _CAPTION_PX, "text2", align=Qt.AlignmentFlag.AlignHCenter
        )
        column_of(tile, caption, STRETCH, parent=box)
        self._row.insert(index, box)
        return tile
