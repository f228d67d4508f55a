"""Word documents (.docx) to text: paragraphs, headings, lists and tables of the main text.

A .docx is a zip with one XML file that holds the text. It is unpacked and parsed a piece at a time
and no tree is built, so that what it takes does not grow with it. Comments, footnotes, page headers
and deleted passages are not the text and are left out. A document type, and with it every entity,
is refused: Word writes none. Own code, because the usual library brings a compiled XML parser for
what is a page of code here.
"""

from __future__ import annotations

import zipfile
from typing import IO
from xml.parsers import expat

from core.documents.limits import (
    DamagedError,
    EncodedError,
    Gathered,
    LockedError,
    NotWordError,
    Told,
    UnpacksError,
    UnreadableError,
)

_MAIN = "word/document.xml"
_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main "
_FALLBACK = "http://schemas.openxmlformats.org/markup-compatibility/2006 Fallback"
# The XML of the longest books is a tenth of this; a zip can claim any size.
MOST_XML_BYTES = 256 * 1024 * 1024
_PIECE_BYTES = 1024 * 1024
# Older expats look at a tag from its beginning again with every piece of it.
_MOST_TAG_BYTES = 8 * 1024 * 1024
# With its namespace. A long one would be copied for every element.
_MOST_NAME_CHARACTERS = 1024
_WORDS_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def docx_text(stream: IO[bytes], told: Told, gathered: Gathered) -> str:
    """The document's text. Raises `UnreadableError`, OSError."""
    try:
        with zipfile.ZipFile(stream) as archive:
            if _MAIN not in archive.NameToInfo:
                raise NotWordError
            info = archive.getinfo(_MAIN)
            if info.flag_bits & 1:
                raise LockedError
            if info.compress_type not in _WORDS_COMPRESSIONS:
                raise DamagedError
            if info.file_size > MOST_XML_BYTES:
                raise UnpacksError(info.file_size, MOST_XML_BYTES)
            with archive.open(info) as part:
                _parse(part, info.file_size, told, gathered)
    except (UnreadableError, OSError, MemoryError):
        raise
    except Exception as error:  # a damaged zip fails in as many ways as there are places to damage
        raise (DamagedError if _begins_like_word(stream) else NotWordError) from error
    return _tidy(gathered.text())


def _begins_like_word(stream: IO[bytes]) -> bool:
    """Of a zip whose table of contents is gone: what its first parts are called."""
    stream.seek(0)
    return b"word/" in stream.read(4096)


def _parse(part: IO[bytes], size_bytes: int, told: Told, gathered: Gathered) -> None:
    words = _Words(gathered)
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = words.start
    parser.EndElementHandler = words.end
    parser.CharacterDataHandler = words.characters
    parser.XmlDeclHandler = words.declared
    parser.StartDoctypeDeclHandler = words.document_type
    done = 0
    while True:
        told(done, max(done, size_bytes, 1), "bytes")
        piece = part.read(_PIECE_BYTES)
        done += len(piece)
        try:
            parser.Parse(piece, not piece)
        except expat.ExpatError as error:
            raise DamagedError from error
        except (LookupError, ValueError) as error:
            # From the codec that the declaration names.
            raise EncodedError(words.encoding) from error
        if not piece:
            return
        if done - parser.CurrentByteIndex > _MOST_TAG_BYTES:
            raise DamagedError


class _Words:
    """Takes the parser's events and writes to `gathered`."""

    def __init__(self, gathered: Gathered) -> None:
        self.encoding = ""
        self._gathered = gathered
        self._line = Gathered(gathered.left)
        self._mark = ""
        # How many are open: what older programs show instead (the same words once more), and cells.
        self._fallbacks = self._cells = 0
        self._in_text = False

    def declared(self, version: str, encoding: str | None, standalone: int) -> None:
        self.encoding = (encoding or "")[:40]

    def document_type(self, *parts: object) -> None:
        raise DamagedError

    def characters(self, text: str) -> None:
        if self._in_text:
            self._line.add(text)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if len(name) > _MOST_NAME_CHARACTERS:
            raise DamagedError
        if name == _FALLBACK:
            self._fallbacks += 1
        if self._fallbacks or not name.startswith(_W):
            return
        tag = name[len(_W) :]
        if tag == "t":
            self._in_text = True
        elif tag == "tab":
            self._line.add("\t")
        elif tag in ("br", "cr"):
            self._line.add("\n")
        elif tag == "pStyle":
            self._mark = _heading(attributes.get(_W + "val", "")) or self._mark
        elif tag == "numPr":
            self._mark = self._mark or "- "
        elif tag == "tc":
            self._cells += 1

    def end(self, name: str) -> None:
        if name == _FALLBACK:
            self._fallbacks -= 1
            return
        if self._fallbacks or not name.startswith(_W):
            return
        tag = name[len(_W) :]
        if tag == "t":
            self._in_text = False
        elif tag == "p":
            self._gathered.add(_paragraph(self._mark, self._line.text(), in_cell=self._cells > 0))
            self._mark, self._line = "", Gathered(self._gathered.left)
        elif tag == "tc":
            self._cells -= 1
            self._gathered.add("\t")
        elif tag in ("tr", "tbl"):
            self._gathered.add("\n")


def _paragraph(mark: str, text: str, *, in_cell: bool) -> str:
    if in_cell:
        return " ".join(text.split()) + " "
    text = text.strip()
    return f"{mark}{text}\n\n" if text and not mark.startswith("- ") else f"{mark}{text}\n" if text else "\n"


def _heading(style: str) -> str:
    if style == "Title":
        return "# "
    level = style.removeprefix("Heading")
    return "#" * int(level) + " " if level in ("1", "2", "3", "4", "5", "6") and style != level else ""


def _tidy(text: str) -> str:
    kept: list[str] = []
    for line in (line.rstrip() for line in text.replace(" \t", "\t").split("\n")):
        if line or (kept and kept[-1]):
            kept.append(line)
    return "\n".join(kept).strip()
