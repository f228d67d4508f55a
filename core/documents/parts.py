"""Parts of a zipped document (Office, OpenDocument, EPUB).

XML parts are decompressed and parsed in pieces, and given to their reader element by element (a paragraph, a
row), so that memory does not grow with the part; `Walker` takes an element to a writer. Declarations of
entities are refused: they can make a short file endless, and no current program writes one. Strict Open XML
has the names of ordinary files; what a file repeats for older programs is left out.
"""

from __future__ import annotations

import posixpath
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, ClassVar
from xml.parsers import expat

from core.documents.limits import DamagedError, EncodedError, LockedError, Told, UnpacksError, UnreadableError
from core.documents.writer import PLAIN, Marks, Writer

# Prefixes of tags of elements and attributes; W: Word's own, A: drawings, P: slides.
W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main "
M = "http://schemas.openxmlformats.org/officeDocument/2006/math "
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships "
A = "http://schemas.openxmlformats.org/drawingml/2006/main "
P = "http://schemas.openxmlformats.org/presentationml/2006/main "
CHART = "http://schemas.openxmlformats.org/drawingml/2006/chart "
CHART_EX = "http://schemas.microsoft.com/office/drawing/2014/chartex "  # waterfall, treemap and others
DIAGRAM = "http://schemas.openxmlformats.org/drawingml/2006/diagram "
SHEET_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing "
_FALLBACK = "http://schemas.openxmlformats.org/markup-compatibility/2006 Fallback"
# The XML of the longest books is a tenth of this; a zip can claim any size.
MOST_XML_BYTES = 256 * 1024 * 1024
# Limit of a part that is in memory as a whole, such as styles; those of long books have a hundredth of it.
MOST_TREE_BYTES = 16 * 1024 * 1024
# The same namespaces in files saved as Strict Open XML, and in the XML of Word 2003.
_OTHER = {
    "http://schemas.microsoft.com/office/word/2003/wordml ": W,
    "http://purl.oclc.org/ooxml/wordprocessingml/main ": W,
    "http://purl.oclc.org/ooxml/officeDocument/math ": M,
    "http://purl.oclc.org/ooxml/drawingml/main ": A,
    "http://purl.oclc.org/ooxml/drawingml/chart ": CHART,
    "http://purl.oclc.org/ooxml/drawingml/spreadsheetDrawing ": SHEET_DRAWING,
    "http://purl.oclc.org/ooxml/drawingml/diagram ": DIAGRAM,
    "http://purl.oclc.org/ooxml/presentationml/main ": P,
    "http://purl.oclc.org/ooxml/officeDocument/relationships ": R,
}
# Older expats look at a tag from its beginning again with every piece of it.
_MOST_TAG_BYTES = 8 * 1024 * 1024
# With its namespace. A long one would be copied for every element.
_MOST_NAME_CHARACTERS = 1024
_PIECE_BYTES = 256 * 1024
# Elements inside of more than this many others follow each other in the last of those.
_MOST_DEPTH = 200
# Exceptions of reading one damaged or missing part.
BROKEN = (DamagedError, EncodedError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class Package(zipfile.ZipFile):
    """A zip whose parts are found in any case, as Open Packaging has it, and with backslashes in names."""

    def __init__(self, stream: IO[bytes]) -> None:
        """Raises as `ZipFile` does."""
        super().__init__(stream)
        self.NameToInfo = _Names({name.replace("\\", "/"): info for name, info in self.NameToInfo.items()})


@contextmanager
def opened(stream: IO[bytes]) -> Iterator[Package]:
    """The zip `stream`. Errors while it is open become `DamagedError`, except the reader's own."""
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


class Element:
    """An element, named `namespace name`; `inside` has its texts and elements in their order.

    The methods find other elements by their `tag`, the name without its namespace.
    """

    __slots__ = ("attributes", "inside", "name")

    def __init__(self, name: str, attributes: dict[str, str] | None = None) -> None:
        self.name, self.attributes = name, attributes or {}
        self.inside: list[str | Element] = []

    @property
    def tag(self) -> str:
        return self.name.rpartition(" ")[2]

    @property
    def elements(self) -> list[Element]:
        return [each for each in self.inside if not isinstance(each, str)]

    def get(self, name: str, otherwise: str = "") -> str:
        return self.attributes.get(name, otherwise)

    def child(self, *tags: str) -> Element:
        """The first child that has one of the tags; an empty element if there is none."""
        return next((each for each in self.elements if each.tag in tags), Element(""))

    def all(self, *tags: str) -> Iterator[Element]:
        """The elements inside at any depth, in the file's order; those of `tags` if any are given."""
        waiting = self.elements[::-1]
        while waiting:
            element = waiting.pop()
            if not tags or element.tag in tags:
                yield element
            waiting += element.elements[::-1]

    def text(self) -> str:
        """Its own texts and those of the elements inside."""
        return "".join(each if isinstance(each, str) else each.text() for each in self.inside)

    def line(self, *tags: str) -> str:
        """The texts of the elements of `tags` inside, or else all of its text, on one line."""
        said = "".join(each.text() for each in self.all(*tags)) if tags else self.text()
        return " ".join(said.split())


class Builder:
    """Builds an element from the parser's events inside of it."""

    def __init__(self, root: Element) -> None:
        self.root = root
        self._open = [root]

    @property
    def innermost(self) -> Element:
        return self._open[-1]

    @property
    def _parent(self) -> Element:
        """The owner of the next element, so that no element is too deep to be walked."""
        return self._open[min(len(self._open), _MOST_DEPTH) - 1]

    def start(self, name: str, attributes: dict[str, str] | None = None) -> None:
        element = Element(name, attributes)
        self._parent.inside.append(element)
        self._open.append(element)

    def end(self) -> bool:
        """The innermost element ends; True if it is the root."""
        element = self._open.pop()
        if element.name == _FALLBACK and self._open and self._parent.inside[-1] is element:
            self._parent.inside.pop()
        return not self._open

    def characters(self, text: str) -> None:
        self._open[-1].inside.append(text)


def read_elements(
    archive: zipfile.ZipFile,
    name: str,
    tags: Collection[str],
    most_bytes: int = 0,
    *,
    heads: Collection[str] = (),
    told: Told | None = None,
) -> Iterator[Element]:
    """The outermost elements of the part `name` with one of `tags`, each once it was read completely.

    Elements of `heads` are yielded at their beginning, without content. Without tags: the root. A part has
    at most `most_bytes`, else `MOST_XML_BYTES`. Raises `UnreadableError`, OSError, or an error of the zip's.
    """
    info = _checked(archive, name, most_bytes or MOST_XML_BYTES)
    encoding = ""
    found: list[Element] = []
    builder: Builder | None = None

    def declared(version: str, named: str | None, standalone: int) -> None:
        nonlocal encoding
        encoding = (named or "")[:40]

    def start(full: str, attributes: dict[str, str]) -> None:
        nonlocal builder
        if len(full) > _MOST_NAME_CHARACTERS:
            raise DamagedError
        tag = full.rpartition(" ")[2]
        if builder is None and tags and tag not in tags and tag not in heads and tag != "Fallback":
            return
        own = {_transitional(each): value for each, value in attributes.items()}
        if builder is not None:
            builder.start(_transitional(full), own)
        elif tag in heads:
            found.append(Element(_transitional(full), own))
        else:
            builder = Builder(Element(_transitional(full), own))

    def end(full: str) -> None:
        nonlocal builder
        if builder is not None and builder.end():
            if builder.root.name != _FALLBACK:
                found.append(builder.root)
            builder = None

    def characters(text: str) -> None:
        if builder is not None:
            builder.characters(text)

    def entity(*parts: object) -> None:
        raise DamagedError

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
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
                # Raised by the codec that the declaration names.
                raise EncodedError(encoding) from error
            yield from found
            found.clear()
            if not piece:
                return
            if done - parser.CurrentByteIndex > _MOST_TAG_BYTES:
                raise DamagedError


def read_tree(archive: zipfile.ZipFile, name: str, most_bytes: int = MOST_TREE_BYTES) -> Element:
    """The root of a part that is short in any real file. Raises as `read_elements` does."""
    return next(read_elements(archive, name, (), most_bytes))


class Walker:
    """Writes elements: each by its entry in `actions`; of all others, their content."""

    actions: ClassVar[Mapping[str, Callable[[Any, Element], None]]] = {}

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.marks: Marks = PLAIN

    def visit(self, element: Element) -> None:
        if action := self.actions.get(element.name):
            action(self, element)
        else:
            self.walk(element)

    def walk(self, element: Element) -> None:
        """Visit the content of `element`."""
        for each in element.inside:
            if isinstance(each, str):
                self.characters(each)
            else:
                self.visit(each)

    def characters(self, text: str) -> None:
        """Text between elements, which says nothing in most formats."""

    def say(self, text: str) -> None:
        self.writer.words(text, self.marks)

    def skip(self, element: Element) -> None:
        """Leave out an element."""

    def spoken(self, element: Element) -> None:
        """An element that holds text alone."""
        self.say(element.text())

    def tab(self, element: Element) -> None:
        self.say("\t")

    def line_break(self, element: Element) -> None:
        self.say("\n")

    def table(self, element: Element) -> None:
        self.writer.open_table()
        self.walk(element)
        self.writer.close_table()

    def row(self, element: Element) -> None:
        self.writer.open_row()
        self.walk(element)

    def cell(self, element: Element) -> None:
        self.writer.open_cell()
        self.walk(element)
        self.writer.close_cell()


def read_part(archive: zipfile.ZipFile, name: str, most_bytes: int) -> bytes:
    """The part `name` as a whole. Raises as `read_elements` does."""
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


class Relations:
    """The parts that a part refers to: their names by the last word of the relation's type, and by its id.

    `all` has each kind and name, `external` the addresses outside of the file by id.
    """

    def __init__(self, archive: zipfile.ZipFile, part: str) -> None:
        """The relations of `part`, empty for the package. Raises the errors of `read_elements`."""
        self.by_kind: dict[str, str] = {}
        self.by_id: dict[str, str] = {}
        self.all: list[tuple[str, str]] = []
        self.external: dict[str, str] = {}
        folder = posixpath.dirname(part)
        name = posixpath.join(folder, "_rels", f"{posixpath.basename(part)}.rels")
        if name not in archive.NameToInfo:
            return
        for each in read_elements(archive, name, ("Relationship",), _MOST_TAG_BYTES):
            target, identifier = each.get("Target"), each.get("Id")
            if each.get("TargetMode") == "External":
                self.external.setdefault(identifier, target)
                continue
            # One that begins with a slash is in the package's own folder.
            path = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
            kind = each.get("Type").rpartition("/")[2]
            self.by_kind.setdefault(kind, path)
            self.by_id.setdefault(identifier, path)
            self.all.append((kind, path))

    def texts(self, kind: str, archive: zipfile.ZipFile) -> list[str]:
        """The parts of that kind that the archive has."""
        return list(dict.fromkeys(path for of, path in self.all if of == kind and path in archive.NameToInfo))


def whole(value: str | None, otherwise: int = 0) -> int:
    """The number that `value` writes in at most nine ASCII digits, else `otherwise`."""
    return int(value) if value and value.isascii() and value.isdigit() and len(value) < 10 else otherwise


def is_true(value: str) -> bool:
    return value in ("1", "true", "on")
