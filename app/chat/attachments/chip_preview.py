"""ChipPreview: which of the composer's documents is looked into; opened and closed by its chip."""

from __future__ import annotations

from PySide6.QtCore import QObject, QPoint, QRect, Signal
from PySide6.QtWidgets import QWidget

from app.chat.attachments.attachment_chip import AttachmentChip
from app.chat.attachments.attachment_preview import AttachmentPreview
from app.chat.attachments.chip_row import ChipRow
from app.theme.theme import Theme
from core.events import Attachment


class ChipPreview(QObject):
    """Of the chips in `row`, shown above `frame`. The keyboard goes back to the chip, or else to `edit`."""

    keep_requested = Signal(object)  # Attachment

    def __init__(self, theme: Theme, row: ChipRow, edit: QWidget, frame: QWidget) -> None:
        super().__init__(frame)
        self._theme = theme
        self._row = row
        self._edit = edit
        self._frame = frame
        self._chip: AttachmentChip | None = None
        self.popup: AttachmentPreview | None = None  # once there was one
        row.opened.connect(self.toggle)

    @property
    def is_open(self) -> bool:
        """Whether it is seen."""
        return self.popup is not None and self.popup.isVisible()

    def toggle(self, chip: AttachmentChip) -> None:
        """Show what is in `chip`, or no more."""
        if chip is self._chip:
            self.close()
            return
        popup = self._made()
        self._chip = chip
        popup.show_attachment(chip.attachment, chip.size_text)
        self.place()

    def show_text(self, attachment: Attachment, note: str) -> None:
        """Something to read that no chip holds."""
        self.close()
        popup = self._made()
        self._chip = None
        popup.show_attachment(attachment, note, can_be_kept=False)
        self.place()

    def _made(self) -> AttachmentPreview:
        if self.popup is None:
            self.popup = AttachmentPreview(self._theme, self._frame.window())
            self.popup.closed.connect(self._closed)
            self.popup.keep_requested.connect(self._keep)
        return self.popup

    def _keep(self) -> None:
        if self._chip is not None:
            self.keep_requested.emit(self._chip.attachment)

    def close(self) -> None:
        """Away with it."""
        if self.popup is not None:
            self.popup.close_preview()

    def keep(self) -> None:
        """The chips may be others: what is gone is not shown."""
        if self._chip is not None and self._chip not in self._row.chips:
            self.close()

    def place(self) -> None:
        """The frame may have moved."""
        if self.popup is not None and not self.popup.isHidden():
            origin = self._frame.mapTo(self._frame.window(), QPoint(0, 0))
            self.popup.place_above(QRect(origin, self._frame.size()))

    def _closed(self) -> None:
        chip, self._chip = self._chip, None
        target = chip if chip in self._row.chips else self._edit
        if target is not None:
            target.setFocus()
