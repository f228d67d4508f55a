"""Small real documents for tests, written by hand: PDF, Word, spreadsheets, slides, books."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
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


def pdf_drawn(content: str) -> bytes:
    """A PDF of one page of 600 by 800 points with this content; `F1` is Helvetica, `F2` vertical Japanese.

    `F2` has a square for each letter. Without shapes PDFium takes those of a Japanese font of the
    machine, and omits the text if there is none.
    """
    name = "/BaseFont /HeiseiMin-W3"
    shapes, squares = _font_of_squares(), b"\x00\x01" * 10_000
    kanji = "<< /Registry (Adobe) /Ordering (Japan1) /Supplement 2 >>"
    metrics = "/Flags 6 /FontBBox [0 -200 1000 900] /ItalicAngle 0 /Ascent 800 /Descent -200 /CapHeight 700"
    page = "/Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R"
    objects = (
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< {page} /Resources << /Font << /F1 5 0 R /F2 6 0 R >> >> >>",
        f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        f"<< /Type /Font /Subtype /Type0 {name} /Encoding /UniJIS-UCS2-V /DescendantFonts [7 0 R] >>",
        f"<< /Type /Font /Subtype /CIDFontType2 {name} /CIDSystemInfo {kanji} /DW 1000"
        " /CIDToGIDMap 10 0 R /FontDescriptor 8 0 R >>",
        f"<< /Type /FontDescriptor /FontName /HeiseiMin-W3 {metrics} /StemV 80 /FontFile2 9 0 R >>",
    )
    body = "".join(f"{number} 0 obj\n{each}\nendobj\n" for number, each in enumerate(objects, 1))
    streams = b"".join(
        b"%d 0 obj\n<< /Length %d >>\nstream\n%b\nendstream\nendobj\n" % (number, len(each), each)
        for number, each in ((9, shapes), (10, squares))
    )
    # PDFium builds the missing table of objects.
    return f"%PDF-1.4\n{body}".encode() + streams + b"trailer\n<< /Size 11 /Root 1 0 R >>\n%%EOF\n"


def _font_of_squares() -> bytes:
    """A TrueType font of an empty glyph and a square of 900 in an em of 1,000."""
    low, high = 20, 920
    square = struct.pack(">hhhhhHH4B", 1, low, low - 100, high, high - 100, 3, 0, 1, 1, 1, 1)
    square += struct.pack(">8h", low, 0, high - low, 0, low - 100, high - low, 0, low - high)
    tables = {
        b"glyf": square,
        b"head": struct.pack(">LLLLHHQQhhhhHHhhh", 65536, 65536, 0, 0x5F0F3CF5, 0, 1000, 0, 0,
                             low, low - 100, high, high - 100, 0, 8, 2, 1, 0),
        b"hhea": struct.pack(">Lhhh12H", 65536, 880, -120, 0, 1000, *[0] * 10, 1),
        b"hmtx": struct.pack(">Hhh", 1000, 0, low),
        b"loca": struct.pack(">LLL", 0, 0, len(square)),
        b"maxp": struct.pack(">LH13H", 65536, 2, 4, 1, *[0] * 11),
    }  # fmt: skip
    at, entries = 12 + 16 * len(tables), b""
    for tag, data in tables.items():
        entries += struct.pack(">4sLLL", tag, 0, at, len(data))
        at += len(data) + -len(data) % 4
    padded = b"".join(data + b"\0" * (-len(data) % 4) for data in tables.values())
    return struct.pack(">LHHHH", 65536, len(tables), 64, 2, 32) + entries + padded


def paragraph(text: str, properties: str = "") -> str:
    """A Word paragraph."""
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{escape(text)}</w:t></w:r></w:p>"


def write_docx(
    path: Path, body: str, numbering: str = "", styles: str = "", more: Mapping[str, str] | None = None
) -> Path:
    """A Word document with that body, the insides of its lists' and styles' parts, and more parts."""
    xml = f'<?xml version="1.0"?><w:document xmlns:w="{W}"><w:body>{body}</w:body></w:document>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", xml)
        for name, inside in (("numbering", numbering), ("styles", styles)):
            if inside:
                xml = f'<?xml version="1.0"?><w:{name} xmlns:w="{W}">{inside}</w:{name}>'
                archive.writestr(f"word/{name}.xml", xml)
        for name, part in (more or {}).items():
            archive.writestr(name, part)
    return path


def write_zip(path: Path, parts: Mapping[str, str]) -> Path:
    """A zip of these parts, a part `mimetype` first and uncompressed."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(parts, key=lambda name: name != "mimetype"):
            kind = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
            archive.writestr(name, parts[name], kind)
    return path


_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def relations(targets: Mapping[str, str]) -> str:
    """A part of relations: `kind#id` to target."""
    each = "".join(
        f'<Relationship Id="{of.partition("#")[2] or of}"'
        f' Type="{_OFFICE}/relationships/{of.partition("#")[0]}"'
        f' Target="{target}"/>'
        for of, target in targets.items()
    )
    return f'<?xml version="1.0"?><Relationships xmlns="{_PACKAGE}/relationships">{each}</Relationships>'


_SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def write_workbook(path: Path, rows: str, columns: str = "", strings: str = "", styles: str = "") -> Path:
    """A workbook of one sheet `S`, from the insides of its parts."""
    parts = {
        "_rels/.rels": relations({"officeDocument": "xl/workbook.xml"}),
        "xl/_rels/workbook.xml.rels": relations(
            {"worksheet#s": "sheet.xml", "sharedStrings": "strings.xml", "styles": "styles.xml"}
        ),
        "xl/workbook.xml": f'<workbook xmlns="{_SHEETS}" xmlns:r="{_OFFICE}/relationships">'
        '<sheets><sheet name="S" r:id="s"/></sheets></workbook>',
        "xl/sheet.xml": f'<worksheet xmlns="{_SHEETS}">{columns}<sheetData>{rows}</sheetData></worksheet>',
        "xl/strings.xml": f'<sst xmlns="{_SHEETS}">{strings}</sst>',
        "xl/styles.xml": f'<styleSheet xmlns="{_SHEETS}">{styles}</styleSheet>',
    }
    return write_zip(path, parts)


def write_xlsx(path: Path, sheets: Mapping[str, Sequence[tuple[str, str | float]]]) -> Path:
    """A workbook of these sheets: cells by address, in the order of rows."""
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    parts = {"_rels/.rels": relations({"officeDocument": "xl/workbook.xml"})}
    listed = ""
    for number, (name, cells) in enumerate(sheets.items(), 1):
        listed += f'<sheet name="{escape(name)}" sheetId="{number}" r:id="s{number}"/>'
        rows: dict[str, str] = {}
        for address, value in cells:
            inside = (
                f'<c r="{address}" t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'
                if isinstance(value, str)
                else f'<c r="{address}"><v>{value!r}</v></c>'
            )
            row = address.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
            rows[row] = rows.get(row, "") + inside
        data = "".join(f'<row r="{row}">{inside}</row>' for row, inside in rows.items())
        parts[f"xl/worksheets/sheet{number}.xml"] = (
            f'<?xml version="1.0"?><worksheet xmlns="{space}"><sheetData>{data}</sheetData></worksheet>'
        )
    parts["xl/workbook.xml"] = (
        f'<?xml version="1.0"?><workbook xmlns="{space}" xmlns:r="{_OFFICE}/relationships">'
        f"<sheets>{listed}</sheets></workbook>"
    )
    parts["xl/_rels/workbook.xml.rels"] = relations(
        {f"worksheet#s{number}": f"worksheets/sheet{number}.xml" for number in range(1, len(sheets) + 1)}
    )
    return write_zip(path, parts)


_ODF = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
    ' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
    ' xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
    ' xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"'
    ' xmlns:presentation="urn:oasis:names:tc:opendocument:xmlns:presentation:1.0"'
)


def write_odf(path: Path, kind: str, inside: str) -> Path:
    """An OpenDocument file of the kind text, spreadsheet or presentation, with that inside its body."""
    content = (
        f'<?xml version="1.0"?><office:document-content {_ODF}><office:body><office:{kind}>{inside}'
        f"</office:{kind}></office:body></office:document-content>"
    )
    manifest = "urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"
    return write_zip(
        path,
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "content.xml": content,
            "META-INF/manifest.xml": f'<manifest:manifest xmlns:manifest="{manifest}"/>',
        },
    )


def write_ods(path: Path, rows: Sequence[Sequence[str]]) -> Path:
    """An OpenDocument spreadsheet of one sheet."""
    table = "".join(
        "<table:table-row>"
        + "".join(
            f'<table:table-cell office:value-type="string"><text:p>{escape(cell)}</text:p></table:table-cell>'
            for cell in row
        )
        + "</table:table-row>"
        for row in rows
    )
    return write_odf(path, "spreadsheet", f'<table:table table:name="Sheet1">{table}</table:table>')


_SLIDES = (
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    ' xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
    f' xmlns:r="{_OFFICE}/relationships"'
)


def slide_shape(*paragraphs: str, placeholder: str = "") -> str:
    """A shape with these paragraphs, in a placeholder of that type."""
    kind = f'<p:nvSpPr><p:nvPr><p:ph type="{placeholder}"/></p:nvPr></p:nvSpPr>' if placeholder else ""
    texts = "".join(f"<a:p><a:r><a:t>{escape(each)}</a:t></a:r></a:p>" for each in paragraphs)
    return f"<p:sp>{kind}<p:txBody>{texts}</p:txBody></p:sp>"


def write_pptx(
    path: Path,
    slides: Sequence[str],
    notes: Mapping[int, str] | None = None,
    more: Mapping[str, str] | None = None,
) -> Path:
    """A presentation of slides with these shapes; `notes` are shapes by the slide's index, from 0."""
    parts = {**(more or {}), "_rels/.rels": relations({"officeDocument": "ppt/presentation.xml"})}
    # Parts in another order than the slides.
    names = [f"slides/slide{len(slides) - index}.xml" for index in range(len(slides))]
    listed = "".join(f'<p:sldId id="{index + 256}" r:id="r{index}"/>' for index in range(len(slides)))
    parts["ppt/presentation.xml"] = (
        f"<p:presentation {_SLIDES}><p:sldIdLst>{listed}</p:sldIdLst></p:presentation>"
    )
    parts["ppt/_rels/presentation.xml.rels"] = relations(
        {f"slide#r{index}": name for index, name in enumerate(names)}
    )
    for index, shapes in enumerate(slides):
        tree = f"<p:cSld><p:spTree>{shapes}</p:spTree></p:cSld>"
        parts[f"ppt/{names[index]}"] = f"<p:sld {_SLIDES}>{tree}</p:sld>"
        if notes and index in notes:
            tree = f"<p:cSld><p:spTree>{notes[index]}</p:spTree></p:cSld>"
            parts[f"ppt/notesSlides/n{index}.xml"] = f"<p:notes {_SLIDES}>{tree}</p:notes>"
            rels = f"ppt/slides/_rels/{names[index].rpartition('/')[2]}.rels"
            parts[rels] = relations({"notesSlide": f"../notesSlides/n{index}.xml"})
    return write_zip(path, parts)


def write_epub(path: Path, chapters: Sequence[str], title: str = "") -> Path:
    """A book of these pages; the manifest has them in the reverse order of the spine."""
    names = [f"chapter {number}.xhtml" for number in range(len(chapters))]
    items = "".join(
        f'<item id="c{number}" href="text/{name.replace(" ", "%20")}" media-type="application/xhtml+xml"/>'
        for number, name in reversed(list(enumerate(names)))
    )
    spine = "".join(f'<itemref idref="c{number}"/>' for number in range(len(names)))
    parts = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
        '<rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
        "OEBPS/book.opf": '<package xmlns="http://www.idpf.org/2007/opf"><metadata'
        f' xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{escape(title)}</dc:title></metadata>'
        f"<manifest>{items}</manifest><spine>{spine}</spine></package>",
    }
    parts |= {f"OEBPS/text/{name}": chapter for name, chapter in zip(names, chapters)}
    return write_zip(path, parts)
