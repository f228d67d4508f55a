"""One XML part of a Word document, unpacked and parsed a piece at a time; no tree is built of it.

A document type, and with it every entity, is refused: Word writes none. Knows no element.
"""

from __future__ import annotations

import zipfile
from typing import Protocol
from xml.parsers import expat

from core.documents.limits import DamagedError, EncodedError, LockedError, Told, UnpacksError

# What the tags of Word's own elements and attributes begin with.
W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main "
# Older expats look at a tag from its beginning again with every piece of it.
_MOST_TAG_BYTES = 8 * 1024 * 1024
# With its namespace. A long one would be copied for every element.
_MOST_NAME_CHARACTERS = 1024
_PIECE_BYTES = 1024 * 1024
_WORDS_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class Elements(Protocol):
    """Takes a part's elements as they come. Names are `namespace name`."""

    def start(self, name: str, attributes: dict[str, str]) -> None: ...

    def end(self, name: str) -> None: ...

    def characters(self, text: str) -> None: ...


def parse_part(
    archive: zipfile.ZipFile, name: str, elements: Elements, most_bytes: int, told: Told | None = None
) -> None:
    """Give `elements` the part `name`. Raises `UnreadableError`, OSError, or an error of the zip's."""
    info = archive.getinfo(name)
    if info.flag_bits & 1:
        raise LockedError
    if info.compress_type not in _WORDS_COMPRESSIONS:
        raise DamagedError
    if info.file_size > most_bytes:
        raise UnpacksError(info.file_size, most_bytes)
    encoding = ""

    def declared(version: str, named: str | None, standalone: int) -> None:
        nonlocal encoding
        encoding = (named or "")[:40]

    def start(tag: str, attributes: dict[str, str]) -> None:
        if len(tag) > _MOST_NAME_CHARACTERS:
            raise DamagedError
        elements.start(tag, attributes)

    def document_type(*parts: object) -> None:
        raise DamagedError

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = elements.end
    parser.CharacterDataHandler = elements.characters
    parser.XmlDeclHandler = declared
    parser.StartDoctypeDeclHandler = document_type
    done = 0
    with archive.open(info) as part:
        while True:
            if told:
                told(done, max(done, info.file_size, 1), "bytes")
            piece = part.read(_PIECE_BYTES)
            done += len(piece)
            try:
                parser.Parse(piece, not piece)
            except expat.ExpatError as error:
                raise DamagedError from error
            except (LookupError, ValueError) as error:
                # From the codec that the declaration names.
                raise EncodedError(encoding) from error
            if not piece:
                return
            if done - parser.CurrentByteIndex > _MOST_TAG_BYTES:
                raise DamagedError
