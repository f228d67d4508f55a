"""DocumentReading, ImageReading and PageReading: read one file in a child process that can be stopped.

Their methods block; call them on a separate thread. `stop()` may be called from any thread. However the
process ends, the result is a text, an image or a `RequestError`. No Qt.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from core.documents import strings
from core.documents.images import PREVIEW_PX, THUMBNAIL_PX, Filter, ImageLine
from core.documents.limits import ImageLimits, Limits, PageLimits
from core.documents.page_images import PageImage, PageLine
from core.documents.reading import SCANS, Document, DocumentLine, shown_name, shown_text
from core.errors import RequestError
from core.events import Image, Scans
from core.system.children import child_command
from core.system.prepared import prepared
from core.system.reader_process import ReaderFaultError, ReaderProcess

# Eight million characters are at most 48 MB of JSON.
_MOST_BYTES = 64 * 1024 * 1024


def reader_command() -> list[str]:
    """How to start a reader."""
    return child_command("--read")


class DocumentReading:
    """Reads the file at `path`, once; plain text and HTML with the codec `encoding`, if it is given.

    With `scans` a PDF of pictures alone is not refused.
    """

    def __init__(
        self,
        path: Path,
        limits: Limits | None = None,
        command: Sequence[str] | None = None,
        encoding: str = "",
        *,
        scans: bool = False,
    ) -> None:
        self.path = path
        self._name = shown_name(path)
        self._limits = limits = limits or Limits()
        bounds = (limits.memory_bytes, limits.whole_s, limits.characters)
        self._process = ReaderProcess(
            [
                *(command or reader_command()),
                os.path.abspath(path),
                *(str(int(bound)) for bound in bounds),
                encoding,
                *([SCANS] if scans else ()),
            ],
            silence_s=limits.silence_s,
            whole_s=limits.whole_s,
            most_bytes=_MOST_BYTES,
        )

    @property
    def pid(self) -> int | None:
        """The reader's process id; None before it runs."""
        return self._process.pid

    def stop(self) -> None:
        """End the process at once."""
        self._process.stop()

    def run(self, progressed: Callable[[DocumentLine], None] = lambda progress: None) -> Document:
        """The document; `progressed` gets lines with the progress.

        Raises `RequestError`, and `StoppedError` after `stop()`.
        """
        try:
            with closing(self._process.lines()) as lines:
                for data in lines:
                    line = msgspec.json.decode(data, type=prepared(DocumentLine))
                    if line.document is not None:
                        return line.document
                    if line.refused is not None:
                        raise RequestError(line.refused, line.hint)
                    progressed(line)
        except ReaderFaultError as fault:
            why = _fault(
                fault, self._name, self._limits.silence_s, self._limits.whole_s, self._limits.characters
            )
            raise RequestError(why, strings.PASTE_PART) from fault
        except msgspec.DecodeError as error:
            raise RequestError(strings.file_unreadable(self._name, str(error)), strings.PASTE_PART) from error
        why = _ended(self._process.status, self._name, self._limits.whole_s, self._limits.memory_bytes)
        raise RequestError(why, strings.PASTE_PART)


class ImageReading:
    """Reads the image at `path`, each time in a new process. Messages call it `name`, or as its file."""

    def __init__(
        self,
        path: Path,
        limits: ImageLimits | None = None,
        command: Sequence[str] | None = None,
        name: str = "",
    ) -> None:
        self.path = path
        self._name = shown_text(name) if name else shown_name(path)
        self._limits = limits = limits or ImageLimits()
        self._command = [
            *(command or child_command("--read-image")),
            os.path.abspath(path),
            *(str(int(bound)) for bound in (limits.memory_bytes, limits.whole_s)),
            self._name,
        ]
        self._stopped = False
        self._process = self._new_process()

    def stop(self) -> None:
        """End the process at once, and those to come."""
        self._stopped = True
        self._process.stop()

    def describe(self) -> Image:
        """The image's size and hash. Raises `RequestError`, and `StoppedError` after `stop()`."""
        found = self._line().image
        if found is None:
            raise RequestError(strings.file_unreadable(self._name, "its reader named no image"))
        return found

    def with_thumbnail(self) -> tuple[Image, bytes]:
        """The image, and a PNG of it of at most 320 x 320 pixels. Raises as `describe`."""
        return self._smaller(THUMBNAIL_PX)

    def preview(self, hash: str, most_px: int = PREVIEW_PX) -> bytes:
        """A PNG whose longer side has at most `most_px` pixels, if the image has this `hash`.

        Raises as `describe`.
        """
        return self._smaller(min(most_px, PREVIEW_PX), hash)[1]

    def _smaller(self, most_px: int, hash: str = "") -> tuple[Image, bytes]:
        line = self._line(str(most_px), hash)
        if line.image is None or line.thumbnail is None:
            raise RequestError(strings.file_unreadable(self._name, "its reader made no preview"))
        return line.image, line.thumbnail

    def scaled(self, hash: str, width: int, height: int, filter: Filter) -> bytes:
        """uint8 [height, width, 3]: the pixels, if they have this `hash` before they are scaled.

        Raises `RequestError`, and `StoppedError` after `stop()`.
        """
        found = self._line(hash, str(width), str(height), filter).pixels
        if found is None or len(found) != height * width * 3:
            raise RequestError(strings.file_unreadable(self._name, "its reader gave too few pixels"))
        return found

    def _new_process(self, *wanted: str) -> ReaderProcess:
        return ReaderProcess(
            [*self._command, *wanted],
            silence_s=self._limits.silence_s,
            whole_s=self._limits.whole_s,
            most_bytes=_MOST_BYTES,
        )

    def _line(self, *wanted: str) -> ImageLine:
        """The process's line. Raises `RequestError`."""
        self._process = process = self._new_process(*wanted)
        if self._stopped:
            process.stop()
        bounds = self._limits
        try:
            with closing(process.lines()) as lines:
                for data in lines:
                    line = msgspec.json.decode(data, type=prepared(ImageLine))
                    if line.refused is not None:
                        raise RequestError(line.refused, line.hint)
                    return line
        except ReaderFaultError as fault:
            why = _fault(fault, self._name, bounds.silence_s, bounds.whole_s, 0)
            raise RequestError(why, strings.CONVERT_IMAGE) from fault
        except msgspec.DecodeError as error:
            why = strings.file_unreadable(self._name, str(error))
            raise RequestError(why, strings.CONVERT_IMAGE) from error
        why = _ended(process.status, self._name, bounds.whole_s, bounds.memory_bytes)
        raise RequestError(why, strings.CONVERT_IMAGE)


class PageReading:
    """Draws pages of the PDF whose `scans` have no text. Messages call it `name`, or as its file."""

    def __init__(
        self,
        scans: Scans,
        limits: PageLimits | None = None,
        command: Sequence[str] | None = None,
        name: str = "",
    ) -> None:
        self._scans = scans
        self._name = shown_text(name) if name else shown_name(Path(scans.path))
        self._limits = limits = limits or PageLimits()
        bounds = (limits.memory_bytes, limits.whole_s)
        self._command = [
            *(command or child_command("--draw-pages")),
            os.path.abspath(scans.path),
            *(str(int(bound)) for bound in bounds),
            self._name,
            scans.hash,
        ]
        self._stopped = False
        self._process: ReaderProcess | None = None

    def stop(self) -> None:
        """End the process at once, and those to come."""
        self._stopped = True
        if self._process is not None:
            self._process.stop()

    def images(self, numbers: Sequence[int]) -> Iterator[tuple[int, PageImage | RequestError]]:
        """Each page of `numbers`: its image, or why it cannot be drawn.

        After a page that exceeds a limit the next is drawn in a new process. Raises `RequestError` if the
        file cannot be read or has changed, and `StoppedError` after `stop()`.
        """
        left = list(numbers)
        while left:
            count, why = len(left), ""
            try:
                with closing(self._lines(left)) as lines:
                    for line in lines:
                        number = left.pop(0)
                        yield number, line.image or self._undrawn(number, line.problem)
            except ReaderFaultError as fault:
                if fault.kind == "not started":
                    why = strings.NOT_STARTED.format(why=fault)
                    raise RequestError(strings.file_unreadable(self._name, why)) from fault
                why = strings.PAGE_TOO_SLOW
            except msgspec.DecodeError as error:
                why = str(error)
            if len(left) == count:  # the process ended at its first page
                number = left.pop(0)
                yield number, self._undrawn(number, why or self._why_ended())

    def _lines(self, numbers: Sequence[int]) -> Generator[PageLine]:
        """The lines of a process that draws `numbers`. Raises as `images`."""
        self._process = process = ReaderProcess(
            [*self._command, *map(str, numbers)],
            silence_s=self._limits.silence_s,
            whole_s=self._limits.whole_s,
            most_bytes=_MOST_BYTES,
        )
        if self._stopped:
            process.stop()
        with closing(process.lines()) as lines:
            for data in lines:
                line = msgspec.json.decode(data, type=prepared(PageLine))
                if line.refused is not None:
                    raise RequestError(line.refused, line.hint)
                yield line

    def _undrawn(self, number: int, why: str) -> RequestError:
        return RequestError(strings.page_undrawn(self._name, number, why))

    def _why_ended(self) -> str:
        status = self._process.status if self._process else 0
        if status == -signal.SIGABRT:
            return strings.aborted(self._limits.memory_bytes)
        return strings.PAGE_TOO_SLOW if status == -signal.SIGXCPU else strings.PAGE_DAMAGED


def _fault(fault: ReaderFaultError, name: str, silence_s: float, whole_s: float, characters: int) -> str:
    match fault.kind:
        case "not started":
            return strings.file_unreadable(name, strings.NOT_STARTED.format(why=fault))
        case "silent":
            return strings.file_stands_still(name, silence_s)
        case "slow":
            return strings.file_takes_long(name, whole_s)
        case "long":
            return strings.file_too_long(name, characters)


def _ended(status: int, name: str, whole_s: float, memory_bytes: int) -> str:
    """The message for a process that ended without a result."""
    if status == -signal.SIGXCPU:
        return strings.file_takes_long(name, whole_s)
    why = strings.ENDED_WITH.format(status=status)
    if status == -signal.SIGABRT:  # PDFium aborts where it gets no memory
        why = strings.aborted(memory_bytes)
    elif status < 0:
        why = strings.ENDED_BY_SIGNAL.format(signal=signal.Signals(-status).name)
    return strings.file_unreadable(name, why)
