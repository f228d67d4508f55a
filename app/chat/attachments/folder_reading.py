"""FolderReading: all readable files of one folder, read one after another, not on the window's thread.

Plain texts are read at once, everything else by a process of its own (`core.documents.client`), within its
bounds. What gives no text is left out and said. `fraction` and `words` say how far it is.
"""

from __future__ import annotations

import logging
from pathlib import Path

from app.chat.attachments import strings
from core.documents import strings as document_strings
from core.documents.client import DocumentReading, StoppedError
from core.documents.folder import Skipped, list_folder, name_in
from core.documents.limits import Limits
from core.documents.reading import quick_text, shown_name
from core.documents.text import Guess
from core.errors import RequestError
from core.events import Attachment

_LOG = logging.getLogger("draftlight.window")
# Of a folder that gives nothing, so many reasons.
_TOLD = 3


class FolderReading:
    """Reads the folder at `path`. Plain attributes, written whole; `result` only at its end.

    `guesses` has the path and the encodings of each attachment of `result` whose encoding is not certain.
    """

    def __init__(self, path: Path, limits: Limits) -> None:
        self.path = path
        self.name = shown_name(path)
        self.fraction = 0.0
        self.words = strings.READING_FOLDER
        self.result: tuple[Attachment, ...] | RequestError | None = None
        self.skipped: tuple[Skipped, ...] = ()
        self.guesses: dict[int, tuple[Path, Guess]] = {}
        self._limits = limits
        self._stopped = False
        self._document: DocumentReading | None = None

    @property
    def pid(self) -> int | None:
        """The process that reads one of the files, if one does."""
        return self._document.pid if self._document else None

    def stop(self) -> None:
        """Nobody wants it any more."""
        self._stopped = True
        if self._document:
            self._document.stop()

    def run(self) -> None:
        """Read. On its own thread; leaves the result or, given up, nothing at all."""
        try:
            self._read()
        except StoppedError:
            pass
        except RequestError as error:
            self.result = error
        except Exception as error:  # a bug of ours must not leave the chip waiting for ever
            _LOG.exception("Reading %s failed", self.path)
            why = document_strings.folder_unreadable(self.name, type(error).__name__)
            self.result = RequestError(why, document_strings.CHECK_FILE)

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
                text, guess = self._text(file)
            except RequestError as error:
                skipped.append(Skipped(name, error.message))
                continue
            if len(text) > left:
                skipped.append(Skipped(name, strings.folder_text_full(self._limits.characters)))
                continue
            left -= len(text)
            if guess:
                self.guesses[len(found)] = (file, guess)
            found.append(Attachment(name, text))
        self.skipped = tuple(skipped)
        if found:
            self.result = tuple(found)
        else:
            hint = strings.skipped_text(skipped[:_TOLD]) or strings.EMPTY_FOLDER
            raise RequestError(strings.nothing_in_folder(self.name), hint)

    def _text(self, file: Path) -> tuple[str, Guess | None]:
        guesses: list[Guess] = []
        text = quick_text(file, guesses.append)
        if text is None:
            self._document = DocumentReading(file, self._limits)
            if self._stopped:
                raise StoppedError
            text = self._document.run()
            return text, self._document.guess
        return text, guesses[0] if guesses else None
