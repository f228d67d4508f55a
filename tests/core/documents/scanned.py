"""PDFs with scanned pages for tests, written by hand: pictures without text beside pages of text."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

# Of a scan: its left half in this color, its right half in another.
RED, BLUE, GREEN, GRAY = (200, 30, 30), (30, 30, 200), (30, 160, 30), (120, 120, 120)
Color = tuple[int, int, int]


class Scan(Struct, frozen=True):
    """A page that is a picture: two colors side by side, over the whole page; `words` are drawn on it.

    `box`: the page's width and height in points; `turn`: its rotation. `pixels`: the size that the picture
    declares, of which all pixels are there if it is `None`.
    """

    left: Color = RED
    right: Color = BLUE
    words: str = ""
    box: tuple[float, float] = (200, 100)
    turn: int = 0
    pixels: tuple[int, int] | None = None


def scanned_pdf(*pages: str | Scan) -> bytes:
    """A PDF with these pages: lines of text, or scans."""
    bodies: list[bytes] = []
    numbers: list[int] = []

    def add(body: bytes) -> int:
        bodies.append(body)
        return len(bodies) + 3

    for page in pages:
        if isinstance(page, Scan):
            width, height = page.box
            drawn = f"q {width} 0 0 {height} 0 0 cm /I1 Do Q\n"
            if page.words:
                drawn += f"BT /F1 6 Tf 10 10 Td ({page.words}) Tj ET"
            size = page.pixels or (2, 1)
            data = zlib.compress(bytes((*page.left, *page.right)))
            image = f"/Type /XObject /Subtype /Image /Width {size[0]} /Height {size[1]} /BitsPerComponent 8"
            picture = add(_stream(f"{image} /ColorSpace /DeviceRGB /Filter /FlateDecode", data))
            resources = f"/XObject << /I1 {picture} 0 R >> /Font << /F1 3 0 R >>"
            box = f"/MediaBox [0 0 {width} {height}] /Rotate {page.turn}"
        else:
            lines = "".join(f"({line}) Tj 0 -14 Td " for line in page.split("\n"))
            drawn = f"BT /F1 10 Tf 20 270 Td {lines}ET"
            resources, box = "/Font << /F1 3 0 R >>", "/MediaBox [0 0 600 300]"
        content = add(_stream("", drawn.encode()))
        head = f"/Type /Page /Parent 2 0 R {box} /Resources << {resources} >>"
        numbers.append(add(f"<< {head} /Contents {content} 0 R >>".encode()))
    kids = " ".join(f"{number} 0 R" for number in numbers)
    first = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(numbers)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    )
    body = b"".join(
        b"%d 0 obj\n%s\nendobj\n" % (number, each) for number, each in enumerate((*first, *bodies), 1)
    )
    # PDFium builds the missing table of objects.
    return b"%PDF-1.4\n" + body + b"trailer\n<< /Size 4 /Root 1 0 R >>\n%%EOF\n"


def write_scanned(path: Path, pages: Sequence[str | Scan]) -> Path:
    path.write_bytes(scanned_pdf(*pages))
    return path


def _stream(head: str, data: bytes) -> bytes:
    return b"<< %s /Length %d >>\nstream\n%s\nendstream" % (head.encode(), len(data), data)
