"""The chips of the composer in a row, and the intake of files.

Small files are attached at once. Large files, images, folders, and later ones of many get a chip with their
progress. Files without text are reported together once all readings have ended; an image that cannot be used
stays as a chip with the reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.chat import strings
from app.chat.attachment_chip import AttachmentChip, FileChip, RemovableChip, estimated_tokens
from app.chat.file_reader import (
    AttachmentReading,
    FileReader,
    FolderReading,
    ImageFileReading,
    PastedImage,
    Reading,
    Source,
)
from app.chat.image_chip import ImageChip, ImageRows, picture
from app.controls.scroll_bar import ScrollRow
from app.session.images import ImageArchive
from app.theme.measures import set_fixed_height
from core.documents.reading import is_image, quick_document, shown_name
from core.documents.text import Guess
from core.errors import RequestError
from core.events import Attachment, Image

_GAP_PX = 8
_HEIGHT_PX = 51  # of a chip, and the scroll bar below


class ChipRow(ScrollRow):
    """Scrolls sideways. Hidden while empty. A file's chip is replaced by that of its document or image.

    `cancel` is set by the owner of the readings and called when the chip of a file is removed; `open` when a
    document's chip is clicked, `open_image` when an image's is. `archive` has the files of images, which are
    not accepted without it.
    """

    changed = Signal()

    def __init__(self, removed: Callable[[Attachment], object], parent: QWidget | None = None) -> None:
        """`removed` gets a document that the person removed, shortened or had read again."""
        super().__init__(_GAP_PX, parent)
        self._removed = removed
        self.cancel: Callable[[Reading], object] = lambda reading: None
        self.open: Callable[[AttachmentChip], object] = lambda chip: None
        self.open_image: Callable[[ImageChip], object] = lambda chip: None
        self.archive: ImageArchive | None = None
        self._all: list[RemovableChip] = []
        self._files: dict[Reading, FileChip] = {}
        set_fixed_height(self, _HEIGHT_PX)
        self.hide()

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """The documents, in the order they were added."""
        return tuple(chip.attachment for chip in self.chips)

    @property
    def chips(self) -> tuple[AttachmentChip, ...]:
        return tuple(chip for chip in self._all if isinstance(chip, AttachmentChip))

    @property
    def images(self) -> tuple[Image, ...]:
        """The images, in their order."""
        return tuple(chip.image for chip in self.image_chips if chip.image)

    @property
    def image_chips(self) -> tuple[ImageChip, ...]:
        """The chips of images, and of files that cannot be used as images."""
        return tuple(chip for chip in self._all if isinstance(chip, ImageChip))

    @property
    def refused(self) -> tuple[ImageChip, ...]:
        """The chips of files that cannot be used as images."""
        return tuple(chip for chip in self.image_chips if chip.refused)

    @property
    def sources(self) -> tuple[Source, ...]:
        """The files, folders and pasted images that are being read, or were refused as images."""
        refused = (chip.refused[0] for chip in self.refused if chip.refused)
        return (*(reading.source for reading in self._files), *refused)

    @property
    def pasted(self) -> tuple[Reading, ...]:
        """The readings of pasted images, which no file has."""
        return tuple(reading for reading in self._files if isinstance(reading.source, PastedImage))

    @property
    def files(self) -> tuple[FileChip, ...]:
        """Their chips."""
        return tuple(self._files.values())

    def add(self, attachment: Attachment, instead_of: Reading | None = None) -> AttachmentChip:
        """Add a document, at the end or in place of its file's chip. Returns its chip."""
        (chip,) = self.add_all((attachment,), instead_of)
        return chip

    def add_all(
        self, attachments: Sequence[Attachment], instead_of: Reading | None = None
    ) -> list[AttachmentChip]:
        """Add documents, at the end or in place of the chip of their file or folder. Returns their chips."""
        file = self._files.pop(instead_of, None) if instead_of else None
        at = self._all.index(file) if file else len(self._all)
        chips = [self._chip(attachment) for attachment in attachments]
        if file:
            self._discard(file)
        for number, chip in enumerate(chips, start=at):
            self._insert(number, chip)
        self._changed()
        return chips

    def add_image(self, image: Image, instead_of: Reading | None = None) -> ImageChip:
        """Add an image, at the end or in place of its file's chip. Returns its chip."""
        return self._put(ImageChip(image, picture(image, self.archive), self.take_out), instead_of)

    def refuse(self, reading: Reading, error: RequestError) -> ImageChip:
        """Show that a file cannot be used as an image, in place of its chip. Returns the new one."""
        chip = ImageChip(None, None, self.take_out, refused=(reading.source, error))
        return self._put(chip, reading)

    def _put(self, chip: ImageChip, instead_of: Reading | None) -> ImageChip:
        file = self._files.pop(instead_of, None) if instead_of else None
        at = self._all.index(file) if file else len(self._all)
        if file:
            self._discard(file)
        chip.move_by = lambda by: self.move_chip(chip, by)
        chip.clicked.connect(lambda: self.open_image(chip))
        self._insert(at, chip)
        self._changed()
        return chip

    def move_chip(self, chip: RemovableChip, by: int) -> None:
        """Move a chip by `by` places, to the end of the row at most; its focus stays."""
        at = self._all.index(chip)
        to = max(0, min(at + by, len(self._all) - 1))
        if to == at:
            return
        self._all.insert(to, self._all.pop(at))
        self.row.removeWidget(chip)
        self.insert(to, chip)
        self.row.activate()
        self._order_tabs()
        self.ensureWidgetVisible(chip)
        self._changed()

    def _order_tabs(self) -> None:
        """Tab stops at the chips in their order, not in that of their creation."""
        stops = [stop for chip in self._all for stop in (chip, chip.remove_button)]
        for before, after in pairwise(stops):
            QWidget.setTabOrder(before, after)

    def add_file(self, reading: Reading) -> None:
        """Add the chip of a file that is being read."""
        chip = FileChip(reading.name, lambda _: self._cancel(reading))
        chip.set_note(reading.words, reading.fraction)
        self._files[reading] = chip
        self._insert(len(self._all), chip)
        self._changed()

    def show_file(self, reading: Reading) -> None:
        if chip := self._files.get(reading):
            chip.set_note(reading.words, reading.fraction)

    def drop_file(self, reading: Reading) -> None:
        """Remove the chip of a file that could not be read."""
        if chip := self._files.pop(reading, None):
            self.remove(chip)

    def replace(self, chip: AttachmentChip, attachment: Attachment) -> AttachmentChip:
        """Replace the document of a chip, for the person. Returns the new chip."""
        other = self._chip(attachment)
        self._insert(self._all.index(chip), other)
        self.take_out(chip)
        return other

    def take_out(self, chip: RemovableChip) -> None:
        """Remove the chip of a document or an image for the person."""
        self.remove(chip)
        if isinstance(chip, AttachmentChip):
            self._removed(chip.attachment)

    def remove(self, chip: RemovableChip) -> None:
        """Remove a chip. If it had the focus, the next chip gets it."""
        focused = chip.hasFocus() or chip.remove_button.hasFocus()
        others = [each for each in self._all if each is not chip]
        if focused and others:
            others[min(self._all.index(chip), len(others) - 1)].setFocus()
        self._discard(chip)
        self._changed()

    def clear(self) -> None:
        if not self._all:
            return
        for chip in list(self._all):
            self._discard(chip)
        self._files.clear()
        self._changed()

    def show_tokens(self, count: Callable[[str], int | None]) -> None:
        """Show each document's tokens; `count` returns None for unknown ones."""
        for chip in self.chips:
            chip.show_tokens(count(chip.attachment.text))

    def show_rows(self, rows: Callable[[Image], ImageRows | None]) -> None:
        """Show what each image takes in the prompt; `rows` returns None if it is not counted."""
        for chip in self.image_chips:
            if chip.image:
                chip.show_rows(rows(chip.image))

    def show_unseen(self, reason: str) -> None:
        """Show why the loaded model does not see images; empty: it does, or none is loaded."""
        for chip in self.image_chips:
            chip.show_unseen(reason)

    def show_embedding(self, fraction: Callable[[str], float | None]) -> None:
        """Show the embedded fraction of each document; `fraction` returns None to hide the bar."""
        for chip in self.chips:
            chip.show_embedding(fraction(chip.attachment.text))

    def show_read(self, fraction: float | None) -> None:
        """Show that the worker read this fraction of all documents, in their order; None: nothing."""
        sizes = [chip.tokens or estimated_tokens(chip.attachment.text) for chip in self.chips]
        read = (fraction or 0.0) * sum(sizes)
        for chip, size in zip(self.chips, sizes, strict=True):
            chip.show_read(None if fraction is None else min(1.0, max(0.0, read / max(1, size))))
            read -= size

    # ---- inside

    def _chip(self, attachment: Attachment) -> AttachmentChip:
        chip = AttachmentChip(attachment, self.take_out)
        chip.move_by = lambda by: self.move_chip(chip, by)
        chip.clicked.connect(lambda: self.open(chip))
        return chip

    def _insert(self, at: int, chip: RemovableChip) -> None:
        self._all.insert(at, chip)
        self.insert(at, chip)
        if chip is self._all[-1]:
            chip.show()
            self.page.adjustSize()  # now, so that it can be scrolled to
            self.ensureWidgetVisible(chip)

    def _discard(self, chip: RemovableChip) -> None:
        self._all.remove(chip)
        chip.hide()
        chip.deleteLater()

    def _cancel(self, reading: Reading) -> None:
        self.drop_file(reading)
        self.cancel(reading)

    def _changed(self) -> None:
        self.setVisible(bool(self._all))
        self.changed.emit()


# The window may block for this long to read small files.
_QUICK_S = 0.1
# Number of failures that are reported in full.
_REPORTED = 6


class FileIntake(QObject):
    """Adds to the chips of `row`. `report` gets errors, `folder_read` a folder whose files are attached."""

    def __init__(
        self,
        row: ChipRow,
        report: Callable[[RequestError], object],
        folder_read: Callable[[FolderReading], object],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._row = row
        self._show_error = report
        self._folder_read = folder_read
        self._refused: list[RequestError] = []
        # Files that are read again in another encoding, with their chip and its guess.
        self._again: dict[AttachmentReading, tuple[AttachmentChip, Guess]] = {}
        self.reader = FileReader(row.show_file, self._on_read, self)
        row.cancel = self._cancel_one

    def add(self, sources: Sequence[Source]) -> None:
        ends_at = time.monotonic() + _QUICK_S
        archive = self._row.archive
        for path in sources:
            if isinstance(path, PastedImage):
                assert archive
                self._row.add_file(self.reader.read_image(path, archive))
                continue
            if path.is_dir():
                self._row.add_file(self.reader.read_folder(path))
                continue
            if archive and is_image(path):
                self._row.add_file(self.reader.read_image(path, archive))
                continue
            try:
                document = quick_document(path) if time.monotonic() < ends_at else None
            except RequestError as error:
                self._refused.append(error)
                continue
            if document is None:
                self._row.add_file(self.reader.read(path))
            else:
                chip = self._row.add(document.attachment(shown_name(path)))
                if document.guess:
                    self._offer_encodings(chip, path, document.guess)
        self._report()

    def _offer_encodings(self, chip: AttachmentChip, path: Path, guess: Guess) -> None:
        chip.offer_encodings(guess, lambda encoding: self._read_again(chip, path, guess, encoding))

    def _read_again(self, chip: AttachmentChip, path: Path, guess: Guess, encoding: str) -> None:
        """Read the chip's file in another encoding; the chip stays until the text is read."""
        others = tuple(each for each in (guess.encoding, *guess.others) if each != encoding)
        chosen = Guess(encoding, others)
        try:
            document = quick_document(path, encoding)
        except RequestError as error:
            self._show_error(error)
            return
        for reading in [each for each, (other, _) in self._again.items() if other is chip]:
            del self._again[reading]
            self.reader.cancel(reading)
        if document is None:
            chip.set_note(strings.READING_FILE)
            self._again[self.reader.read(path, chosen)] = (chip, guess)
        else:
            read = document.attachment(chip.attachment.name)
            self._replace(chip, path, read, chosen)

    def _replace(self, chip: AttachmentChip, path: Path, read: Attachment, guess: Guess) -> None:
        again = self._row.replace(chip, read)
        self._offer_encodings(again, path, guess)

    def cancel(self) -> None:
        self.reader.cancel_all()
        self._again.clear()
        self._refused.clear()

    def _cancel_one(self, reading: Reading) -> None:
        self.reader.cancel(reading)
        self._report()

    def _on_read(self, reading: Reading) -> None:
        if isinstance(reading, AttachmentReading) and reading in self._again:
            self._on_read_again(reading)
        elif isinstance(reading, AttachmentReading) and isinstance(reading.result, Attachment):
            chip = self._row.add(reading.result, instead_of=reading)
            if reading.guess:
                self._offer_encodings(chip, reading.path, reading.guess)
        elif isinstance(reading, ImageFileReading) and isinstance(reading.result, Image):
            self._row.add_image(reading.result, instead_of=reading)
        elif isinstance(reading, ImageFileReading) and isinstance(reading.result, RequestError):
            self._row.refuse(reading, reading.result)
        elif isinstance(reading, FolderReading) and isinstance(reading.result, tuple):
            chips = self._row.add_all(reading.result, instead_of=reading)
            for number, (path, guess) in reading.guesses.items():
                self._offer_encodings(chips[number], path, guess)
            self._folder_read(reading)
        else:
            self._row.drop_file(reading)
            if isinstance(reading.result, RequestError):
                self._refused.append(reading.result)
        self._report()

    def _on_read_again(self, reading: AttachmentReading) -> None:
        chip, guess = self._again.pop(reading)
        if chip not in self._row.chips:
            return  # removed
        if isinstance(reading.result, Attachment) and reading.guess:
            self._replace(chip, reading.path, reading.result, reading.guess)
            return
        self._offer_encodings(chip, reading.path, guess)  # shows its size again
        if isinstance(reading.result, RequestError):
            self._refused.append(reading.result)

    def _report(self) -> None:
        if not self._refused or self.reader.busy:
            return
        refused, self._refused = self._refused, []
        if len(refused) == 1:
            self._show_error(refused[0])
        else:
            texts = [error.message for error in refused[:_REPORTED]]
            if len(refused) > _REPORTED:
                texts.append(strings.and_more_files(len(refused) - _REPORTED))
            self._show_error(RequestError(strings.files_not_attached(len(refused)), " ".join(texts)))
