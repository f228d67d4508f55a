"""Small real documents for tests, written by hand: PDF and Word."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def pdf_of(pages: Sequence[str]) -> bytes:
    """A PDF with a line of text on each page; an empty line gives an empty page."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>"]
    numbers = [4 + 2 * index for index in range(len(pages))]
    kids = " ".join(f"{number} 0 R" for number in numbers)
    objects.append(f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode())
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for number, text in zip(numbers, pages):
        fonts = "<< /Font << /F1 3 0 R >> >>"
        page = f"/Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] /Resources {fonts}"
        objects.append(f"<< {page} /Contents {number + 1} 0 R >>".encode())
        drawn = f"BT /F1 12 Tf 20 200 Td ({text}) Tj ET".encode() if text else b""
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn))
    out = io.BytesIO()
    out.write(b"%PDF-1.4\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    table = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    for place in places:
        out.write(b"%010d 00000 n \n" % place)
    out.write(b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, table))
    return out.getvalue()


def pdf_of_content(content: str, extra: str = "", catalog: str = "", more: Sequence[str] = ()) -> bytes:
    """A PDF whose only page draws `content` with Helvetica as F1.

    `extra` and `catalog` add entries to the page and the catalog, `more` objects from number 6.
    """
    page = "/Type /Page /Parent 2 0 R /MediaBox [0 0 800 800] /Resources << /Font << /F1 3 0 R >> >>"
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R {catalog} >>".encode(),
        b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        f"<< {page} /Contents 5 0 R {extra} >>".encode(),
        b"<< /Length %d >>\nstream\n%s\nendstream"
        % (len(content.encode("cp1252")), content.encode("cp1252")),
        *(each.encode() for each in more),
    ]
    body = b"".join(b"%d 0 obj\n%s\nendobj\n" % (number, each) for number, each in enumerate(objects, 1))
    # PDFium builds the missing table of objects.
    return b"%PDF-1.4\n" + body + b"trailer\n<< /Size %d /Root 1 0 R >>\n%%%%EOF\n" % (len(objects) + 1)


def pdf_of_streams(streams: Sequence[bytes]) -> bytes:
    """A PDF whose only page has all these compressed content streams."""
    kids = " ".join(f"{5 + number} 0 R" for number in range(len(streams)))
    page = f"/Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] /Resources << >> /Contents [{kids}]"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
        b"null",
        f"<< {page} >>".encode(),
    ]
    for stream in streams:
        packed = zlib.compress(stream, 1)
        head = b"<< /Length %d /Filter /FlateDecode >>" % len(packed)
        objects.append(b"%s\nstream\n%s\nendstream" % (head, packed))
    body = b"".join(b"%d 0 obj\n%s\nendobj\n" % (number, each) for number, each in enumerate(objects, 1))
    # PDFium builds the missing table of objects.
    return b"%PDF-1.4\n" + body + b"trailer\n<< /Size 4 /Root 1 0 R >>\n%%EOF\n"


def paragraph(text: str, properties: str = "") -> str:
    """A Word paragraph."""
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{escape(text)}</w:t></w:r></w:p>"


def write_docx(path: Path, body: str, numbering: str = "", styles: str = "") -> Path:
    """A Word document with that body, and the insides of its lists' and styles' parts."""
    xml = f'<?xml version="1.0"?><w:document xmlns:w="{W}"><w:body>{body}</w:body></w:document>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", xml)
        for name, inside in (("numbering", numbering), ("styles", styles)):
            if inside:
                xml = f'<?xml version="1.0"?><w:{name} xmlns:w="{W}">{inside}</w:{name}>'
                archive.writestr(f"word/{name}.xml", xml)
    return path
