"""FileIntake: files on their way to being documents beside the message.

What is quick to read is there at once, the rest gets a chip that shows how far it is; so do the later
ones of many, and a folder, until all of its files are there. Files that give no text are reported all in
one, once nothing is on its way any more.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.chat import strings
from app.chat.attachment_chip import AttachmentChip
from app.chat.chip_row import ChipRow
from app.chat.file_reader import AttachmentReading, FileReader, FolderReading, Reading
from core.documents.reading import quick_text, shown_name
from core.documents.text import Guess
from core.errors import RequestError
from core.events import Attachment

# So long may the window stand still for files that are quick to read.
_QUICK_S = 0.1
# Of many refusals so many are told.
_TOLD = 6


class FileIntake(QObject):
    """Into the chips of `row`."""

    failed = Signal(object)  # RequestError
    folder_read = Signal(object)  # FolderReading, whose files are attached

    def __init__(self, row: ChipRow, parent: QObject) -> None:
        super().__init__(parent)
        self._row = row
        self._refused: list[RequestError] = []
        # Files that are read in another encoding, with their chip and what it offers.
        self._again: dict[AttachmentReading, tuple[AttachmentChip, Guess]] = {}
        self.reader = FileReader(self)
        self.reader.progressed.connect(row.show_file)
        self.reader.finished.connect(self._take)
        row.given_up.connect(self._give_up)

    def add(self, paths: Sequence[Path]) -> None:
        """Read these."""
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
        chip.offer_encodings(guess)
        chip.encoding_chosen.connect(lambda encoding: self._read_again(chip, path, guess, encoding))

    def _read_again(self, chip: AttachmentChip, path: Path, guess: Guess, encoding: str) -> None:
        """Reads the chip's file in another encoding; the chip stays until there is another text."""
        others = tuple(each for each in (guess.encoding, *guess.others) if each != encoding)
        chosen = Guess(encoding, others)
        try:
            text = quick_text(path, encoding=encoding)
        except RequestError as error:
            self.failed.emit(error)
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
        """Stops every reading."""
        self.reader.cancel_all()
        self._again.clear()
        self._refused.clear()

    def _give_up(self, reading: Reading) -> None:
        self.reader.cancel(reading)
        self._report()

    def _take(self, reading: Reading) -> None:
        if isinstance(reading, AttachmentReading) and reading in self._again:
            self._take_again(reading)
        elif isinstance(reading, AttachmentReading) and isinstance(reading.result, Attachment):
            chip = self._row.add(reading.result, instead_of=reading)
            if reading.guess:
                self._offer_encodings(chip, reading.path, reading.guess)
        elif isinstance(reading, FolderReading) and isinstance(reading.result, tuple):
            chips = self._row.add_all(reading.result, instead_of=reading)
            for number, (path, guess) in reading.guesses.items():
                self._offer_encodings(chips[number], path, guess)
            self.folder_read.emit(reading)
        else:
            self._row.drop_file(reading)
            if isinstance(reading.result, RequestError):
                self._refused.append(reading.result)
        self._report()

    def _take_again(self, reading: AttachmentReading) -> None:
        chip, guess = self._again.pop(reading)
        if chip not in self._row.chips:
            return  # removed meanwhile
        if isinstance(reading.result, Attachment) and reading.guess:
            self._replace(chip, reading.path, reading.result.text, reading.guess)
            return
        chip.offer_encodings(guess)  # shows its size again
        if isinstance(reading.result, RequestError):
            self._refused.append(reading.result)

    def _report(self) -> None:
        if not self._refused or self.reader.busy:
            return
        refused, self._refused = self._refused, []
        if len(refused) == 1:
            self.failed.emit(refused[0])
        else:
            told = [error.message for error in refused[:_TOLD]]
            if len(refused) > _TOLD:
                told.append(strings.and_more_files(len(refused) - _TOLD))
            self.failed.emit(RequestError(strings.files_not_attached(len(refused)), " ".join(told)))
