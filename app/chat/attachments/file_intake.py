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

from app.chat.attachments import strings
from app.chat.attachments.attach_reader import FileReader, Reading
from app.chat.attachments.attachment_chip import AttachmentChip
from app.chat.attachments.chip_row import ChipRow
from app.chat.attachments.folder_reading import FolderReading
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
        try:
            text = quick_text(path, encoding=encoding)
        except RequestError as error:
            self.failed.emit(error)
            return
        if text is not None:
            others = tuple(each for each in (guess.encoding, *guess.others) if each != encoding)
            again = self._row.replace(chip, Attachment(chip.attachment.name, text))
            self._offer_encodings(again, path, Guess(encoding, others))

    def cancel(self) -> None:
        """Nothing is wanted any more."""
        self.reader.cancel_all()
        self._refused.clear()

    def _give_up(self, reading: Reading) -> None:
        self.reader.cancel(reading)
        self._report()

    def _take(self, reading: Reading) -> None:
        if isinstance(reading.result, Attachment):
            self._row.add(reading.result, instead_of=reading)
        elif isinstance(reading, FolderReading) and isinstance(reading.result, tuple):
            self._row.add_all(reading.result, instead_of=reading)
            self.folder_read.emit(reading)
        else:
            self._row.drop_file(reading)
            if isinstance(reading.result, RequestError):
                self._refused.append(reading.result)
        self._report()

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
