"""PDF to text, page by page, through PDFium.

PDFium reads what people's viewers read: files with an owner password, right-to-left text in reading order,
damaged files. Form fields and free-text notes are put behind the words to their left. It is native code, so
it runs only in the bounded reader process. Scanned pages have no text and give none.

Compared on the project's PDFs (docs/documents.md): pypdf gave right-to-left text reversed or out of order,
and no form fields.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from itertools import pairwise
from typing import IO, TYPE_CHECKING, NamedTuple

from core.documents.limits import DamagedError, Gathered, LockedError, Told
from core.system.child_bounds import held_bytes

if TYPE_CHECKING:
    import pypdfium2

_MOST_FIELD_CHARACTERS = 32_768
# Of a page; what a page has beyond that is not read.
_MOST_ANNOTATIONS = 1_000
# A page without content does not take so much memory to read.
_MOST_EMPTY_PAGE_BYTES = 64 * 1024 * 1024
_LAM, _ALEFS = "ل", "اأإآ"


class _Box(NamedTuple):
    left: float
    bottom: float
    right: float
    top: float


class _Insert(NamedTuple):
    """Text of a field or a note, and its rectangle on the page."""

    box: _Box
    text: str


def pdf_text(stream: IO[bytes], told: Told, gathered: Gathered) -> str:
    """All pages' text with an empty line between pages; empty if there are only pictures.

    `told` is called with the number of pages done before each page. Raises `UnreadableError`, OSError.
    """
    import pypdfium2
    from pypdfium2 import raw

    _check_readable(stream)
    try:
        document = pypdfium2.PdfDocument(stream)
    except pypdfium2.PdfiumError as error:
        locked = raw.FPDF_GetLastError() == raw.FPDF_ERR_PASSWORD or "password" in str(error).lower()
        raise (LockedError if locked else DamagedError) from error
    try:
        if document.get_formtype() != raw.FORMTYPE_NONE:
            document.init_forms()
        pages = len(document)
        for number in range(pages):
            told(number, pages, "pages")
            text = _page(document, number)
            gathered.add(f"\n\n{text}" if number else text)
    finally:
        document.close()
    return gathered.text().strip()


def _check_readable(stream: IO[bytes]) -> None:
    """Raises OSError here: PDFium asks for bytes by a callback, where an error would be lost."""
    stream.seek(0, os.SEEK_END)
    end = stream.tell()
    for at in (max(0, end - 1), 0):
        stream.seek(at)
        stream.read(1)
    stream.seek(0)


def _page(document: pypdfium2.PdfDocument, number: int) -> str:
    """The text of a page. Raises `DamagedError`, and MemoryError for a page that PDFium cannot hold."""
    import pypdfium2
    from pypdfium2 import raw

    most_before = held_bytes()
    try:
        page = document[number]
        lines = page.get_textpage()
        text = lines.get_text_range()
    except pypdfium2.PdfiumError as error:
        raise DamagedError from error
    # PDFium takes content that it has no memory for as none, and reports nothing.
    is_empty = not text and not raw.FPDFPage_CountObjects(page.raw)
    if is_empty and held_bytes() > most_before + _MOST_EMPTY_PAGE_BYTES:
        raise MemoryError
    inserts = list(_inserts(document, page))
    swapped = _swapped_ligatures(lines) if any(letter in text for letter in _ALEFS) and _LAM in text else {}
    if inserts or swapped:
        text = _with_inserts(lines, inserts, swapped)
    # PDFium marks a hyphen at a line's end by U+FFFE or U+0002, and pads with zero characters.
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    for mark in ("\ufffe\n", "\x02\n", "\ufffe", "\x02"):
        text = text.replace(mark, "-\n" if mark.endswith("\n") else "-")
    return "\n".join(line.rstrip() for line in text.split("\n")).strip()


def _inserts(document: pypdfium2.PdfDocument, page: pypdfium2.PdfPage) -> Iterator[_Insert]:
    """Filled form fields and free-text notes, in the file's order."""
    from pypdfium2 import raw

    form = document.formenv.raw if document.formenv else None
    for index in range(min(raw.FPDFPage_GetAnnotCount(page.raw), _MOST_ANNOTATIONS)):
        annotation = raw.FPDFPage_GetAnnot(page.raw, index)
        if not annotation:
            continue
        try:
            kind = raw.FPDFAnnot_GetSubtype(annotation)
            text = ""
            if kind == raw.FPDF_ANNOT_WIDGET and form:
                text = _field(form, annotation)
            elif kind == raw.FPDF_ANNOT_FREETEXT:
                text = _string(raw.FPDFAnnot_GetStringValue, annotation, b"Contents")
            rectangle = raw.FS_RECTF()
            if text.strip() and raw.FPDFAnnot_GetRect(annotation, ctypes.byref(rectangle)):
                found = (rectangle.left, rectangle.bottom, rectangle.right, rectangle.top)
                yield _Insert(_Box(*found), " ".join(text.split()))
        finally:
            raw.FPDFPage_CloseAnnot(annotation)


def _field(form: object, annotation: object) -> str:
    from pypdfium2 import raw

    kind = raw.FPDFAnnot_GetFormFieldType(form, annotation)
    if kind in (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON):
        return "[x]" if raw.FPDFAnnot_IsChecked(form, annotation) else "[ ]"
    if kind in (raw.FPDF_FORMFIELD_TEXTFIELD, raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX):
        return _string(raw.FPDFAnnot_GetFormFieldValue, form, annotation)
    return ""


def _string(call: object, *arguments: object) -> str:
    """The UTF-16 string that PDFium writes into a buffer."""
    from pypdfium2 import raw

    assert callable(call)
    size = min(int(call(*arguments, None, 0)), 2 * _MOST_FIELD_CHARACTERS)
    if size <= 2:
        return ""
    buffer = ctypes.create_string_buffer(size)
    call(*arguments, ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), size)
    return buffer.raw[:size].decode("utf-16-le", "replace").partition("\0")[0]


def _with_inserts(lines: pypdfium2.PdfTextPage, inserts: list[_Insert], swapped: dict[int, str]) -> str:
    """The page's text with each of `inserts` behind the last character to its left, else above it."""
    letters = [swapped.get(at, letter) for at, letter in enumerate(_letters(lines))]
    boxes = [_Box(*lines.get_charbox(at)) for at in range(len(letters))] if inserts else []
    behind: dict[int, str] = {}
    loose: list[str] = []
    for box, text in inserts:
        middle = (box.bottom + box.top) / 2
        on_line = [
            at
            for at, (own, letter) in enumerate(zip(boxes, letters))
            if not letter.isspace() and own.bottom - 3 <= middle <= own.top + 3 and own.right <= box.left + 3
        ]
        above = [
            at
            for at, (own, letter) in enumerate(zip(boxes, letters))
            if not letter.isspace() and own.bottom >= middle and own.left < box.right and own.right > box.left
        ]
        if on_line:
            at = max(on_line, key=lambda at: boxes[at].right)
        elif above:
            at = min(above, key=lambda at: (boxes[at].bottom - middle, -boxes[at].right))
        else:
            loose.append(text)
            continue
        while at + 1 < len(letters) and letters[at + 1].strip():  # a field may begin over a word
            at += 1
        behind[at] = f"{behind.get(at, '')} {text}"
    text = "".join(letter + behind.get(at, "") for at, letter in enumerate(letters))
    return "\n".join([text, *loose])


def _letters(lines: pypdfium2.PdfTextPage) -> list[str]:
    """The page's characters, one per index of PDFium's; empty where it has none."""
    from pypdfium2 import raw

    codes = (raw.FPDFText_GetUnicode(lines.raw, at) for at in range(lines.count_chars()))
    return [chr(code) if 0 < code <= 0x10FFFF else "" for code in codes]


def _swapped_ligatures(lines: pypdfium2.PdfTextPage) -> dict[int, str]:
    """Characters of lam-alef ligatures, which PDFium gives in the order of the page, by index in the right
    order.
    """
    found: dict[int, str] = {}
    letters = _letters(lines)
    for at, (first, second) in enumerate(pairwise(letters)):
        if (
            first
            and first in _ALEFS
            and second == _LAM
            and lines.get_charbox(at) == lines.get_charbox(at + 1)
        ):
            found[at], found[at + 1] = second, first
    return found
