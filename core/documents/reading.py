"""Reads a document: recognises the kind of file, calls its reader and turns errors into refusals.

The first bytes decide the kind, and a zip's parts; the suffix only separates kinds of text. Text, code and
JSON are unchanged; everything else becomes readable text, with a record of the parts left out. Refusals are
`RequestError`s that name the file. Only regular files are opened, once each, so that a change on disk has no
effect. `read_document` enforces the limit of characters only; `main`, the process that reads one document,
all others.

Readers are imported when the first file of their kind is read.
"""

from __future__ import annotations

import gc
import mmap
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import file_digest
from importlib import import_module
from pathlib import Path
from typing import IO
from unicodedata import normalize

import msgspec
from msgspec import Struct

from core.documents import limits, strings
from core.documents.compound import root_names
from core.documents.flat import HEAD_BYTES, flat_kind, packaged
from core.documents.text import Guess, declared_in_text, decode
from core.documents.types import KINDS_BY_ENDING, text_file
from core.errors import RequestError, reason_of
from core.events import Attachment, LeftOut, Scans
from core.events.wire import well_formed
from core.system.child_bounds import LineOutput, read_within

# An argument of the process.
SCANS = "scans"
_TELL_EVERY_S = 0.05
_PDF_MARK = b"%PDF-"
_ZIP_MARK = b"PK\x03\x04"
# Signatures of files that people drop by mistake: whole ones, so that a text may begin with the same letters.
_OTHER_KINDS = tuple(
    (re.compile(mark, re.DOTALL), kind)
    for mark, kind in (
        (rb"\x89PNG", strings.KIND_PICTURE),
        (rb"\xff\xd8\xff", strings.KIND_PICTURE),
        (rb"GIF8[79]a", strings.KIND_PICTURE),
        (rb"BM.{4}\0\0\0\0", strings.KIND_PICTURE),
        (rb"II\*\0|MM\0\*", strings.KIND_PICTURE),
        (rb"RIFF.{4}WEBP", strings.KIND_PICTURE),
        (rb".{4}ftyp(?:heic|heix|mif1|avif)", strings.KIND_PICTURE),
        (rb"\x1f\x8b", strings.KIND_ARCHIVE),
        (rb"7z\xbc\xaf", strings.KIND_ARCHIVE),
        (rb"Rar!\x1a\x07", strings.KIND_ARCHIVE),
        (rb".{257}ustar", strings.KIND_ARCHIVE),
        (rb"ID3[\x02-\x04].[\x00-\xff][\x00-\x7f]{4}", strings.KIND_SOUND),
        (rb"OggS\0", strings.KIND_SOUND),
        (rb"fLaC\0", strings.KIND_SOUND),
        (rb"RIFF.{4}WAVE", strings.KIND_SOUND),
        (rb"\x7fELF", strings.KIND_PROGRAM),
        (rb"\xcf\xfa\xed\xfe", strings.KIND_PROGRAM),
        (rb"MZ[^\n\r]{0,58}\0", strings.KIND_PROGRAM),
    )
)
_IMAGE_ENDINGS = frozenset(
    (
        ".png",
        ".jpg",
        ".jpeg",
        ".jpe",
        ".gif",
        ".webp",
        ".tif",
        ".tiff",
        ".bmp",
        ".avif",
        ".heic",
        ".heif",
        ".svg",
    )
)
_RTF_MARK = b"{\\rtf"
# Web programs write pages, mail or separated cells under the endings of Office files.
_OFFICE_ENDINGS = {".xls": "table", ".xlsx": "table", ".doc": "text", ".docx": "text"}
_PAGE = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)?"
    rb"<(?:!doctype html|(?:html|head|body|table)[\s>])",
    re.IGNORECASE | re.DOTALL,
)
_MAIL = re.compile(rb"(?:MIME-Version|Message-ID|Date|From|Subject): [^\n]*\n[\w-]+:", re.IGNORECASE)
_MAILBOX = re.compile(rb"From [^\n]{1,200}\d{4}[^\n]{0,40}\n[A-Za-z-]+:")
_WEBVTT_MARKS = (b"WEBVTT", b"\xef\xbb\xbfWEBVTT")
_OLE_MARK = b"\xd0\xcf\x11\xe0"
_WORKBOOKS = frozenset(("Workbook", "Book"))
# Format of a zip by parts that only this format has, and by the type that a part `mimetype` names.
_PARTS = (
    ("word/", "word"),
    ("xl/workbook.", "sheets"),
    ("ppt/presentation.xml", "slides"),
    ("META-INF/container.xml", "book"),
)
_TYPES = (
    (b"application/vnd.oasis.opendocument.spreadsheet", "sheets"),
    (b"application/vnd.oasis.opendocument.text", "opendocument"),
    (b"application/vnd.oasis.opendocument.presentation", "opendocument"),
    (b"application/epub+zip", "book"),
)
_MOST_TYPE_BYTES = 200
_RICH_TEXT_PART = ".rtfd/TXT.rtf"  # of a zip that the Finder makes
# Files that are read whole may be less long.
_MOST_BYTES = {
    **dict.fromkeys(("text", *KINDS_BY_ENDING.values()), limits.MOST_TEXT_BYTES),
    "rtf": limits.MOST_RTF_BYTES,
    **dict.fromkeys(("mail", "mailbox", "webarchive"), limits.MOST_MAIL_BYTES),
    **dict.fromkeys(("flat word", "flat sheets", "flat slides", "flat opendocument"), limits.MOST_RTF_BYTES),
}
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def shown_name(path: Path) -> str:
    """The file's name, in characters that can be shown and sent; file systems allow any bytes."""
    return shown_text(path.name)


def shown_text(name: str) -> str:
    """A file name without characters that cannot be shown or sent. Composed, as people type it: some file
    systems of macOS decompose names.
    """
    return _CONTROLS.sub("\ufffd", normalize("NFC", os.fsencode(name).decode("utf-8", "replace")))


class Document(Struct, frozen=True):
    """The text of a file; `guess` is its encoding if it is not certain, `left_out` what the text lacks.

    `scans`: pages without text. `refused`: if all are, and the text is their marks, the message for a model
    that does not see. `pages`: the characters before each page of a PDF.
    """

    text: str
    guess: Guess | None = None
    left_out: tuple[LeftOut, ...] = ()
    scans: Scans | None = None
    refused: str = ""
    pages: tuple[int, ...] = ()

    @property
    def refusal(self) -> RequestError | None:
        """The error for a model that does not see; None if it can read some of the file."""
        return RequestError(self.refused, strings.SCAN_HINT) if self.refused else None

    def attachment(self, name: str) -> Attachment:
        return Attachment(name, self.text, left_out=self.left_out, scans=self.scans, pages=self.pages)


def is_image(path: Path) -> bool:
    """Whether the file at `path` is to be read as an image: by its first bytes or by its ending, so that a
    damaged image is refused as an image. False if it cannot be opened.
    """
    if path.suffix.lower() in _IMAGE_ENDINGS:
        return True
    try:
        with opened_file(path, shown_name(path)) as (stream, _):
            head = stream.read(HEAD_BYTES)
    except RequestError:
        return False
    return any(kind == strings.KIND_PICTURE and mark.match(head) for mark, kind in _OTHER_KINDS)


def quick_document(path: Path, encoding: str = "") -> Document | None:
    """The text of a short plain text file; None if the file needs a reader process.

    `encoding` is the codec to read it in, if it is known. Reads at most `QUICK_BYTES`, in time that grows
    with them alone. Raises `RequestError`.
    """
    name = shown_name(path)
    with opened_file(path, name) as (stream, size_bytes):
        kind = _kind(stream, size_bytes, path, name)
        if kind != "text" or size_bytes > limits.QUICK_BYTES:
            return None
        source = _Source(stream, path, name, encoding, limits.Gathered(limits.Limits().characters))
        return source.document(_plain(stream.read(limits.QUICK_BYTES), source))


def read_document(
    path: Path,
    told: limits.Told = lambda done, total, unit: None,
    most_characters: int = limits.Limits().characters,
    encoding: str = "",
    *,
    scans: bool = False,
) -> Document:
    """The file at `path`, of any type in `types.DOCUMENT_TYPES` or text.

    Calls `told` with the progress. `encoding` is the codec of plain text and HTML, if it is known. Raises
    `RequestError` if the file has no text, except with `scans` if it has pages that can be drawn: then the
    text is their marks; MemoryError, and any exception of `told`.
    """
    name = shown_name(path)
    with opened_file(path, name) as (stream, size_bytes):
        kind = _kind(stream, size_bytes, path, name)
        source = _Source(stream, path, name, encoding, limits.Gathered(most_characters))
        try:
            if kind in _READERS:
                text = _formatted(kind, source, told)
            else:
                told(0, max(size_bytes, 1), "bytes")
                text = _text_of_kind(kind, source)
        except limits.TooLongError:
            raise RequestError(strings.file_too_long(name, most_characters), strings.PASTE_PART) from None
    document = source.document(well_formed(text.replace("\0", "\ufffd")))
    if document.refusal and not scans:
        raise document.refusal
    return document


class _Source:
    """An open file, how it is to be read, and the findings."""

    def __init__(
        self, stream: IO[bytes], path: Path, name: str, encoding: str, gathered: limits.Gathered
    ) -> None:
        self.stream, self.path, self.name, self.encoding = stream, path, name, encoding
        self.gathered = gathered
        self.scans: Scans | None = None
        self.refused = ""
        self.pages: tuple[int, ...] = ()
        self.most_characters = gathered.left
        self.guess: Guess | None = None

    def document(self, text: str) -> Document:
        """The result. Raises `RequestError` if the text is empty or too long."""
        if not text or text.isspace():
            raise RequestError(strings.file_empty(self.name), strings.EMPTY_HINT)
        if len(text) > self.most_characters:
            raise RequestError(strings.file_too_long(self.name, self.most_characters), strings.PASTE_PART)
        if damaged := text.count("\ufffd"):
            self.gathered.leave_out("damaged character", damaged)
        found = self.gathered.left_out.items()
        left_out = tuple(LeftOut(kind, count, place) for (kind, place), count in found)
        return Document(text, self.guess, left_out, self.scans, self.refused, self.pages)


@contextmanager
def opened_file(path: Path, name: str) -> Iterator[tuple[IO[bytes], int]]:
    """The open file and its size; its errors are `RequestError`s. Never waits for a pipe or a device."""
    path = text_file(path)
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise RequestError(strings.not_a_file(name), strings.ATTACH_FILES)
        stream = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    except (FileNotFoundError, NotADirectoryError, ValueError):
        # A name with a zero byte is a ValueError.
        raise RequestError(strings.not_a_file(name), strings.ATTACH_FILES) from None
    except OSError as error:
        raise _unreadable(name, error) from error
    with stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise RequestError(strings.not_a_file(name), strings.ATTACH_FILES)
        try:
            yield stream, status.st_size
        except OSError as error:
            raise _unreadable(name, error) from error


def _kind(stream: IO[bytes], size_bytes: int, path: Path, name: str) -> str:
    """One of `_READERS`, text or a kind of it. The stream is at its beginning again."""
    head = stream.read(HEAD_BYTES)
    stream.seek(0)
    kind = KINDS_BY_ENDING.get(path.suffix.lower(), "text")
    # Programs write other bytes before a PDF's header; a text may mention it.
    if head.lstrip().startswith(_PDF_MARK) or (path.suffix.lower() == ".pdf" and _PDF_MARK in head):
        kind = "pdf"
    elif head.startswith(_ZIP_MARK):
        kind = _zip_kind(stream)
    elif head.startswith(_OLE_MARK):
        kind = "old"
    elif head.lstrip().startswith(_RTF_MARK):
        kind = "rtf"
    elif head.startswith(_WEBVTT_MARKS):
        kind = "subtitles"
    elif _MAILBOX.match(head) and kind in ("text", "mail"):
        kind = "mailbox"
    else:
        for mark, other in _OTHER_KINDS:
            if mark.match(head):
                raise _refused(name, other)
        if flat := flat_kind(head):
            kind = f"flat {flat}"
        elif (otherwise := _OFFICE_ENDINGS.get(path.suffix.lower())) is not None:
            kind = "html" if _PAGE.match(head) else "mail" if _MAIL.match(head) else otherwise
    most_bytes = _MOST_BYTES.get(kind, limits.MOST_DOCUMENT_BYTES)
    if size_bytes > most_bytes:
        raise RequestError(strings.file_size(name, size_bytes, most_bytes), strings.PASTE_PART)
    return kind


def _plain(data: bytes, source: _Source, declared: str = "") -> str:
    try:
        found = decode(data, declared or declared_in_text(data), source.encoding)
    except ValueError:
        raise _refused(source.name, strings.KIND_BINARY) from None
    if not found.certain and found.others:
        source.guess = Guess(found.encoding, found.others)
    return found.text


def _text_of_kind(kind: str, source: _Source) -> str:
    """The readable text of a kind of text; the file's own if it has not the format of its ending."""
    text = _plain(source.stream.read(limits.MOST_TEXT_BYTES), source)
    if kind == "text":
        return text
    from core.documents import text_formats

    found = text_formats.READERS[kind](text, source.gathered)
    return text if found is None else found


def _zip_kind(stream: IO[bytes]) -> str:
    """The kind of document that a zip is; `word` if it is damaged or another archive."""
    from core.documents.parts import Package

    try:
        with Package(stream) as archive:
            if "mimetype" in archive.NameToInfo:
                with archive.open("mimetype") as part:
                    named = part.read(_MOST_TYPE_BYTES).strip()
                for mime_type, kind in _TYPES:
                    if named.startswith(mime_type):
                        return kind
            if any(name.endswith(_RICH_TEXT_PART) for name in archive.NameToInfo):
                return "zipped rtf"
            for prefix, kind in _PARTS:
                if any(name.casefold().startswith(prefix.casefold()) for name in archive.NameToInfo):
                    return kind
    except Exception:  # a damaged zip fails in as many ways as there are places to damage
        return "word"
    finally:
        stream.seek(0)
    return "word"


def _pdf(source: _Source, told: limits.Told) -> str:
    from core.documents.pdf import pdf_text

    found = pdf_text(source.stream, told, source.gathered)
    source.pages = found.pages
    if found.scans:
        source.scans = Scans(os.path.abspath(source.path), hash_of_file(source.stream), found.scans)
        if not found.says:
            no_letters = any(kind == "unreadable page" for kind, _ in source.gathered.left_out)
            refused = strings.file_without_letters if no_letters else strings.file_scanned
            source.refused = refused(source.name)
    return found.text if found.says or found.scans else ""


def hash_of_file(stream: IO[bytes]) -> str:
    """SHA-256 of a file, as hexadecimal digits."""
    stream.seek(0)
    return file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]


def _html(source: _Source, told: limits.Told) -> str:
    from core.documents.html import declared_charset, html_text

    data = source.stream.read(limits.MOST_TEXT_BYTES)
    return html_text(_plain(data, source, declared_charset(data)), told, source.gathered)


def _mail(source: _Source, told: limits.Told) -> str:
    from core.documents.mail import mail_text, mailbox_text, message_of_mac

    data = source.stream.read(limits.MOST_MAIL_BYTES)
    text: str | None
    try:
        if _MAILBOX.match(data):
            text = mailbox_text(data, source.gathered)
        else:
            text = mail_text(message_of_mac(data), source.gathered)
    except (limits.TooLongError, MemoryError):
        raise
    except Exception as error:  # the email package fails in many ways
        raise limits.DamagedError from error
    return _plain(data, source) if text is None else text


def _webarchive(source: _Source, told: limits.Told) -> str:
    from core.documents.webarchive import webarchive_text

    return webarchive_text(source.stream.read(limits.MOST_MAIL_BYTES), told, source.gathered)


def _zipped_rtf(source: _Source, told: limits.Told) -> str:
    from core.documents.parts import opened, read_part
    from core.documents.rtf import rtf_text

    with opened(source.stream) as archive:
        part = min(name for name in archive.NameToInfo if name.endswith(_RICH_TEXT_PART))
        return rtf_text(read_part(archive, part, limits.MOST_RTF_BYTES), told, source.gathered)


def _rtf(source: _Source, told: limits.Told) -> str:
    from core.documents.rtf import rtf_text

    return rtf_text(source.stream.read(limits.MOST_RTF_BYTES), told, source.gathered)


def _zipped(name: str) -> Callable[[_Source, limits.Told], str]:
    """The reader `NAME_text` of the module `name`."""

    def read(source: _Source, told: limits.Told) -> str:
        reader = getattr(import_module(f"core.documents.{name}"), f"{name}_text")
        return str(reader(source.stream, told, source.gathered))

    return read


def _compound(source: _Source, told: limits.Told) -> str:
    """A workbook; calamine would also read the workbook that another document embeds."""
    inside = root_names(source.stream)
    if inside and _WORKBOOKS.isdisjoint(inside):
        raise limits.DamagedError
    return _READERS["sheets"][0](source, told)


# Readers of formats, and the format's name for errors about damaged files.
_READERS: dict[str, tuple[Callable[[_Source, limits.Told], str], str]] = {
    "pdf": (_pdf, "PDF"),
    "html": (_html, "HTML"),
    "mail": (_mail, "mail"),
    "mailbox": (_mail, "mail"),
    "webarchive": (_webarchive, "web archive"),
    "zipped rtf": (_zipped_rtf, "rich text"),
    "word": (_zipped("docx"), "Word"),
    "sheets": (_zipped("sheets"), "spreadsheet"),
    "old": (_compound, "spreadsheet"),
    "slides": (_zipped("slides"), "presentation"),
    "opendocument": (_zipped("opendocument"), "OpenDocument"),
    "book": (_zipped("epub"), "EPUB"),
    "rtf": (_rtf, "rich text"),
}
_READERS |= {f"flat {kind}": _READERS[kind] for kind in ("word", "sheets", "slides", "opendocument")}


def _formatted(kind: str, source: _Source, told: limits.Told) -> str:
    read, title = _READERS[kind]
    try:
        if kind.startswith("flat "):
            source.stream = packaged(source.stream.read(limits.MOST_RTF_BYTES))
        return read(source, told)
    except limits.TooLongError:
        raise
    except limits.NotWordError:
        is_open = source.path.suffix.lower() in (".pages", ".key", ".numbers", ".odg")
        raise _refused(source.name, strings.KIND_OPEN_DOCUMENT if is_open else strings.KIND_ARCHIVE) from None
    except limits.UnreadableError as error:
        if kind == "old" and isinstance(error, limits.DamagedError):
            raise _old(source, title) from error
        raise _of(error, source.name, title) from error


# Records at the beginning of an encrypted .xls workbook.
_ENCRYPTED = re.compile(rb"\x09\x08(?:\x10\0.{16}|\x08\0.{8})(?:\x86\0\0\0)?\x2f\0", re.DOTALL)


def _old(source: _Source, title: str) -> RequestError:
    """Why a compound file is refused: an old format, a locked new one, or a damaged workbook."""
    name, inside = source.name, root_names(source.stream)
    is_workbook = not _WORKBOOKS.isdisjoint(inside)
    if "EncryptedPackage" in inside:
        return _of(limits.LockedError(), name, title)
    if "__properties_version1.0" in inside:
        return _refused(name, strings.KIND_OUTLOOK)
    if is_workbook:
        with mmap.mmap(source.stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if _ENCRYPTED.search(data):
                return _of(limits.LockedError(), name, title)
    is_sheet = is_workbook or source.path.suffix.lower() == ".xls"
    return _of(limits.DamagedError(), name, title) if is_sheet else _refused(name, strings.KIND_OLD_OFFICE)


def _of(error: limits.UnreadableError, name: str, kind: str) -> RequestError:
    """`error` in words."""
    if isinstance(error, limits.LockedError):
        return RequestError(strings.file_locked(name), strings.UNLOCK)
    if isinstance(error, limits.UnpacksError):
        told = strings.file_unpacks_to(name, error.size_bytes, error.most_bytes)
        return RequestError(told, strings.PASTE_PART)
    if isinstance(error, limits.EncodedError):
        return RequestError(strings.file_encoded(name, error.encoding), strings.SAVE_AGAIN)
    return RequestError(strings.file_damaged(name, kind), strings.CHECK_FILE)


def _unreadable(name: str, error: OSError) -> RequestError:
    return RequestError(strings.file_unreadable(name, reason_of(error)), strings.CHECK_FILE)


def _refused(name: str, kind: tuple[str, str]) -> RequestError:
    what, hint = kind
    return RequestError(strings.file_is(name, what), hint)


# ---- the process


class DocumentLine(Struct, frozen=True):
    """A line of the process: the progress (`done` of `total`), or at the end the document or the refusal."""

    done: int = 0
    total: int = 0
    unit: limits.Unit = "bytes"
    document: Document | None = None
    refused: str | None = None
    hint: str = ""


def main(arguments: Sequence[str]) -> int:
    """Read the file that `arguments` name: path, bytes of memory, seconds of processor, characters, codec,
    and `scans` for PDFs of pictures alone.

    The last two may be left out. Writes `DocumentLine`s to stdout; returns 0 if there is a text, else 1.
    """
    path, (memory_bytes, cpu_s, characters) = Path(arguments[0]), map(int, arguments[1:4])
    name = shown_name(path)
    output = LineOutput()
    told_at = 0.0
    # Words of a page are many objects without cycles; the collector would go through them again and again.
    gc.set_threshold(50_000)

    def write(line: DocumentLine) -> None:
        output.write(msgspec.json.encode(line))

    def tell(done: int, total: int, unit: limits.Unit) -> None:
        nonlocal told_at
        now = time.monotonic()
        if now >= told_at + _TELL_EVERY_S:
            told_at = now
            write(DocumentLine(done, total, unit))

    def read() -> None:
        encoding, takes_scans = "".join(arguments[4:5]), arguments[5:6] == [SCANS]
        document = read_document(path, tell, characters, encoding, scans=takes_scans)
        write(DocumentLine(document=document))

    return read_within(
        memory_bytes,
        cpu_s,
        read,
        lambda error: write(DocumentLine(refused=error.message, hint=error.hint)),
        RequestError(strings.file_needs_memory(name, memory_bytes), strings.PASTE_PART),
        lambda why: RequestError(strings.file_unreadable(name, why), strings.CHECK_FILE),
    )
