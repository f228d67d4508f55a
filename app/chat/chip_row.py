"""ChipRow: the attachments of the message being written, in rows that wrap."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QSize, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.chat.attachment_chip import AttachmentChip
from app.theme.theme import Theme
from core.events import Attachment

_GAP_PX = 8


class ChipRow(QWidget):
    """Hidden while there is no attachment. The height follows from the width."""

    changed = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._chips: list[AttachmentChip] = []
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setVisible(False)

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """In the order they were added."""
        return tuple(chip.attachment for chip in self._chips)

    @property
    def chips(self) -> tuple[AttachmentChip, ...]:
        """The chips themselves."""
        return tuple(self._chips)

    def add(self, attachment: Attachment) -> None:
        """One more, at the end."""
        chip = AttachmentChip(self._theme, attachment, self)
        chip.remove_requested.connect(lambda: self._remove(chip))
        self._chips.append(chip)
        chip.show()
        self._changed()

    def clear(self) -> None:
        """None left."""
        if not self._chips:
            return
        for chip in self._chips:
            _discard(chip)
        self._chips.clear()
        self._changed()

    def show_tokens(self, count: Callable[[str], int | None]) -> None:
        """Write each chip's tokens, as far as `count` knows them."""
        for chip in self._chips:
            chip.show_tokens(count(chip.attachment.text))
        self._arrange()

    def sizeHint(self) -> QSize:
        return QSize(200, self.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._arrange()

    def event(self, event: QEvent) -> bool:
        # A chip whose figures changed asks its parent for another size.
        if event.type() == QEvent.Type.LayoutRequest:
            self._arrange()
        return super().event(event)

    def _remove(self, chip: AttachmentChip) -> None:
        self._chips.remove(chip)
        _discard(chip)
        self._changed()

    def _changed(self) -> None:
        self.setVisible(bool(self._chips))
        self._arrange()
        self.changed.emit()

    def _arrange(self) -> None:
        x = y = row_height = 0
        for chip in self._chips:
            size = chip.sizeHint()
            if x and x + size.width() > self.width():
                x, y = 0, y + row_height + _GAP_PX
            chip.setGeometry(x, y, size.width(), size.height())
            x += size.width() + _GAP_PX
            row_height = size.height()
        if y + row_height != self.height():
            self.setFixedHeight(y + row_height)


def _discard(chip: AttachmentChip) -> None:
    chip.hide()
    chip.deleteLater()
