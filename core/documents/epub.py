"""E-books (.epub) to text: the chapters in the order of the book's spine, each as a page of HTML.

A chapter that the file does not have, or that is not a page, is marked.
"""

from __future__ import annotations

import posixpath
from typing import IO
from urllib.parse import unquote

from core.documents import strings
from core.documents.html import declared_charset, html_text
from core.documents.limits import MOST_TEXT_BYTES, Gathered, LockedError, Told
from core.documents.parts import Elements, opened, parse_part, read_part
from core.documents.text import decode

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_MOST_LIST_BYTES = 16 * 1024 * 1024
# Any other text of the spine is read as a page, too.
_NOT_PAGES = ("image/", "audio/", "video/", "font/", "application/x-dtbncx", "application/pdf")
_GRAPHICS = "image/svg+xml"


def epub_text(stream: IO[bytes], told: Told, gathered: Gathered) -> str:
    """The title, and all chapters with an empty line between them. Raises `UnreadableError`, OSError."""
    with opened(stream) as archive:
        container = _Container()
        parse_part(archive, _CONTAINER, container, _MOST_LIST_BYTES)
        book = _Package()
        parse_part(archive, container.package, book, _MOST_LIST_BYTES)
        if book.title:
            gathered.add(f"# {book.title}\n\n")
        locked = _Encryption()
        if _ENCRYPTION in archive.NameToInfo:
            parse_part(archive, _ENCRYPTION, locked, _MOST_LIST_BYTES)
        folder = posixpath.dirname(container.package)
        chapters = [posixpath.normpath(posixpath.join(folder, href)) for href in book.chapters()]
        says = False
        for number, chapter in enumerate(chapters):
            told(number, len(chapters), "pages")
            if chapter in locked.parts:
                raise LockedError
            if chapter not in archive.NameToInfo:
                gathered.leave_out("missing page", place=chapter)
                gathered.add(f"{strings.missing_page(posixpath.basename(chapter))}\n\n")
                continue
            data = read_part(archive, chapter, MOST_TEXT_BYTES)
            markup = decode(data, declared_charset(data)).text
            text = html_text(markup, lambda done, total, unit: None, gathered.inner(), titled=False)
            gathered.add(f"{text}\n\n" if text else "")
            says = says or bool(text)
    return gathered.text().strip("\n") if says else ""


class _Container(Elements):
    """Reads `META-INF/container.xml`: the name of the package's part."""

    def __init__(self) -> None:
        self.package = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name.rpartition(" ")[2] == "rootfile" and not self.package:
            self.package = attributes.get("full-path", "")


class _Package(Elements):
    """Reads the package's part: title, manifest and spine."""

    def __init__(self) -> None:
        self._title: list[str] = []
        self._parts: dict[str, tuple[str, str]] = {}
        self._spine: list[str] = []
        self._in_title = False

    @property
    def title(self) -> str:
        """The book's first title on one line."""
        return " ".join("".join(self._title).split())

    def chapters(self) -> list[str]:
        """The parts of the spine that are pages, each once."""
        found = (self._parts.get(identifier, (identifier, "")) for identifier in self._spine)
        return list(
            dict.fromkeys(
                href for href, kind in found if kind == _GRAPHICS or not kind.startswith(_NOT_PAGES)
            )
        )

    def start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(" ")[2]
        if tag == "item":
            href = unquote(attributes.get("href", "")).partition("#")[0]
            self._parts[attributes.get("id", "")] = (href, attributes.get("media-type", ""))
        elif tag == "itemref":
            self._spine.append(attributes.get("idref", ""))
        elif tag == "title":
            self._in_title = not self.title

    def end(self, name: str) -> None:
        if name.rpartition(" ")[2] == "title":
            self._in_title = False

    def characters(self, text: str) -> None:
        if self._in_title:
            self._title.append(text)


class _Encryption(Elements):
    """Reads `META-INF/encryption.xml`: the parts that are encrypted, fonts among them."""

    def __init__(self) -> None:
        self.parts: set[str] = set()

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name.rpartition(" ")[2] == "CipherReference":
            self.parts.add(unquote(attributes.get("URI", "")))
