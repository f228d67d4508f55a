"""Draws pages of a PDF as images, in a child process: those without text, for models that see.

A page is drawn as a viewer shows it: turned, without its hidden layers, with filled form fields and comments,
on white. Its longer side has at most `SIDE_PX` pixels, whatever size the file gives it, so that a page of
any size takes bounded memory; at 1,536 pixels capital letters of 10 points on A4 are 13 pixels high. PDFium
is native code that reads untrusted files, so it runs only here: `main`, whose limits the parent sets
(`core.documents.client.PageReading`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from core.documents import limits, strings
from core.documents.reading import hash_of_file, opened_file, shown_name
from core.errors import RequestError
from core.system.child_bounds import LineOutput, read_within

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument

SIDE_PX = 1536
# Small pages get fewer pixels: 300 an inch.
_MOST_SCALE = 300 / 72
# Thinner pages than an image may be get wider.
_LEAST_PX = -(-SIDE_PX // limits.MOST_ASPECT)
_JPEG_QUALITY = 90


class PageImage(Struct, frozen=True):
    """A page as a JPEG file; `hash`, `width` and `height` as those of `core.events.Image`."""

    data: bytes
    hash: str
    width: int
    height: int


class PageLine(Struct, frozen=True):
    """A line of the process: a page's image, or why it cannot be drawn; or the refusal of the file."""

    page: int = 0
    image: PageImage | None = None
    problem: str = ""
    refused: str | None = None
    hint: str = ""


def page_images(path: Path, hash: str, numbers: Sequence[int], name: str = "") -> Iterator[PageLine]:
    """The pages `numbers`, from 1, of the PDF with this `hash` (`Scans.hash`). Raises `RequestError`."""
    from core.documents.pdf import opened_pdf

    name = name or shown_name(path)
    with opened_file(path, name) as (stream, size_bytes):
        if size_bytes > limits.MOST_DOCUMENT_BYTES:
            told = strings.file_size(name, size_bytes, limits.MOST_DOCUMENT_BYTES)
            raise RequestError(told, strings.ATTACH_AGAIN)
        if hash_of_file(stream) != hash:
            raise RequestError(strings.pdf_changed(name), strings.ATTACH_AGAIN)
        stream.seek(0)
        try:
            document = opened_pdf(stream)
        except limits.LockedError:
            raise RequestError(strings.file_locked(name), strings.UNLOCK) from None
        except limits.UnreadableError:
            raise RequestError(strings.file_damaged(name, "PDF"), strings.CHECK_FILE) from None
        for number in numbers:
            yield _drawn(document, number)


def _drawn(document: PdfDocument, number: int) -> PageLine:
    from pypdfium2 import PdfBitmap, PdfiumError, raw

    from core.documents.images import jpeg_of

    if not 1 <= number <= len(document):
        return PageLine(number, problem=strings.PAGE_MISSING)
    try:
        page = document[number - 1]
    except PdfiumError:
        return PageLine(number, problem=strings.PAGE_DAMAGED)
    # PDFium's numbers are of a C float; a page without an area is drawn as a point.
    width, height = (side if 0 < side < float("inf") else 1.0 for side in page.get_size())
    scale = min(SIDE_PX / max(width, height), _MOST_SCALE)
    size = [min(SIDE_PX, max(_LEAST_PX, round(side * scale))) for side in (width, height)]
    bitmap = PdfBitmap.new_native(*size, raw.FPDFBitmap_BGRx)
    bitmap.fill_rect((255, 255, 255, 255), 0, 0, *size)
    flags = raw.FPDF_ANNOT
    raw.FPDF_RenderPageBitmap(bitmap, page, 0, 0, *size, 0, flags)
    if document.formenv:
        raw.FPDF_FFLDraw(document.formenv, bitmap, page, 0, 0, *size, 0, flags)
    data, hash = jpeg_of(bitmap.buffer, size[0], size[1], bitmap.stride, _JPEG_QUALITY)
    return PageLine(number, PageImage(data, hash, size[0], size[1]))


def main(arguments: Sequence[str]) -> int:
    """Draw pages of the file that `arguments` name: path, bytes of memory, seconds of processor, name, hash,
    numbers of pages.

    Writes a `PageLine` for each page to stdout, up to the first that exceeds a limit; returns 0, and 1 then.
    """
    path, (memory_bytes, cpu_s) = Path(arguments[0]), map(int, arguments[1:3])
    name, hash, numbers = arguments[3] or shown_name(path), arguments[4], tuple(map(int, arguments[5:]))
    output = LineOutput()
    drawn = 0

    def write(line: PageLine) -> None:
        output.write(msgspec.json.encode(line))

    def read() -> None:
        nonlocal drawn
        try:
            for line in page_images(path, hash, numbers, name):
                write(line)
                drawn += 1
        except RequestError as error:
            write(PageLine(refused=error.message, hint=error.hint))

    return read_within(
        memory_bytes,
        cpu_s,
        read,
        lambda error: write(PageLine(numbers[drawn], problem=error.message)),
        RequestError(strings.page_needs_memory(memory_bytes)),
        RequestError,
    )
