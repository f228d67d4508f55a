"""FileReader: reads files and folders in the background, one after another, with progress and cancellation.

Each file is read by a separate process (`core.documents.client`), which a thread waits for. The thread sets
plain attributes of the reading; a timer on the window's thread polls them. Cancelling ends the process.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from PySide6.QtCore import QObject, QTimer

from app.chat import strings
from app.session.images import ImageArchive, Stoppable
from core.documents import strings as document_strings
from core.documents.client import DocumentReading
from core.documents.folder import Skipped, list_folder, name_in
from core.documents.limits import Limits
from core.documents.reading import Document, DocumentLine, quick_document, shown_name
from core.documents.text import Guess
from core.errors import RequestError, reason_of
from core.events import Attachment, Image
from core.system.reader_process import StoppedError

# Number of reasons reported for a folder without readable files.
_REPORTED = 3


_LOG = logging.getLogger("draftlight.window")
_POLL_MS = 30


class PastedImage(Struct, frozen=True):
    """The bytes of an image that was pasted or dropped without a file, and its name."""

    name: str
    data: bytes


Source = Path | PastedImage


class Reading:
    """Base of the readings of a file and of a folder. `fraction` and `words` are the progress.

    `result` stays None if it was stopped.
    """

    unreadable = staticmethod(document_strings.file_unreadable)

    def __init__(self, source: Source, limits: Limits, words: str) -> None:
        self.source = source
        self.name = source.name if isinstance(source, PastedImage) else shown_name(source)
        self.fraction = 0.0
        self.words = words
        self.result: Attachment | tuple[Attachment, ...] | Image | RequestError | None = None
        self.document: Stoppable | None = None
        self._limits = limits
        self._stopped = False

    @property
    def pid(self) -> int | None:
        """The process that reads a file; None if there is none."""
        return self.document.pid if isinstance(self.document, DocumentReading) else None

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """The documents that were read."""
        result = self.result
        return (result,) if isinstance(result, Attachment) else result if isinstance(result, tuple) else ()

    def stop(self) -> None:
        self._stopped = True
        if self.document:
            self.document.stop()

    def run(self) -> None:
        """Read and set `result`. Runs on a thread."""
        try:
            self._read()
        except StoppedError:
            pass
        except RequestError as error:
            self.result = error
        except Exception as error:  # otherwise our bug would leave the chip waiting forever
            _LOG.exception("Reading %s failed", self.name)
            self.result = RequestError(
                self.unreadable(self.name, reason_of(error)), document_strings.CHECK_FILE
            )

    def _read(self) -> None:
        raise NotImplementedError


class FolderReading(Reading):
    """Reads all readable files of the folder at `path`.

    Files without text are in `skipped`. `guesses` has the path and the encodings of each attachment in
    `result` whose encoding is uncertain, by its index.
    """

    unreadable = staticmethod(document_strings.folder_unreadable)

    def __init__(self, path: Path, limits: Limits, *, scans: bool) -> None:
        super().__init__(path, limits, strings.READING_FOLDER)
        self._scans = scans
        self.path = path
        self.skipped: tuple[Skipped, ...] = ()
        self.guesses: dict[int, tuple[Path, Guess]] = {}

    def _read(self) -> None:
        listing = list_folder(self.path, lambda: not self._stopped)
        skipped = list(listing.skipped)
        found: list[Attachment] = []
        left = self._limits.characters
        for number, file in enumerate(listing.files):
            if self._stopped:
                return
            name = name_in(file, self.path)
            self.fraction = number / len(listing.files)
            self.words = strings.reading_folder(number + 1, len(listing.files))
            try:
                document = self._document(file)
            except RequestError as error:
                skipped.append(Skipped(name, error.message))
                continue
            if len(document.text) > left:
                skipped.append(Skipped(name, strings.folder_text_full(self._limits.characters)))
                continue
            left -= len(document.text)
            if document.guess:
                self.guesses[len(found)] = (file, document.guess)
            found.append(document.attachment(name))
        self.skipped = tuple(skipped)
        if found:
            self.result = tuple(found)
        else:
            hint = strings.skipped_text(skipped[:_REPORTED]) or strings.EMPTY_FOLDER
            raise RequestError(strings.nothing_in_folder(self.name), hint)

    def _document(self, file: Path) -> Document:
        document = quick_document(file)
        if document is None:
            reading = self.document = DocumentReading(file, self._limits, scans=self._scans)
            if self._stopped:
                raise StoppedError
            document = reading.run()
        return document


class AttachmentReading(Reading):
    """Reads one file. `guess` is the encoding with alternatives: `chosen`, or one that is uncertain."""

    def __init__(self, path: Path, limits: Limits, chosen: Guess | None = None, *, scans: bool) -> None:
        super().__init__(path, limits, strings.READING_FILE)
        self.path = path
        self.guess = chosen
        encoding = chosen.encoding if chosen else ""
        self._reading = DocumentReading(path, limits, encoding=encoding, scans=scans)
        self.document = self._reading

    def _read(self) -> None:
        document = self._reading.run(self._progressed)
        self.guess = self.guess or document.guess
        self.result = document.attachment(self.name)

    def _progressed(self, progress: DocumentLine) -> None:
        words = strings.READING_FILE
        if progress.unit == "pages":
            words = strings.READING_PAGE.format(page=progress.done + 1, pages=progress.total)
        self.fraction, self.words = progress.done / progress.total, words


class ImageFileReading(Reading):
    """Keeps one image in `archive`, which has its thumbnail then; the result is its `Image`."""

    def __init__(self, source: Source, archive: ImageArchive, limits: Limits) -> None:
        super().__init__(source, limits, strings.READING_FILE)
        self._archive = archive

    def _read(self) -> None:
        source = self.source
        data = source.data if isinstance(source, PastedImage) else source
        self.result = self._archive.keep(data, self.name, self._started)

    def _started(self, reading: Stoppable) -> None:
        self.document = reading
        if self._stopped:
            raise StoppedError


_Some = TypeVar("_Some", bound=Reading)


class FileReader(QObject):
    """Lives on the window's thread. `progressed` and `finished` get the current reading.

    Without `takes_scans` PDFs of scanned pages alone are refused.
    """

    def __init__(
        self,
        progressed: Callable[[Reading], object],
        finished: Callable[[Reading], object],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._progressed = progressed
        self._finished = finished
        self.limits = Limits()
        self.takes_scans = False
        self._waiting: deque[Reading] = deque()
        self._current: Reading | None = None
        self._thread: threading.Thread | None = None
        self._timer = QTimer(self, interval=_POLL_MS)
        self._timer.timeout.connect(self._poll)

    @property
    def busy(self) -> bool:
        """Whether a file is being read."""
        return self._current is not None

    def read(self, path: Path, chosen: Guess | None = None) -> AttachmentReading:
        """Read `path` after those before it, in the `chosen` encoding."""
        return self._add(AttachmentReading(path, self.limits, chosen, scans=self.takes_scans))

    def read_image(self, source: Source, archive: ImageArchive) -> ImageFileReading:
        """Keep an image in `archive`, after the files before it."""
        return self._add(ImageFileReading(source, archive, self.limits))

    def read_folder(self, path: Path) -> FolderReading:
        """Read all files in `path` after those before it."""
        return self._add(FolderReading(path, self.limits, scans=self.takes_scans))

    def cancel(self, reading: Reading) -> None:
        """Stop `reading`; it is not reported any more."""
        reading.stop()
        if reading is self._current:
            self._current = None
            self._next()
        elif reading in self._waiting:
            self._waiting.remove(reading)

    def cancel_all(self) -> None:
        self._waiting.clear()
        if self._current is not None:
            self.cancel(self._current)

    def _add(self, reading: _Some) -> _Some:
        self._waiting.append(reading)
        self._next()
        return reading

    def _next(self) -> None:
        if self._current is None and self._waiting:
            self._current = self._waiting.popleft()
            self._thread = threading.Thread(target=self._current.run, name="read a file", daemon=True)
            self._thread.start()
        if self._current is None:
            self._timer.stop()
        elif not self._timer.isActive():
            self._timer.start()

    def _poll(self) -> None:
        reading, thread = self._current, self._thread
        if reading is None or thread is None:
            return
        if thread.is_alive():
            self._progressed(reading)
            return
        self._current = None
        self._next()
        self._finished(reading)
