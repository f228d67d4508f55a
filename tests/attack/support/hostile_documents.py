"""Documents that do harm, or were harmed: each maker writes one file of one kind from a case's randomness.

`MAKERS` are drawn from by weight. A maker that knows what its document says returns that, and an empty
text if it has to be refused; the others return None.
"""

from __future__ import annotations

import csv
import encodings.aliases
import io
import json
import random
import zipfile
import zlib
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path

from core.documents.strings import attachment_left_out
from tests.core.documents.made import (
    W,
    paragraph,
    pdf_of,
    relations,
    slide_shape,
    write_docx,
    write_epub,
    write_odf,
    write_ods,
    write_pptx,
    write_workbook,
    write_xlsx,
    write_zip,
)

Maker = Callable[[random.Random, Path], str | None]

_CHARTS = "http://schemas.openxmlformats.org/drawingml/2006/chart"
_WORDS = ("fog", "harbour", "lamp", "rope", "Förde", "灯台", "маяк", "🚢", "e\u0301", "\u202e", "quay")
_CODECS = sorted(
    {*encodings.aliases.aliases.values(), "idna", "punycode", "undefined", "utf_8_sig", "x-none"}
)
_TAGS = ("<a", "<a b='", '<a b="', "<!--", "<![CDATA[", "</a", "<script>", "<td>x", "<svg>", "</object>")
_AROUND = (
    ("", ""),
    ("<b>", "</b>"),
    ("<a title='>' href=x>", "</a>"),
    ('<span data-x="</p>">', "</SPAN>"),
    ("<i><u>", "</i></u>"),
)
_SHAPES = (*_TAGS, "<", "&", "&#9", "<pre>", "<div>", "<title>", "<br>\t", "<a b=c ", "<?", "<textarea>", "=")


def words(dice: random.Random, count: int) -> str:
    """Some words in several writings."""
    return " ".join(dice.choice(_WORDS) for _ in range(count))


def plain(dice: random.Random, path: Path) -> str | None:
    """A text in one of the usual encodings."""
    text = words(dice, dice.randrange(1, 400))
    path.write_bytes(text.encode(dice.choice(("utf-8", "utf-8-sig", "utf-16", "utf-32"))))
    return text


def noise(dice: random.Random, path: Path) -> str | None:
    """Bytes of any kind, perhaps with the mark of some kind before them."""
    marks = (b"", b"%PDF-1.7\n", b"PK\x03\x04", b"\xff\xfe", b"\xfe\xff", b"\xff\xfe\0\0", b"\xef\xbb\xbf")
    size = dice.choice((0, 1, 2, 3, 50, 5000, 70_000))
    body = dice.choice((dice.randbytes(size), bytes(size), b"\n" * size, b"\x80" * size, b"a\0" * size))
    path.write_bytes(dice.choice(marks) + body)
    return None


def long_line(dice: random.Random, path: Path) -> str | None:
    """One line of up to 20 MB."""
    text = words(dice, 100).replace("\u202e", "x")
    text *= dice.choice((10, 1000, 20_000))
    path.write_text(text, encoding="utf-8")
    return text if len(text) <= 8_000_000 else None


def html_shapes(dice: random.Random, path: Path) -> str | None:
    """Pieces of markup over and over, up to 1 MB."""
    shape = "".join(dice.choice(_SHAPES) for _ in range(dice.randrange(1, 4)))
    size = dice.choice((200, 5000, 50_000, 200_000, 1_000_000))
    path.write_text(f"<p>{words(dice, 5)}</p>" + shape * (size // len(shape)), encoding="utf-8")
    return None


def html_wide(dice: random.Random, path: Path) -> str | None:
    """As large as a page may be."""
    shape = dice.choice(("<b>x", "x\u0301 ", "<br>🚢", "<p a=b>word</p>", "&nGt;", "<", "\n"))
    path.write_text(shape * (33_000_000 // len(shape.encode())), encoding="utf-8")
    return None


def html_codec(dice: random.Random, path: Path) -> str | None:
    """A page that says it is in any encoding Python has a name for."""
    head = f'<meta charset="{dice.choice(_CODECS)}"><p>'.encode()
    path.write_bytes(head + dice.choice((words(dice, 30).encode(), b"+ADw-b+AD4-" * 900, b"xn--" * 9000)))
    return None


def wide_text(dice: random.Random, path: Path) -> None:
    """A text whose one emoji makes every letter take four bytes: 31 MB become 124, all at once."""
    path.write_bytes("🚢".encode() + b"harbour lamp " * (31_000_000 // 13))


def slow_pdf(dice: random.Random, path: Path) -> None:
    """Takes far longer to read than anybody waits, with little memory: the same full page many times."""
    packed = zlib.compress(b"BT /F1 9 Tf " + b"(x) Tj " * 40_000, 1)
    page = b"<< /Type /Page /Parent 2 0 R /Contents 5 0 R /Resources << /Font << /F1 3 0 R >> >> >>"
    kids = b"<< /Type /Pages /Kids [%s] /Count 2000 >>" % (b"4 0 R " * 2_000)
    path.write_bytes(_pdf(kids, page, packed, (), b"<< /Filter /FlateDecode"))


def html_page(dice: random.Random, path: Path) -> str | None:
    """An ordinary page, its words inside, between and behind marks of all kinds."""
    said = [words(dice, 20).replace("\u202e", "x") for _ in range(dice.randrange(1, 30))]
    marked = []
    for one in said:
        *before, last = one.split(" ")
        begin, end = dice.choice(_AROUND)
        comment = dice.choice(("", "<!-- <p>no -->", "<script>if (a<b) no()</script>", "<!x>"))
        marked.append(f"{' '.join(before)} {comment}{begin}{last}{end}")
    body = "".join(f"<{dice.choice(('p', 'P class=x'))}>{one}</p>\n" for one in marked[:-1])
    # The last words have nothing behind them.
    path.write_text(f"<!doctype html><body>{body}<p>{marked[-1]}", encoding="utf-8")
    return "\n\n".join(said)


def docx_page(dice: random.Random, path: Path) -> str | None:
    """An ordinary Word document."""
    said = [words(dice, 20) for _ in range(dice.randrange(1, 60))]
    write_docx(path, "".join(paragraph(one) for one in said))
    return "\n\n".join(said)


def docx_bomb(dice: random.Random, path: Path) -> str | None:
    """Little that unpacks to much: text, elements, depth, tags, names, white space."""
    many = dice.choice((1000, 100_000, 1_000_000))
    body = dice.choice(
        (
            lambda: paragraph("x" * 40) * (many // 4),
            lambda: "<w:p/>" * many,
            lambda: "<w:r>" * (many // 4) + "</w:r>" * (many // 4),
            lambda: f'<w:p a="{"y" * many * 20}"/>',
            lambda: f"<w:p><w:r><w:t>{' ' * many * 10}</w:t></w:r></w:p>",
            lambda: f"<w:p><w:r><w:t>{'x' * many * 30}</w:t></w:r></w:p>",
            lambda: "<w:tc>" * many,
            lambda: "".join(f'<w:p xmlns:n{n}="u{n}"/>' for n in range(many // 20)),
            lambda: f'<p xmlns="{"u" * many}">' + "<q/>" * 5000 + "</p>",
            lambda: "<!--" + "-x" * many * 10 + "-->",
            lambda: f"<{'n' * many}/>",
        )
    )()
    write_docx(path, body)
    return None


def docx_xml(dice: random.Random, path: Path) -> str | None:
    """A main part that is declared, or declares, what Word does not."""
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 9 if n else "ha"}">' for n in range(9))
    away = f'<!ENTITY e SYSTEM "{dice.choice(("file:///etc/passwd", "/dev/zero", "http://localhost:1/"))}">'
    declared = f'<?xml version="1.0" encoding="{dice.choice(_CODECS)}"?>'
    begin = dice.choice(
        ("", declared, declared, f"<!DOCTYPE d [{laughs}]>", f"<!DOCTYPE d [{away}]>", "<?x?>")
    )
    text = dice.choice(("&l8;", "&l1;", "&l2;", "&e;", "&#xd800;", "&#0;", "words", "words", "\ufffe"))
    xml = f'{begin}<w:document xmlns:w="{W}"><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:document>'
    data = xml.encode(dice.choice(("utf-8", "utf-16", "utf-16-be", "utf-32", "utf-8-sig")))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", data)
    # Word writes no document type, so whatever has one is not read.
    return "" if "DOCTYPE" in begin else None


def docx_entities(dice: random.Random, path: Path) -> str | None:
    """A flawless main part with a document type, as Word writes none: refused if it declares entities."""
    entity = dice.choice(('<!ENTITY e "ha">', '<!ENTITY e "ha"><!ENTITY f "&e;&e;&e;">', ""))
    begin = dice.choice(
        (f"<!DOCTYPE d [{entity}]>", f"<?xml version='1.0'?><!DOCTYPE w:document [{entity}]>")
    )
    said = words(dice, 9)
    text = said + (dice.choice((" &e;", "")) if entity else "")
    xml = f'{begin}<w:document xmlns:w="{W}"><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:document>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", xml)
    return "" if entity else said


def docx_zip(dice: random.Random, path: Path) -> str | None:
    """A zip that lies about itself, or packs in other ways."""
    buffer = io.BytesIO()
    how = dice.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    xml = f'<w:document xmlns:w="{W}">{paragraph(words(dice, 9)) * 500}</w:document>'
    with zipfile.ZipFile(buffer, "w", how) as archive:
        for number in range(dice.choice((0, 1, 2000))):
            archive.writestr(f"word/media/{number}.png", b"")
        archive.writestr(dice.choice(("word/document.xml", "WORD/document.xml", "../document.xml")), xml)
    data = bytearray(buffer.getvalue())
    entry = data.find(b"PK\x01\x02")
    # In the table of contents: flags, method, sizes, where it begins.
    for place, width in dice.sample(((8, 2), (10, 2), (20, 4), (24, 4), (42, 4)), dice.randrange(3)):
        data[entry + place : entry + place + width] = dice.randbytes(width)
    if dice.random() < 0.3:
        data[-22:] = dice.randbytes(22)
    path.write_bytes(bytes(data))
    return None


def pdf_page(dice: random.Random, path: Path) -> str | None:
    """An ordinary PDF."""
    pages = [
        f"{dice.choice(('North', 'South'))} quay {dice.randrange(99)}" for _ in range(dice.randrange(1, 9))
    ]
    path.write_bytes(pdf_of(pages))
    return "\n\n".join(pages)


def pdf_equal(dice: random.Random, path: Path) -> str | None:
    """Many pages, all drawn by one stream."""
    times, pages = dice.choice((10, 3000, 20_000)), dice.choice((10, 500, 5000))
    drawn = b"BT /F1 12 Tf " + b"(harbour lamp) Tj " * times + b"ET"
    kids = b"4 0 R " * pages if dice.random() < 0.5 else b" ".join(b"%d 0 R" % (6 + n) for n in range(pages))
    page = b"<< /Type /Page /Parent 2 0 R /Contents 5 0 R /Resources << /Font << /F1 3 0 R >> >> >>"
    objects = [page] * (pages if b"6 0 R" in kids else 0)
    path.write_bytes(_pdf(b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, pages), page, drawn, objects))
    said = "\n\n".join(["harbour lamp" * times] * pages) if times * pages < 600_000 else ""
    # The same page over and over is not a tree; readers may take it for one page.
    return None if b"4 0 R" in kids else said


def pdf_stream(dice: random.Random, path: Path) -> str | None:
    """A page whose stream unpacks to much, is nested, draws itself, or asks for much."""
    much = dice.choice((1, 20, 80)) * 1_000_000
    drawn = dice.choice(
        (b"(x) Tj ", b"q ", b"[ ", b"<< ", b"/X Do ", b"\0", b"(", b"BI ", b"1 0 0 1 0 0 cm ")
    )
    packed = zlib.compress(b"BT /F1 9 Tf " + drawn * (much // len(drawn)), 1)
    filters = b"/FlateDecode"
    if dice.random() < 0.4:
        times = dice.choice((1, 5, 60))
        for _ in range(times):
            packed = zlib.compress(packed)
        filters = b"[" + b"/FlateDecode " * (times + 1) + b"]"
    form = b"<< /Type /XObject /Subtype /Form /Resources << /XObject << /X 5 0 R >> >> /Filter %s" % filters
    page = b"<< /Type /Page /Parent 2 0 R /Contents 5 0 R /Resources"
    page += b" << /Font << /F1 3 0 R >> /XObject << /X 5 0 R >> >> >>"
    kids = b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>"
    path.write_bytes(_pdf(kids, page, packed, (), form))
    return None


def pdf_tree(dice: random.Random, path: Path) -> str | None:
    """A tree of pages that is deep, turns in a circle, or lies about its size."""
    depth = dice.choice((5, 90, 3000))
    down = [b"<< /Type /Pages /Kids [%d 0 R] /Count 1 >>" % (7 + n) for n in range(depth)]
    end = dice.choice((b"4 0 R", b"2 0 R", b"6 0 R", b"999999 0 R", b"4 0 R " * 50_000, b"null"))
    down[-1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (end, dice.choice((1, -1, 2**31, 10**30)))
    page = dice.choice((b"<< /Type /Page >>", b"<< /Type /Page /Contents 4 0 R >>", b"[" * 5000, b"<<" * 900))
    path.write_bytes(_pdf(b"<< /Type /Pages /Kids [6 0 R] /Count 1 >>", page, b"", down))
    return None


def pdf_font(dice: random.Random, path: Path) -> str | None:
    """A font that says its letters are halves of characters, or huge ranges of them."""
    to = dice.choice(("D83D", "DE00", "0000", "D83DDE00" * 50, "", "FFFF"))
    ranges = dice.choice((f"<00> <FF> <{to}>", f"<0000> <FFFFFFFF> <{to}>", f"<41> <41> [<{to}>]"))
    cmap = f"/CIDInit begincmap 1 begincodespacerange <00> <FF> endcodespacerange 1 beginbfrange {ranges}"
    cmap += f" endbfrange {dice.choice((1, 30_000))} beginbfchar <41> <{to}> endbfchar endcmap"
    body = cmap.encode()
    unicode = b"<< /Length %d >>\nstream\n%s\nendstream" % (len(body), body)
    page = b"<< /Type /Page /Parent 2 0 R /Contents 5 0 R /Resources << /Font << /F1 7 0 R >> >> >>"
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 6 0 R >>"
    drawn = b"BT /F1 9 Tf (AAAA words) Tj ET"
    path.write_bytes(_pdf(b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>", page, drawn, (unicode, font)))
    return None


def pdf_picture(dice: random.Random, path: Path) -> str | None:
    """A page with a picture that claims to be huge, and no text."""
    side = dice.choice((1, 60_000, 2**31))
    picture = b"<< /Type /XObject /Subtype /Image /Width %d /Height %d /BitsPerComponent 8" % (side, side)
    page = b"<< /Type /Page /Parent 2 0 R /Contents 6 0 R /Resources << /XObject << /X 5 0 R >> >> >>"
    draw = b"<< /Length 5 >>\nstream\n/X Do\nendstream"
    data = _pdf(
        b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
        page,
        bytes(dice.choice((9, 9_000_000))),
        (draw,),
        picture,
    )
    path.write_bytes(data)
    return None


def package_page(dice: random.Random, path: Path) -> str | None:
    """An ordinary spreadsheet, presentation, OpenDocument text or e-book."""
    said = [words(dice, 20).replace("\u202e", "x") for _ in range(dice.randrange(1, 30))]
    kind = dice.randrange(5)
    if kind == 0:
        write_xlsx(path, {"Quay": [(f"B{row}", one) for row, one in enumerate(said, 3)]})
        return f"## Quay (B3:B{len(said) + 2})\n\n" + "\n".join(said)
    if kind == 1:
        write_ods(path, [[one] for one in said])
        return f"## Sheet1 (A1:A{len(said)})\n\n" + "\n".join(said)
    if kind == 2:
        write_pptx(path, [slide_shape(one) for one in said])
        return "\n\n".join(f"## Slide {number}\n\n{one}" for number, one in enumerate(said, 1))
    if kind == 3:
        write_odf(path, "text", "".join(f"<text:p>{one}</text:p>" for one in said))
        return "\n\n".join(said)
    write_epub(path, [f"<body><p>{one}</p></body>" for one in said])
    return "\n\n".join(said)


def package_bomb(dice: random.Random, path: Path) -> str | None:
    """A package with little that claims, repeats or nests much, or refers to what it does not have."""
    many = dice.choice((100, 10_000, 300_000))
    cell = '<table:table-cell table:number-columns-repeated="99999999"><text:p>x</text:p></table:table-cell>'
    hidden = f'<table:table-row table:number-rows-repeated="9999999" table:visibility="collapse">{cell}'
    frame = f'<c:chart xmlns:c="{_CHARTS}" r:id="chart"/>'
    column, point = '<col min="1" max="16384" hidden="1"/>', '<c:pt idx="0"><c:v>x</c:v></c:pt>'
    number = dice.choice(("1e308", "nan", "-1e-300", "45000.5"))
    codes = "#" * many, ";" * many, "[" * many, "0.0" * many, "[h]" * many
    code = f'<numFmts><numFmt numFmtId="1" formatCode="{dice.choice(codes)}"/></numFmts>'
    dice.choice(
        (
            lambda: write_xlsx(
                path, {"S": [("A1", 1.0), (dice.choice(("XFD1048576", "A99999999", "ZZZZ9")), 2.0)]}
            ),
            lambda: write_xlsx(path, {"S": [(f"A{row}", "x" * 30) for row in range(1, many)]}),
            lambda: write_xlsx(path, {f"S{number}": [("A1", 1.0)] for number in range(many // 100)}),
            lambda: write_workbook(
                path,
                f'<row r="1"><c s="0"><v>{number}</v></c></row>',
                columns=f"<cols>{column * many}</cols>",
            ),
            lambda: write_workbook(
                path,
                '<row r="1"><c s="0"><v>1234.5</v></c></row>',
                styles=f'{code}<cellXfs><xf numFmtId="1"/></cellXfs>',
            ),
            lambda: write_odf(path, "spreadsheet", f"<table:table>{hidden}</table:table-row></table:table>"),
            lambda: write_pptx(
                path,
                [frame * many],
                more={
                    "ppt/slides/_rels/slide1.xml.rels": relations({"chart": "chart.xml"}),
                    "ppt/slides/chart.xml": f'<c:chartSpace xmlns:c="{_CHARTS}"><c:ser><c:cat>'
                    f"{point * many}</c:cat></c:ser></c:chartSpace>",
                },
            ),
            lambda: write_odf(
                path, "spreadsheet", f"<table:table><table:table-row>{cell}</table:table-row></table:table>"
            ),
            lambda: write_odf(
                path,
                "text",
                f"<table:table><table:table-row>{cell * (many // 10)}</table:table-row></table:table>",
            ),
            lambda: write_odf(path, "text", "<text:list><text:list-item>" * many),
            lambda: write_odf(
                path, "text", f"<text:p>{'<text:span>' * many}x{'</text:span>' * many}</text:p>"
            ),
            lambda: write_odf(path, "text", '<text:p><text:s text:c="9999999"/>x</text:p>' * (many // 10)),
            lambda: write_odf(path, "presentation", "<draw:page/>" * many),
            lambda: write_pptx(path, ["<p:grpSp>" * many]),
            lambda: write_pptx(path, [slide_shape(*["x"] * many, placeholder="title")]),
            lambda: write_pptx(path, [slide_shape("x")] * (many // 100)),
            lambda: write_epub(path, ["<div>" * many + "x"]),
            lambda: write_epub(path, ["<p hidden>x" * many]),
            lambda: write_epub(path, ["x"] * (many // 100), title="t" * many),
            lambda: write_zip(path, {"ppt/presentation.xml": "<a>" * many}),
            lambda: write_zip(path, {"META-INF/container.xml": f'<rootfile full-path="{"../" * many}"/>'}),
            lambda: path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + dice.randbytes(many)),
        )
    )()
    return None


def rtf_page(dice: random.Random, path: Path) -> str | None:
    """An ordinary rich text, in code units of UTF-16 with a fallback."""
    said = [words(dice, 20).replace("\u202e", "x") for _ in range(dice.randrange(1, 60))]
    body = ""
    for one in said:
        units = one.encode("utf-16-le")
        for at in range(0, len(units), 2):
            unit = int.from_bytes(units[at : at + 2], "little", signed=True)
            body += chr(unit) if 32 <= unit < 127 else f"\\u{unit}?"
        body += dice.choice(("\\par ", "\\par\n", "\\\n"))
    path.write_bytes(b"{\\rtf1\\ansi{\\info{\\title no}}" + body.encode() + b"}")
    return "\n\n".join(said)


def rtf_bomb(dice: random.Random, path: Path) -> str | None:
    """Groups, notes, tables, fonts and boxes over and over, or nested."""
    many = dice.choice((100, 10_000, 1_000_000))
    shapes = (
        *("{", "}", "\\", "\\*", "\\par ", "\\'41", "\\'", "\\u-10179?", "\\u9" + "9" * 50, "\\bin9999999 "),
        *("{\\footnote x}", "{\\footnote x", "\\cell ", "\\trowd\\cellx9\\cell\\row ", "\\row", "\\cellx5 "),
        *(
            "{\\shptxt x",
            "{\\listtext x",
            "{\\upr{\\ud x",
            "{\\fonttbl\\f7\\fcharset2 Symbol;}",
            "\\v x",
            "\\cpg932 ",
        ),
        *("\\" + "a" * 60, "\\uc99999 \\u5 x", "{\\super 1}", "\\ansicpg65001 \\'c3", "x\0\n", "{\\pict ff}"),
    )
    shape = "".join(dice.choice(shapes) for _ in range(dice.randrange(1, 4)))
    rows = "".join(f"\\trowd\\cellx{number * 300}\\cell\\row" for number in range(many // 10))
    body = dice.choice((shape * (many // 4), shape * (many // 4), rows, "\\bin99999999999"))
    path.write_bytes(b"{\\rtf1 " + dice.choice((b"", b"{\\*\\x ")) + body.encode("latin-1"))
    return None


def mail_page(dice: random.Random, path: Path) -> str | None:
    """An ordinary message, plain or with a page, perhaps with an attachment."""
    said = [words(dice, 20).replace("\u202e", "x") for _ in range(dice.randrange(1, 30))]
    mail = EmailMessage()
    mail["Subject"] = "From the quay"
    mail["To"] = "a@example.org"
    mail.set_content("\n\n".join(said))
    if dice.random() < 0.5:
        mail.add_alternative("".join(f"<p>{one}</p>" for one in said), subtype="html")
    attached = dice.random() < 0.5
    if attached:
        mail.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="a.pdf")
    path.write_bytes(bytes(mail))
    end = f"\n\n{attachment_left_out('a.pdf')}" if attached else ""
    return "\n\n".join(("# From the quay", "To: a@example.org", *said)) + end


def mail_bomb(dice: random.Random, path: Path) -> str | None:
    """Parts, fields and encoded words over and over, or nested; charsets of any name."""
    many = dice.choice((10, 1000, 100_000))
    part = "Content-Type: multipart/mixed; boundary=b{0}\n\n--b{0}\n"
    codec = dice.choice(_CODECS)
    body = dice.choice(
        (
            lambda: "".join(part.format(number) for number in range(many)),
            lambda: part.format(1) + "--b1\n" * many,
            lambda: part.format(1) + "Content-Disposition: attachment\n\nx\n--b1\n" * many,
            lambda: "Content-Type: message/rfc822\n\n" * many,
            lambda: "X-Y: z\n" * many,
            lambda: (
                "Subject: " + dice.choice(("=?utf-8?q?", "=?x?b?!!?=", "=?x?=", "=?utf-8?b?/w?= ")) * many
            ),
            lambda: "Content-Type: text/plain" + '; a*0="x' * many,
            lambda: "Content-Disposition: attachment; filename*0*=x-none''%ff" + ";filename*1=y" * many,
            lambda: (
                f"Content-Type: text/plain; charset={codec}\n\n"
                + dice.choice(("+ADw-b", "xn--", "\xff")) * many
            ),
            lambda: f"Content-Type: text/html; charset={codec}\n\n<meta charset={codec}>" + "<p>x" * many,
            lambda: (
                "Content-Transfer-Encoding: base64\nContent-Type: text/html\n\n" + "PHA+" * many + "=" * many
            ),
            lambda: "Content-Transfer-Encoding: x-uuencode\n\nbegin 666 a\n" + "M!!!\n" * many,
            lambda: "Content-Type: multipart/alternative; boundary=" + "b" * many + "\n\n--b\n",
        )
    )()
    path.write_bytes(b"From: a@example.org\n" + body.encode("latin-1"))
    return None


def table_page(dice: random.Random, path: Path) -> str | None:
    """An ordinary table in one of the usual dialects and encodings."""
    rows = [[words(dice, 3).replace("\u202e", "x") for _ in range(4)] for _ in range(dice.randrange(2, 300))]
    written = io.StringIO()
    quoting = dice.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    ends = dice.choice(("\n", "\r\n"))
    csv.writer(written, delimiter=dice.choice(",;\t|"), quoting=quoting, lineterminator=ends).writerows(rows)
    path.write_bytes(written.getvalue().encode(dice.choice(("utf-8", "utf-8-sig", "utf-16"))))
    return "\n".join(map("\t".join, rows))


def table_bomb(dice: random.Random, path: Path) -> str | None:
    """Quotation marks that are never closed, rows of any width, separators only."""
    many = dice.choice((100, 10_000, 1_000_000))
    shapes = ('"', ",", '","', "',", "a;", "\n", '\n"x', '\\"', "\t|", "sep=,\n", "x", ",,\n", '""', "1,2\n")
    shape = "".join(dice.choice(shapes) for _ in range(dice.randrange(1, 5)))
    rows = "".join("," * (number % 2000) + "\n" for number in range(many // 1000))
    path.write_text(dice.choice(("a,b\n1,2\n", "")) + dice.choice((shape * many, shape * many, rows)))
    return None


def subtitles_page(dice: random.Random, path: Path) -> str | None:
    """Ordinary subtitles."""
    said = [words(dice, 9).replace("\u202e", "x") for _ in range(dice.randrange(1, 59))]
    captions = (
        f"{number}\n00:10:{number:02},000 --> 00:10:{number:02},500\n<i>{one}</i>\n\n"
        for number, one in enumerate(said)
    )
    path.write_text("".join(captions), encoding="utf-8")
    return "\n".join(f"[10:{number:02}] {one}" for number, one in enumerate(said))


def lines_bomb(dice: random.Random, path: Path) -> str | None:
    """Times, markup and control sequences over and over: subtitles, or a log."""
    many = dice.choice((100, 10_000, 1_000_000))
    shapes = (
        *(
            "00:00:00,000 --> ",
            "00:01.000 --> 00:02.000\n",
            "<v ",
            "<v x>",
            "{\\",
            "<",
            "WEBVTT\n",
            "NOTE\n",
            "\n\n",
        ),
        *("1\n", "99:" * 9, "\x1b[", "\x1b]", "\x1b", "\x1b[0m", "0;", "&lt", "<c.", "x"),
    )
    shape = "".join(dice.choice(shapes) for _ in range(dice.randrange(1, 4)))
    path.write_text(dice.choice(("", "WEBVTT\n\n", "00:01.000 --> 00:02.000\nx\n")) + shape * many)
    return None


def notebook_bomb(dice: random.Random, path: Path) -> str | None:
    """A notebook with cells of any type, deep or many."""
    many = dice.choice((10, 1000, 100_000))
    cell: object = dice.choice(
        (
            {},
            [],
            None,
            {"cell_type": "code", "outputs": [None, {"data": []}, {"text": [1]}], "source": ["`" * many]},
        )
    )
    # Few of a long cell: 100,000 of 100,000 characters would take the campaign's own memory.
    cells = [cell, {"cell_type": "markdown", "source": "x"}] * min(many, 20_000_000 // len(json.dumps(cell)))
    text = json.dumps({"cells": cells, "metadata": cell})
    path.write_text(dice.choice((text, text[: dice.randrange(len(text))], "[" * many, '{"cells":' * many)))
    return None


def damaged(dice: random.Random, path: Path) -> str | None:
    """An ordinary document of any kind with bytes changed, taken out, doubled, or its end missing."""
    makers = (
        *(pdf_page, docx_page, package_page, package_page, html_page, pdf_equal, pdf_font),
        *(rtf_page, mail_page, table_page, subtitles_page),
    )
    dice.choice(makers)(dice, path)
    data = bytearray(path.read_bytes())
    for _ in range(dice.choice((1, 1, 3, 30))):
        place, length = dice.randrange(len(data) + 1), dice.choice((1, 1, 4, 100, 2000))
        change = dice.randrange(4)
        if change == 0:
            data[place : place + length] = dice.randbytes(length)
        elif change == 1:
            del data[place : place + length]
        elif change == 2:
            data[place:place] = data[place : place + length]
        else:
            numbers = (b"0", b"-1", b"99999999999", b"R", b"/", b"<<", b"\xff\xff\xff\xff", b"\0\0\0\0")
            number = dice.choice(numbers)
            data[place : place + len(number)] = number
    if dice.random() < 0.2:
        del data[dice.randrange(len(data) + 1) :]
    path.write_bytes(bytes(data))
    return None


def sparse(dice: random.Random, path: Path) -> str | None:
    """A file with a hole: it begins like something and is larger than can be read."""
    with path.open("wb") as stream:
        stream.write(dice.choice((b"line\n", b"%PDF-1.7\n", b"PK\x03\x04", b"<p>")))
        stream.truncate(dice.choice((30_000_000, 40_000_000, 500_000_000, 2**33)))
    return None


# Kinds of files by the ending that a maker is right with, and how often each is drawn.
MAKERS: tuple[tuple[Maker, str, int], ...] = (
    (plain, ".txt", 8),
    (noise, ".txt", 10),
    (long_line, ".log", 3),
    (html_page, ".html", 6),
    (html_shapes, ".html", 12),
    (html_wide, ".html", 1),
    (html_codec, ".htm", 6),
    (docx_page, ".docx", 5),
    (docx_bomb, ".docx", 5),
    (docx_xml, ".docx", 8),
    (docx_entities, ".docx", 5),
    (docx_zip, ".docx", 8),
    (pdf_page, ".pdf", 3),
    (pdf_equal, ".pdf", 3),
    (pdf_stream, ".pdf", 2),
    (pdf_tree, ".pdf", 4),
    (pdf_font, ".pdf", 4),
    (pdf_picture, ".pdf", 2),
    (package_page, ".pptx", 5),
    (package_bomb, ".xlsx", 10),
    (rtf_page, ".rtf", 5),
    (rtf_bomb, ".rtf", 10),
    (mail_page, ".eml", 4),
    (mail_bomb, ".eml", 10),
    (table_page, ".csv", 4),
    (table_bomb, ".csv", 8),
    (subtitles_page, ".srt", 3),
    (lines_bomb, ".vtt", 4),
    (lines_bomb, ".log", 2),
    (notebook_bomb, ".ipynb", 4),
    (damaged, "", 20),
    (sparse, ".pdf", 1),
)


def _pdf(
    pages: bytes, page: bytes, stream: bytes, more: tuple[bytes, ...] | list[bytes], about: bytes = b"<<"
) -> bytes:
    """Objects: 1 catalogue, 2 pages, 3 font, 4 page, 5 stream, and more from 6 on."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", pages]
    objects += [b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>", page]
    objects += [b"%s /Length %d >>\nstream\n%s\nendstream" % (about, len(stream), stream), *more]
    out = io.BytesIO()
    out.write(b"%PDF-1.4\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    table = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.write(b"".join(b"%010d 00000 n \n" % place for place in places))
    out.write(b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, table))
    return out.getvalue()
