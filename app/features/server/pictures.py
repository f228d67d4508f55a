"""ServedPictures: thumbnails of a served request's images, which a process reads while their files exist.

The server erases the files when the request has ended; the thumbnails stay in memory until another request is
opened. Window's thread, except for the readings.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from core.documents.client import ImageReading
from core.errors import RequestError
from core.events import Image
from core.system.reader_process import StoppedError

# An agent's request may have a hundred; the others are named.
_MOST = 20


class ServedPictures(QObject):
    """Implements `app.session.images.ImageSource` for the opened request. Call `stop` at the end."""

    changed = Signal()  # thumbnails were made
    _made = Signal(object, object)  # of one `_Readings`: its thumbnails by hash

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._thumbnails: dict[str, bytes] = {}
        self._paths: dict[str, Path] = {}
        self._readings: _Readings | None = None
        self._made.connect(self._take)

    def read(self, images: Sequence[Image]) -> None:
        """Read these images in place of the last ones."""
        self.stop()
        self._thumbnails = {}
        self._paths = {each.hash: Path(each.path) for each in images}
        if images:
            self._readings = _Readings(
                list({each.hash: each for each in images}.values())[:_MOST], self._tell
            )

    def stop(self) -> None:
        """End the readings, and wait for their end."""
        if self._readings is not None:
            self._readings.stop()
            self._readings = None

    def is_kept(self, hash: str) -> bool:
        return hash in self._thumbnails

    def thumbnail(self, hash: str) -> bytes | None:
        return self._thumbnails.get(hash)

    def path(self, hash: str) -> Path:
        return self._paths.get(hash, Path())

    def _tell(self, readings: _Readings, found: dict[str, bytes]) -> None:
        with contextlib.suppress(RuntimeError):  # the window is gone
            self._made.emit(readings, found)

    def _take(self, readings: _Readings, found: dict[str, bytes]) -> None:
        if readings is self._readings:
            self._thumbnails = found
            self.changed.emit()


class _Readings:
    """Reads images one after the other on a thread, and then calls `tell` there with the thumbnails."""

    def __init__(
        self, images: Sequence[Image], tell: Callable[[_Readings, dict[str, bytes]], object]
    ) -> None:
        self._images, self._tell = images, tell
        self._lock = threading.Lock()
        self._stopped = False
        self._reading: ImageReading | None = None
        self._thread = threading.Thread(target=self._run, name="read served images", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            if self._reading is not None:
                self._reading.stop()
        self._thread.join()

    def _run(self) -> None:
        found = dict[str, bytes]()
        for image in self._images:
            with self._lock:
                if self._stopped:
                    return
                self._reading = reading = ImageReading(Path(image.path), name=image.name)
            try:
                found[image.hash] = reading.with_thumbnail()[1]
            except StoppedError:
                return
            except RequestError:  # erased, because the request has ended
                continue
        if found:
            self._tell(self, found)
