"""The bytes of an image that is pasted or dropped, as the other program wrote them.

Qt on a Mac hands over decoded images only, so the bytes are read from the system's pasteboard there. Nothing
is decoded in the window if there is another way: the process that reads images does it.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable

from PySide6.QtCore import QBuffer, QIODevice, QMimeData
from PySide6.QtGui import QImage

from core.system.macos import Objc

# Formats that the reader supports, the lossless ones first, with the ending of their files and the name of
# their kind on a Mac.
_FORMATS = (
    ("image/png", ".png", "public.png"),
    ("image/webp", ".webp", "org.webmproject.webp"),
    ("image/jpeg", ".jpg", "public.jpeg"),
    ("image/heic", ".heic", "public.heic"),
    ("image/avif", ".avif", "public.avif"),
    ("image/gif", ".gif", "com.compuserve.gif"),
    ("image/tiff", ".tiff", "public.tiff"),
    ("image/bmp", ".bmp", "com.microsoft.bmp"),
)
# Notes and mail mark an image in a text by this character.
_OBJECT = "\ufffc"
_TAG = re.compile(r"<img\b[^<>]*>", re.IGNORECASE)
_SOURCE = re.compile(r"\bsrc\s*=", re.IGNORECASE)
_SIDE = re.compile(r"\b(?:width|height)\s*[=:]\s*[\"']?(\d{1,6})(?![\d%])", re.IGNORECASE)
_LINE_PX = 40
_MOST_HTML = 4_000_000
# Other programs add a picture to copied cells and words: the text is preferred then.
_ADDRESSES = ("http://", "https://", "data:", "blob:", "file:")


def is_image(source: QMimeData) -> bool:
    """Whether `source` is an image rather than a text. Browsers add the image's address as text."""
    if not (source.hasImage() or any(source.hasFormat(kind) for kind, _, _ in _FORMATS)):
        return False
    text = source.text().strip()
    return not text or (text.startswith(_ADDRESSES) and len(text.split()) == 1)


def images_beside(source: QMimeData) -> int:
    """The number of images between the words of a copied text, which are not in its plain text. Those of a
    line's height are not counted: web pages show their signs and faces with them.
    """
    marks = source.text().count(_OBJECT)
    tags = _TAG.findall(source.html()[:_MOST_HTML]) if source.hasHtml() else []
    shown = [tag for tag in tags if _SOURCE.search(tag)]
    return max(marks, sum(all(int(side) > _LINE_PX for side in _SIDE.findall(tag)) for tag in shown))


def image_bytes(
    source: QMimeData, *, dragged: bool = False, read: Callable[[str, bool], bytes] | None = None
) -> tuple[bytes, str]:
    """The image's bytes and the ending of its file; empty if the other program has withdrawn it.

    `read` gets the bytes of a kind of a Mac's pasteboard, which is another one if they are `dragged`.
    """
    for kind, ending, _ in _FORMATS:
        if source.hasFormat(kind) and (data := bytes(source.data(kind).data())):
            return data, ending
    if read is None and sys.platform == "darwin":
        read = _pasteboard_bytes
    if read is not None:
        for _, ending, kind in _FORMATS:
            if data := read(kind, dragged):
                return data, ending
    return as_png(source.imageData()), ".png"


def as_png(image: object) -> bytes:
    """An image that only Qt has, in a format without loss."""
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    if isinstance(image, QImage) and not image.isNull():
        image.save(buffer, "PNG")  # type: ignore[call-overload]
    return bytes(buffer.data().data())


def _pasteboard_bytes(kind: str, dragged: bool, objc: Objc | None = None) -> bytes:
    """Data of type `kind` on the general pasteboard, or on that of a drag; empty without any."""
    objc = objc or Objc()
    board_class = objc.get_class("NSPasteboard")
    if dragged:
        name = ctypes.c_void_p(objc.string("Apple CFPasteboard drag"))
        board = objc.send(board_class, "pasteboardWithName:", name)
    else:
        board = objc.send(board_class, "generalPasteboard")
    data = objc.send(board, "dataForType:", ctypes.c_void_p(objc.string(kind))) if board else 0
    length = objc.send(data, "length") if data else 0
    return ctypes.string_at(objc.send(data, "bytes"), length) if length else b""
