"""Parts of a zipped document (Office, OpenDocument, EPUB).

XML parts are decompressed and parsed in pieces; no tree is built. Declarations of entities are refused:
they can make a short file endless, and no current program writes one. Strict Open XML is given to the
reader in the namespaces of ordinary files.
"""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO
from xml.parsers import expat

from core.documents.limits import DamagedError, EncodedError, LockedError, Told, UnpacksError, UnreadableError

# What the tags of Word's own elements and attributes begin with; A: drawings, P: slides.
W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main "
M = "http://schemas.openxmlformats.org/officeDocument/2006/math "
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships "
A = "http://schemas.openxmlformats.org/drawingml/2006/main "
P = "http://schemas.openxmlformats.org/presentationml/2006/main "
CHART = "http://schemas.openxmlformats.org/drawingml/2006/chart "
DIAGRAM = "http://schemas.openxmlformats.org/drawingml/2006/diagram "
FALLBACK = "http://schemas.openxmlformats.org/markup-compatibility/2006 Fallback"
# The XML of the longest books is a tenth of this; a zip can claim any size.
MOST_XML_BYTES = 256 * 1024 * 1024
# The same namespaces in files saved as Strict Open XML, and in the XML of Word 2003.
_OTHER = {
    "http://schemas.microsoft.com/office/word/2003/wordml ": W,
    "http://purl.oclc.org/ooxml/wordprocessingml/main ": W,
    "http://purl.oclc.org/ooxml/officeDocument/math ": M,
    "http://purl.oclc.org/ooxml/drawingml/main ": A,
    "http://purl.oclc.org/ooxml/drawingml/chart ": CHART,
    "http://purl.oclc.org/ooxml/drawingml/diagram ": DIAGRAM,
    "http://purl.oclc.org/ooxml/presentationml/main ": P,
    "http://purl.oclc.org/ooxml/officeDocument/relationships ": R,
}
# Older expats look at a tag from its beginning again with every piece of it.
_MOST_TAG_BYTES = 8 * 1024 * 1024
# With its namespace. A long one would be copied for every element.
_MOST_NAME_CHARACTERS = 1024
_PIECE_BYTES = 1024 * 1024
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class Package(zipfile.ZipFile):
    """A zip whose parts are found in any case, as Open Packaging has it, and with backslashes in names."""

    def __init__(self, stream: IO[bytes]) -> None:
        """Raises as `ZipFile` does."""
        super().__init__(stream)
        self.NameToInfo = _Names({name.replace("\\", "/"): info for name, info in self.NameToInfo.items()})


@contextmanager
def opened(stream: IO[bytes]) -> Iterator[Package]:
    """The zip `stream`. Whatever fails while it is open is a `DamagedError`, but for the reader's own."""
    try:
        with Package(stream) as archive:
            yield archive
    except (UnreadableError, OSError, MemoryError):
        raise
    except Exception as error:  # a damaged zip fails in as many ways as there are places to damage
        raise DamagedError from error


class _Names(dict[str, zipfile.ZipInfo]):
    def __init__(self, infos: dict[str, zipfile.ZipInfo]) -> None:
        super().__init__(infos)
        self._folded = {name.casefold(): info for name, info in infos.items()}

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def get(self, name: str) -> zipfile.ZipInfo | None:  # type: ignore[override]  # as ZipFile calls it
        return super().get(name) or self._folded.get(name.casefold())


class Elements:
    """Takes a part's elements as they come. Names are `namespace name`."""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""

    def end(self, name: str) -> None:
        """It ends."""

    def characters(self, text: str) -> None:
        """A piece of text of the innermost element."""


def parse_part(
    archive: zipfile.ZipFile, name: str, elements: Elements, most_bytes: int, told: Told | None = None
) -> None:
    """Give `elements` the part `name`. Raises `UnreadableError`, OSError, or an error of the zip's."""
    info = _checked(archive, name, most_bytes)
    encoding = ""

    def declared(version: str, named: str | None, standalone: int) -> None:
        nonlocal encoding
        encoding = (named or "")[:40]

    def start(tag: str, attributes: dict[str, str]) -> None:
        if len(tag) > _MOST_NAME_CHARACTERS:
            raise DamagedError
        elements.start(_transitional(tag), {_transitional(name): value for name, value in attributes.items()})

    def end(tag: str) -> None:
        elements.end(_transitional(tag))

    def entity(*parts: object) -> None:
        raise DamagedError

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = elements.characters
    parser.XmlDeclHandler = declared
    parser.EntityDeclHandler = entity
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


def read_part(archive: zipfile.ZipFile, name: str, most_bytes: int) -> bytes:
    """The part `name` as a whole. Raises as `parse_part` does."""
    with archive.open(_checked(archive, name, most_bytes)) as part:
        data = part.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise UnpacksError(len(data), most_bytes)
    return data


def _checked(archive: zipfile.ZipFile, name: str, most_bytes: int) -> zipfile.ZipInfo:
    info = archive.getinfo(name)
    if info.flag_bits & 1:
        raise LockedError
    if info.compress_type not in _COMPRESSIONS:
        raise DamagedError
    if info.file_size > most_bytes:
        raise UnpacksError(info.file_size, most_bytes)
    return info


def _transitional(name: str) -> str:
    """`name` in the namespace of ordinary files."""
    if name.startswith(("http://purl.oclc.org/", "http://schemas.microsoft.com/office/word/2003/")):
        for other, ordinary in _OTHER.items():
            if name.startswith(other):
                return ordinary + name[len(other) :]
    return name


def is_equation(program: str) -> bool:
    """Whether an embedded object of `program`, such as `Equation.3`, is an equation."""
    return program.startswith(("Equation", "MathType"))


class Relations(Elements):
    """The parts that a part refers to: their names by the last word of the relation's type, and by its id.

    `all` has each kind and name, `external` the addresses outside of the file by id.
    """

    def __init__(self, archive: zipfile.ZipFile, part: str) -> None:
        """Of `part`, empty for the package. Raises as `parse_part` does."""
        self.by_kind: dict[str, str] = {}
        self.by_id: dict[str, str] = {}
        self.all: list[tuple[str, str]] = []
        self.external: dict[str, str] = {}
        self._folder = part.rpartition("/")[0]
        folder = f"{self._folder}/" if self._folder else ""
        name = f"{folder}_rels/{part.rpartition('/')[2]}.rels"
        if name in archive.NameToInfo:
            parse_part(archive, name, self, _MOST_TAG_BYTES)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if not name.endswith(" Relationship"):
            return
        target, identifier = attributes.get("Target", ""), attributes.get("Id", "")
        if attributes.get("TargetMode") == "External":
            self.external.setdefault(identifier, target)
            return
        path = (
            target[1:] if target.startswith("/") else f"{self._folder}/{target}" if self._folder else target
        )
        path = posixpath.normpath(path)
        kind = attributes.get("Type", "").rpartition("/")[2]
        self.by_kind.setdefault(kind, path)
        self.by_id.setdefault(identifier, path)
        self.all.append((kind, path))

    def texts(self, kind: str, archive: zipfile.ZipFile) -> list[str]:
        """The parts of that kind that the archive has."""
        return list(dict.fromkeys(path for of, path in self.all if of == kind and path in archive.NameToInfo))
