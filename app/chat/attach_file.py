"""Reading a file that is to be attached to a message: which reader it needs, and every refusal.

What a file is, its first bytes say; its ending decides only between kinds of text. Text, code,
CSV and JSON stay as they are; HTML, PDF and Word become readable text. Refusals are
`RequestError`s that name the file. Long readings tell how far they are and can be given up.
Knows no widget and no thread.

A kind's reader comes in with the first file of that kind: windows are opened more often than documents.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from app.chat import strings
from app.chat.attach_text import decode_text
from core.errors import RequestError
from core.events import Attachment

# Beyond any context: about two million tokens.
MAX_TEXT_CHARACTERS = 8_000_000
MAX_TEXT_BYTES = 32 * 1024 * 1024
# PDF and Word files are mostly pictures and fonts.
MAX_DOCUMENT_BYTES = 512 * 1024 * 1024
# Read between two frames, even from a slow disk.
QUICK_BYTES = 1024 * 1024

Progressed = Callable[[float, str], None]

_HTML_ENDINGS = frozenset((".html", ".htm", ".xhtml"))
_PDF_MARK = b"%PDF-"
_ZIP_MARK = b"PK\x03\x04"
# The first bytes of what people drop by mistake.
_OTHER_KINDS = (
    (b"\x89PNG", strings.KIND_PICTURE),
    (b"\xff\xd8\xff", strings.KIND_PICTURE),
    (b"GIF8", strings.KIND_PICTURE),
    (b"BM", strings.KIND_PICTURE),
    (b"II*\0", strings.KIND_PICTURE),
    (b"MM\0*", strings.KIND_PICTURE),
    (b"\x1f\x8b", strings.KIND_ARCHIVE),
    (b"7z\xbc\xaf", strings.KIND_ARCHIVE),
    (b"Rar!", strings.KIND_ARCHIVE),
    (b"ID3", strings.KIND_SOUND),
    (b"OggS", strings.KIND_SOUND),
    (b"fLaC", strings.KIND_SOUND),
    (b"\x7fELF", strings.KIND_PROGRAM),
    (b"\xcf\xfa\xed\xfe", strings.KIND_PROGRAM),
    (b"MZ", strings.KIND_PROGRAM),
    (b"\xd0\xcf\x11\xe0", strings.KIND_OLD_OFFICE),
    (b"{\\rtf", strings.KIND_RTF),
)
_ZIP_KINDS = {
    ".xlsx": strings.KIND_SHEET,
    ".ods": strings.KIND_SHEET,
    ".pptx": strings.KIND_SLIDES,
    ".odp": strings.KIND_SLIDES,
    ".odt": strings.KIND_OPEN_DOCUMENT,
    ".pages": strings.KIND_OPEN_DOCUMENT,
    ".epub": strings.KIND_BOOK,
}


class GivenUpError(Exception):
    """Raise it from `progressed` when nobody wants the text any more."""


def is_quick(path: Path) -> bool:
    """Whether `path` is read in no time: a short text, or something that will be refused."""
    try:
        if not path.is_file():
            return True
        with path.open("rb") as stream:
            head = stream.read(1024)
        return path.stat().st_size <= QUICK_BYTES and _PDF_MARK not in head and not head.startswith(_ZIP_MARK)
    except OSError:
        return True


def read_attachment(path: Path, progressed: Progressed = lambda fraction, words: None) -> Attachment:
    """The text of `path`, under its file name.

    `progressed` gets the fraction done and words for it, now and then, on the caller's thread.
    Raises `RequestError` if the file gives no text, and whatever `progressed` raises.
    """
    try:
        text = _text(path, progressed)
    except MemoryError:
        raise RequestError(strings.file_too_large(path.name), strings.PASTE_PART) from None
    except OSError as error:
        why = error.strerror or str(error)
        raise RequestError(strings.file_unreadable(path.name, why), strings.CHECK_FILE) from error
    if not text.strip():
        raise RequestError(strings.file_empty(path.name), strings.EMPTY_HINT)
    if len(text) > MAX_TEXT_CHARACTERS:
        raise RequestError(
            strings.file_too_long(path.name, len(text), MAX_TEXT_CHARACTERS), strings.PASTE_PART
        )
    return Attachment(path.name, text)


def _text(path: Path, progressed: Progressed) -> str:
    name = path.name
    if not path.is_file():
        raise RequestError(strings.not_a_file(name), strings.ATTACH_FILES)
    size_bytes = path.stat().st_size
    with path.open("rb") as stream:
        head = stream.read(1024)
    if _PDF_MARK in head:
        _check_size(name, size_bytes, MAX_DOCUMENT_BYTES)
        return _pdf(path, progressed)
    if head.startswith(_ZIP_MARK):
        from app.chat.attach_docx import is_docx

        if not is_docx(path):
            raise _refused(name, _ZIP_KINDS.get(path.suffix.lower(), strings.KIND_ARCHIVE))
        _check_size(name, size_bytes, MAX_DOCUMENT_BYTES)
        return _docx(path, progressed)
    for mark, kind in _OTHER_KINDS:
        if head.startswith(mark) and (len(mark) > 2 or b"\0" in head):
            raise _refused(name, kind)
    _check_size(name, size_bytes, MAX_TEXT_BYTES)
    progressed(0.0, strings.READING_FILE)
    return _plain(path)


def _plain(path: Path) -> str:
    data = path.read_bytes()
    is_html = path.suffix.lower() in _HTML_ENDINGS
    charset = ""
    if is_html:
        from app.chat.attach_html import declared_charset, html_text

        charset = declared_charset(data)
    try:
        text = decode_text(data, charset)
    except ValueError:
        raise _refused(path.name, strings.KIND_BINARY) from None
    return html_text(text) if is_html else text


def _pdf(path: Path, progressed: Progressed) -> str:
    from app.chat.attach_pdf import PdfError, PdfLockedError, pdf_text

    def page(done: int, pages: int) -> None:
        progressed(done / pages, strings.READING_PAGE.format(page=done + 1, pages=pages))

    try:
        text = pdf_text(path, page)
    except PdfLockedError as error:
        raise RequestError(strings.file_locked(path.name), strings.UNLOCK) from error
    except PdfError as error:
        raise RequestError(strings.file_damaged(path.name, "PDF"), strings.CHECK_FILE) from error
    if not text:
        raise RequestError(strings.file_scanned(path.name), strings.EMPTY_HINT)
    return text


def _docx(path: Path, progressed: Progressed) -> str:
    from app.chat.attach_docx import DocxError, docx_text

    try:
        return docx_text(path, lambda fraction: progressed(fraction, strings.READING_FILE))
    except DocxError as error:
        raise RequestError(strings.file_damaged(path.name, "Word"), strings.CHECK_FILE) from error


def _check_size(name: str, size_bytes: int, most_bytes: int) -> None:
    if size_bytes > most_bytes:
        raise RequestError(strings.file_size(name, size_bytes, most_bytes), strings.PASTE_PART)


def _refused(name: str, kind: tuple[str, str]) -> RequestError:
    what, hint = kind
    return RequestError(strings.file_is(name, what), hint)
