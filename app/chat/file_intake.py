"""FileIntake: attaches files and folders to the message.

Small files are attached at once. Large files, folders, and later ones of many get a chip with their progress.
Files without text are reported together once all readings have ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QObject

from app.chat import strings
from app.chat.attachment_chip import AttachmentChip
from app.chat.chip_row import ChipRow
from app.chat.file_reader import AttachmentReading, FileReader, FolderReading, Reading
from core.documents.reading import quick_text, shown_name
from core.documents.text import Guess
from core.errors import RequestError
from core.events import Attachment

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

    def add(self, paths: Sequence[Path]) -> None:
        ends_at = time.monotonic() + _QUICK_S
        for path in paths:
            if path.is_dir():
                self._row.add_file(self.reader.read_folder(path))
                continue
            guesses: list[Guess] = []
            try:
                text = quick_text(path, guesses.append) if time.monotonic() < ends_at else None
            except RequestError as error:
                self._refused.append(error)
                continue
            if text is None:
                self._row.add_file(self.reader.read(path))
            else:
                chip = self._row.add(Attachment(shown_name(path), text))
                if guesses:
                    self._offer_encodings(chip, path, guesses[0])
        self._report()

    def _offer_encodings(self, chip: AttachmentChip, path: Path, guess: Guess) -> None:
        chip.offer_encodings(guess, lambda encoding: self._read_again(chip, path, guess, encoding))

    def _read_again(self, chip: AttachmentChip, path: Path, guess: Guess, encoding: str) -> None:
        """Read the chip's file in another encoding; the chip stays until the text is read."""
        others = tuple(each for each in (guess.encoding, *guess.others) if each != encoding)
        chosen = Guess(encoding, others)
        try:
            text = quick_text(path, encoding=encoding)
        except RequestError as error:
            self._show_error(error)
            return
        if text is None:
            chip.set_note(strings.READING_FILE)
            self._again[self.reader.read(path, chosen)] = (chip, guess)
        else:
            self._replace(chip, path, text, chosen)

    def _replace(self, chip: AttachmentChip, path: Path, text: str, guess: Guess) -> None:
        again = self._row.replace(chip, Attachment(chip.attachment.name, text))
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
            self._replace(chip, reading.path, reading.result.text, reading.guess)
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
