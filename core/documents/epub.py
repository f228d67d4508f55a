"""E-books (.epub) to text: the chapters in the order of the book's spine, each as a page of HTML.

A chapter that the file lacks or that is damaged is marked; pictures and sounds in the place of a chapter are
counted.
"""

from __future__ import annotations

import posixpath
from typing import IO
from urllib.parse import unquote

from core.documents import strings
from core.documents.html import declared_charset, html_text
from core.documents.limits import MOST_TEXT_BYTES, Gathered, LockedError, Told
from core.documents.parts import BROKEN, Element, opened, read_part, read_tree
from core.documents.text import decode

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
# Any other text of the spine is read as a page, too.
_CONTENTS = "application/x-dtbncx"
_NOT_PAGES = ("image/", "audio/", "video/", "font/", "application/pdf", _CONTENTS)
_GRAPHICS = "image/svg+xml"


def epub_text(stream: IO[bytes], told: Told, gathered: Gathered) -> str:
    """The title, and all chapters with an empty line between them. Raises `UnreadableError`, OSError."""
    with opened(stream) as archive:
        root = next(read_tree(archive, _CONTAINER).all("rootfile"), Element("")).get("full-path")
        book = read_tree(archive, root)
        if title := next(filter(None, (each.line() for each in book.all("title"))), ""):
            gathered.add(f"# {title}\n\n")
        locked: set[str] = set()
        if _ENCRYPTION in archive.NameToInfo:
            references = read_tree(archive, _ENCRYPTION).all("CipherReference")
            locked.update(unquote(each.get("URI")) for each in references)
        chapters = _chapters(book, posixpath.dirname(root), gathered)
        says = False
        for number, chapter in enumerate(chapters):
            told(number, len(chapters), "pages")
            if chapter in locked:
                raise LockedError
            try:
                data = read_part(archive, chapter, MOST_TEXT_BYTES)
                markup = decode(data, declared_charset(data)).text
            except BROKEN:
                gathered.leave_out("missing page", place=chapter)
                gathered.add(f"{strings.missing_page(posixpath.basename(chapter))}\n\n")
                continue
            text = html_text(markup, lambda done, total, unit: None, gathered.inner(), titled=False)
            gathered.add(f"{text}\n\n" if text else "")
            says = says or bool(text)
    return gathered.text().strip("\n") if says else ""


def _chapters(package: Element, folder: str, gathered: Gathered) -> list[str]:
    """The parts of the spine that are pages, each once."""
    parts = {each.get("id"): each for each in package.all("item")}
    hrefs: dict[str, None] = {}
    for each in package.all("itemref"):
        item = parts.get(each.get("idref"))
        kind = item.get("media-type") if item else ""
        href = unquote(item.get("href")).partition("#")[0] if item else each.get("idref")
        if kind != _GRAPHICS and kind.startswith(_NOT_PAGES):
            if kind != _CONTENTS:
                gathered.leave_out("picture" if kind.startswith("image/") else "object", place=href)
        else:
            hrefs[posixpath.normpath(posixpath.join(folder, href))] = None
    return list(hrefs)
