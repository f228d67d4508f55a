"""ImageFiles: what the window does with the files of images: show, copy, save and drag them out.

Nothing is decoded here but what the process that reads images has made: a thumbnail, and a preview of at most
2,048 pixels. Window's thread; previews are awaited on threads of their own.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

from PySide6.QtCore import QMimeData, QObject, QSize, QTimer, QUrl, Signal
from PySide6.QtGui import QGuiApplication, QImage, QPixmap
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from app.chat import strings
from app.chat.image_chip import decoded, made_picture, picture
from app.controls.sheets import first_folder, save_file
from app.richtext.canvas_menu import text_data
from app.session.images import ImageSource
from core.documents import strings as document_strings
from core.documents.client import ImageReading
from core.errors import RequestError, reason_of
from core.events import Image
from core.system.files import write_atomic
from core.system.reader_process import StoppedError

_LOG = logging.getLogger("draftlight.window")
# A dragged image is a copy with its own name, which other programs may read after the drop.
_DRAGGED_MS = 60_000

Got = Callable[[QImage], object]
Refused = Callable[[RequestError], object]


class ImageFiles(QObject):
    """`failed` reports why an image cannot be copied, saved or shown. Call `close` at the end."""

    failed = Signal(object)  # RequestError
    _read = Signal(object, object)  # the reading, and its QImage or RequestError

    def __init__(self, archive: ImageSource, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.archive = archive
        self._waiting: dict[ImageReading, tuple[threading.Thread, Got, Refused]] = {}
        self._wanted: dict[QWidget, tuple[Image, QSize, Callable[[QPixmap | None], object]]] = {}
        self._decode_timer = QTimer(self, interval=0)
        self._decode_timer.timeout.connect(self._decode_next)
        self._dragged: list[Path] = []
        self._drag_timer = QTimer(self, interval=_DRAGGED_MS, singleShot=True)
        self._drag_timer.timeout.connect(self._remove_dragged)
        self._read.connect(self._take)

    def picture(self, image: Image) -> QPixmap | None:
        """The thumbnail; None if the image is missing."""
        return picture(image, self.archive)

    def picture_for(
        self, owner: QWidget, image: Image, size: QSize, got: Callable[[QPixmap | None], object]
    ) -> None:
        """`got` gets what fills `size` pixels of `owner`, None if the image is missing.

        At once if it was made before. Otherwise one is decoded in each turn of the event loop, first those of
        owners that are in view, so that no frame waits for several. An owner wants one picture at a time.
        """
        self._wanted.pop(owner, None)
        if found := made_picture(image, size):
            got(found)
            return
        self._wanted[owner] = image, size, got
        self._decode_timer.start()

    @property
    def is_decoding(self) -> bool:
        """Whether pictures are wanted that are not decoded yet."""
        return bool(self._wanted)

    def preview(
        self, image: Image, got: Got, refused: Callable[[RequestError], object] | None = None
    ) -> ImageReading:
        """Have the image read; `got` gets it on this thread, unless that fails or is stopped by `stop`.

        `refused` gets the error in place of the signal `failed`.
        """
        reading = ImageReading(self.archive.path(image.hash), name=image.name)

        def read() -> None:
            result: QImage | RequestError | None = None
            try:
                result = decoded(reading.preview(image.hash))
            except StoppedError:
                pass
            except RequestError as error:
                result = error
            except Exception as error:  # our bug must not be silent
                _LOG.exception("The preview of an image failed")
                why = document_strings.file_unreadable(image.name, reason_of(error))
                result = RequestError(why, document_strings.CHECK_FILE)
            with contextlib.suppress(RuntimeError):  # the window was deleted
                self._read.emit(reading, result)

        thread = threading.Thread(target=read, name="read an image", daemon=True)
        self._waiting[reading] = thread, got, refused or self.failed.emit
        thread.start()
        return reading

    def stop(self, reading: ImageReading) -> None:
        """Stop a reading; its result is dropped."""
        if reading in self._waiting:
            thread = self._waiting[reading][0]
            self._waiting[reading] = thread, lambda image: None, lambda error: None
            reading.stop()

    def copy(self, image: Image) -> None:
        """Put the image on the clipboard, once it is read."""

        def to_clipboard(shown: QImage) -> None:
            data = text_data("")
            data.removeFormat("text/plain")
            data.setImageData(shown)
            QGuiApplication.clipboard().setMimeData(data)

        self.preview(image, to_clipboard)

    def save_as(self, image: Image, owner: QWidget) -> None:
        """Let the person choose a file for the image as it was attached."""

        def save(path: Path) -> None:
            try:
                write_atomic(path, self.archive.path(image.hash).read_bytes())
            except OSError as error:
                self.failed.emit(RequestError(strings.image_not_saved(image.name, reason_of(error))))

        save_file(owner, strings.SAVE_IMAGE, Path(first_folder()) / image.name, save)

    def drag_data(self, image: Image) -> QMimeData | None:
        """A copy of the image's file under its own name, to be dropped in other programs; None without it.

        Copies are removed a minute after the last drag, and at the end.
        """
        try:
            folder = Path(mkdtemp(prefix="draftlight-drag-"))
            copied = folder / Path(image.name).name
            shutil.copyfile(self.archive.path(image.hash), copied)
        except OSError as error:
            self.failed.emit(RequestError(strings.image_not_saved(image.name, reason_of(error))))
            return None
        self._dragged.append(folder)
        self._drag_timer.start()
        data = text_data("")
        data.removeFormat("text/plain")
        data.setUrls([QUrl.fromLocalFile(str(copied))])
        return data

    def close(self) -> None:
        """Stop all readings, wait for them, and remove the copies."""
        self._decode_timer.stop()
        self._wanted.clear()
        for reading, (thread, *_) in list(self._waiting.items()):
            reading.stop()
            thread.join()
        self._waiting.clear()
        self._drag_timer.stop()
        self._remove_dragged()

    def _take(self, reading: ImageReading, result: object) -> None:
        waiting = self._waiting.pop(reading, None)
        if waiting is None:
            return
        if isinstance(result, RequestError):
            waiting[2](result)
        elif isinstance(result, QImage) and not result.isNull():
            waiting[1](result)

    def _decode_next(self) -> None:
        """Decode one picture: of an owner in view, or the one that was wanted first."""
        for owner in [each for each in self._wanted if not isValid(each)]:
            del self._wanted[owner]
        if not self._wanted:
            self._decode_timer.stop()
            return
        seen = (each for each in self._wanted if not each.visibleRegion().isEmpty())
        image, size, got = self._wanted.pop(next(seen, next(iter(self._wanted))))
        got(picture(image, self.archive, size))

    def _remove_dragged(self) -> None:
        for folder in self._dragged:
            shutil.rmtree(folder, ignore_errors=True)
        self._dragged.clear()
