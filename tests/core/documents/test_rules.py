"""One table for all formats: each rule about marks, cells, numbers, notes and parts without a text holds in
each format that can express it, and what is left out is in the record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from core.documents.reading import Document, read_document
from core.events import LeftOut
from tests.core.documents.made import (
    W,
    pdf_of_content,
    relations,
    slide_shape,
    write_docx,
    write_epub,
    write_odf,
    write_pptx,
    write_workbook,
    write_zip,
)

M = "http://schemas.openxmlformats.org/officeDocument/2006/math"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
STYLE = 'xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0"'
ADDRESS = "https://files.example/form-12.pdf"
# A run: its text, and its mark (super, sub, struck, hidden, link) or nothing.
Run = tuple[str, str]
# The insides of a page of each format that has runs, from its paragraph.


# ---- runs in each format


def word_runs(runs: Sequence[Run]) -> str:
    properties = {
        "super": '<w:vertAlign w:val="superscript"/>',
        "sub": '<w:vertAlign w:val="subscript"/>',
        "struck": "<w:strike/>",
        "hidden": "<w:vanish/>",
    }
    pieces = []
    for text, mark in runs:
        words = f'<w:t xml:space="preserve">{escape(text)}</w:t>'
        run = f"<w:r><w:rPr>{properties.get(mark, '')}</w:rPr>{words}</w:r>"
        pieces.append(
            f'<w:hyperlink xmlns:r="{OFFICE}" r:id="link">{run}</w:hyperlink>' if mark == "link" else run
        )
    return "".join(pieces)


def html_runs(runs: Sequence[Run]) -> str:
    tags = {
        "super": "<sup>{}</sup>",
        "sub": "<sub>{}</sub>",
        "struck": "<s>{}</s>",
        "hidden": "<span hidden>{}</span>",
        "link": f'<a href="{ADDRESS}">{{}}</a>',
    }
    return "".join(tags.get(mark, "{}").format(escape(text)) for text, mark in runs)


def slide_runs(runs: Sequence[Run]) -> str:
    properties = {
        "super": 'baseline="30000"',
        "sub": 'baseline="-25000"',
        "struck": 'strike="sngStrike"',
    }
    pieces = []
    for text, mark in runs:
        link = '<a:hlinkClick r:id="link"/>' if mark == "link" else ""
        pieces.append(f"<a:r><a:rPr {properties.get(mark, '')}>{link}</a:rPr><a:t>{escape(text)}</a:t></a:r>")
    return "".join(pieces)


def odf_runs(runs: Sequence[Run]) -> str:
    pieces = []
    for text, mark in runs:
        words = escape(text).replace("  ", " <text:s/>")
        if mark == "link":
            link = f'xmlns:xlink="http://www.w3.org/1999/xlink" xlink:href="{ADDRESS}"'
            pieces.append(f"<text:a {link}>{words}</text:a>")
        else:
            pieces.append(f'<text:span text:style-name="{mark}">{words}</text:span>' if mark else words)
    return "".join(pieces)


ODF_STYLES = f"""<office:automatic-styles {STYLE}>
<style:style style:name="super"><style:text-properties style:text-position="super 58%"/></style:style>
<style:style style:name="sub"><style:text-properties style:text-position="-25% 58%"/></style:style>
<style:style style:name="struck"><style:text-properties style:text-line-through-style="solid"/></style:style>
<style:style style:name="hidden"><style:text-properties text:display="none"/></style:style>
</office:automatic-styles>"""


def rtf_runs(runs: Sequence[Run]) -> str:
    words = {"super": r"\super ", "sub": r"\sub ", "struck": r"\strike ", "hidden": r"\v "}
    pieces = []
    for text, mark in runs:
        if mark == "link":
            pieces.append(rf'{{\field{{\*\fldinst{{HYPERLINK "{ADDRESS}"}}}}{{\fldrslt {text}}}}}')
        else:
            pieces.append(f"{{{words[mark]}{text}}}" if mark else text)
    return "".join(pieces)


def sheet_runs(runs: Sequence[Run]) -> str:
    properties = {
        "super": '<vertAlign val="superscript"/>',
        "sub": '<vertAlign val="subscript"/>',
        "struck": "<strike/>",
    }
    return "".join(
        f'<r><rPr>{properties.get(mark, "")}</rPr><t xml:space="preserve">{escape(text)}</t></r>'
        for text, mark in runs
    )


def pdf_runs(runs: Sequence[Run]) -> str:
    sizes = {"super": "7 Tf 5 Ts", "sub": "7 Tf -3 Ts"}
    shown = "".join(f"/F1 {sizes.get(mark, '12 Tf 0 Ts')} ({text}) Tj " for text, mark in runs)
    return f"BT 1 0 0 1 50 700 Tm {shown} ET"


# ---- files with one paragraph of runs

EXTERNAL = relations({"hyperlink#link": "x"}).replace(
    'Target="x"', f'Target="{ADDRESS}" TargetMode="External"'
)


def docx(path: Path, body: str, numbering: str = "", more: dict[str, str] | None = None) -> Path:
    return write_docx(path, body, numbering, more={"word/_rels/document.xml.rels": EXTERNAL, **(more or {})})


def text_file(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


def pdf_file(path: Path, content: str) -> Path:
    path.write_bytes(pdf_of_content(content))
    return path


def pptx(path: Path, shapes: str, more: dict[str, str] | None = None) -> Path:
    return write_pptx(path, [shapes], more={"ppt/slides/_rels/slide1.xml.rels": EXTERNAL, **(more or {})})


def odf(path: Path, kind: str, inside: str, styles: str = ODF_STYLES) -> Path:
    write_odf(path, kind, inside)
    import zipfile

    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    parts["content.xml"] = parts["content.xml"].replace("<office:body>", f"{styles}<office:body>")
    return write_zip(path, parts)


def shape(paragraph: str) -> str:
    return f"<p:sp><p:txBody><a:p>{paragraph}</a:p></p:txBody></p:sp>"


def ods_row(*cells: str) -> str:
    inside = "".join(f"<table:table-cell><text:p>{cell}</text:p></table:table-cell>" for cell in cells)
    return f'<table:table table:name="S"><table:table-row>{inside}</table:table-row></table:table>'


WITH_RUNS: dict[str, Callable[[Path, Sequence[Run]], Path]] = {
    "docx": lambda path, runs: docx(path, f"<w:p>{word_runs(runs)}</w:p>"),
    "html": lambda path, runs: text_file(path, f"<!doctype html><p>{html_runs(runs)}</p>"),
    "epub": lambda path, runs: write_epub(path, [f"<html><body><p>{html_runs(runs)}</p></body></html>"]),
    "eml": lambda path, runs: text_file(
        path,
        f"Subject: x\nMIME-Version: 1.0\nContent-Type: text/html; charset=utf-8\n\n<p>{html_runs(runs)}</p>",
    ),
    "pptx": lambda path, runs: pptx(path, shape(slide_runs(runs))),
    "odt": lambda path, runs: odf(path, "text", f"<text:p>{odf_runs(runs)}</text:p>"),
    "odp": lambda path, runs: odf(
        path,
        "presentation",
        f"<draw:page><draw:frame><draw:text-box><text:p>{odf_runs(runs)}</text:p>"
        "</draw:text-box></draw:frame></draw:page>",
    ),
    "ods": lambda path, runs: odf(path, "spreadsheet", ods_row(odf_runs(runs))),
    "rtf": lambda path, runs: text_file(path, rf"{{\rtf1 {rtf_runs(runs)}\par}}"),
    "xlsx": lambda path, runs: write_workbook(
        path, '<row><c r="A1" t="s"><v>0</v></c></row>', strings=f"<si>{sheet_runs(runs)}</si>"
    ),
    "pdf": lambda path, runs: pdf_file(path, pdf_runs(runs)),
}
MARKS: dict[str, tuple[Sequence[Run], str, str]] = {
    # what, the runs, the text, formats that cannot express it
    "raised number": ((("below 10", ""), ("5", "super"), (" cells", "")), "below 10⁵ cells", ""),
    "lowered number": ((("CO", ""), ("2", "sub"), (" rises", "")), "CO₂ rises", ""),
    "raised in parts": ((("10", ""), ("-", "super"), ("6", "super"), (" m", "")), "10⁻⁶ m", "pdf"),
    "raised term": ((("x", ""), ("k+1", "super"), (" is", "")), "x^(k+1) is", "pdf"),
    "signs of another font": (
        (("THYR", ""), ("-", "super"), ("4 M", ""), ("20x15", "sub")),
        "THYR-4 M20x15",
        " ".join(each for each in WITH_RUNS if each != "pdf"),
    ),
    "ordinal": ((("the 1", ""), ("st", "super"), (" of May", "")), "the 1st of May", ""),
    "struck": ((("is ", ""), ("5,000", "struck"), (" 4,200", "")), "is ~~5,000~~ 4,200", "pdf"),
    "struck in parts": ((("a ", ""), ("b ", "struck"), ("c", "struck"), (" d", "")), "a ~~b c~~ d", "pdf"),
    "hidden": (
        (("seen ", ""), ("not this", "hidden"), ("end", "")),
        "seen end",
        "pptx xlsx pdf ods",
    ),
    "soft hyphen": ((("docu\u00adment", ""),), "document", "rtf pdf"),
    "link": ((("the ", ""), ("form", "link"), (" here", "")), f"the form ({ADDRESS}) here", "xlsx pdf"),
    "link that says its address": ((("see ", ""), (ADDRESS, "link")), f"see {ADDRESS}", "xlsx pdf"),
}


def cases() -> list[tuple[str, str]]:
    return [(kind, rule) for rule in MARKS for kind in WITH_RUNS if kind not in MARKS[rule][2].split()]


@pytest.mark.parametrize(("kind", "rule"), cases())
def test_marks_of_runs(kind: str, rule: str, tmp_path: Path) -> None:
    runs, expected, _ = MARKS[rule]
    document = read_document(WITH_RUNS[kind](tmp_path / f"a.{kind}", runs))
    assert expected in document.text.split("\n")
    hidden = sum(len(text.split()) for text, mark in runs if mark == "hidden")
    assert document.left_out == ((LeftOut("hidden word", hidden),) if hidden else ())


# ---- tables in cells


def word_table(*rows: Sequence[str]) -> str:
    cells = ["".join(f"<w:tc>{cell}</w:tc>" for cell in row) for row in rows]
    return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in cells)}</w:tbl>"


def word_words(text: str) -> str:
    return f"<w:p>{word_runs([(text, '')])}</w:p>"


def odf_table(*rows: Sequence[str]) -> str:
    cells = ["".join(f"<table:table-cell>{cell}</table:table-cell>" for cell in row) for row in rows]
    return (
        f"<table:table>{''.join(f'<table:table-row>{row}</table:table-row>' for row in cells)}</table:table>"
    )


def odf_words(text: str) -> str:
    return f"<text:p>{text}</text:p>"


def html_table(*rows: Sequence[str]) -> str:
    cells = ["".join(f"<td>{cell}</td>" for cell in row) for row in rows]
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


RTF_NEST = r"\itap2 Oven\nestcell 1\nestcell{\*\nesttableprops\trowd\cellx5\cellx9\nestrow}"
NESTED: dict[str, Callable[[Path], Path]] = {
    "docx": lambda path: docx(
        path,
        word_table(
            [
                word_words("Kitchen"),
                word_table([word_words("Oven"), word_words("1")]) + word_words(""),
                word_words("900"),
            ],
            [word_words("Bath"), word_words("Sink"), word_words("300")],
        ),
    ),
    "odt": lambda path: odf(
        path,
        "text",
        odf_table(
            [odf_words("Kitchen"), odf_table([odf_words("Oven"), odf_words("1")]), odf_words("900")],
            [odf_words("Bath"), odf_words("Sink"), odf_words("300")],
        ),
    ),
    "html": lambda path: text_file(
        path,
        "<!doctype html>"
        + html_table(["Kitchen", html_table(["Oven", "1"]), "900"], ["Bath", "Sink", "300"]),
    ),
    "rtf": lambda path: text_file(
        path,
        rf"{{\rtf1\trowd\cellx1000\cellx2000\cellx3000\pard\intbl Kitchen\cell "
        rf"{RTF_NEST}\pard\intbl\cell 900\cell\row"
        r"\trowd\cellx1000\cellx2000\cellx3000\pard\intbl Bath\cell Sink\cell 300\cell\row\pard}",
    ),
}


@pytest.mark.parametrize("kind", NESTED)
def test_a_table_in_a_cell_stays_in_its_row(kind: str, tmp_path: Path) -> None:
    lines = read_document(NESTED[kind](tmp_path / f"a.{kind}")).text.strip().split("\n")
    assert lines == ["Kitchen\tOven | 1\t900", "Bath\tSink\t300"]


def test_lists_and_code_in_cells(tmp_path: Path) -> None:
    head = "<!doctype html><table><tr><th>Room<th>Things</tr>"
    page = f"{head}<tr><td>Hall<td><ul><li>lamp<li>rug</ul></tr></table>"
    assert read_document(text_file(tmp_path / "a.html", page)).text == "Room\tThings\nHall\t- lamp - rug"
    code = f"{head}<tr><td><pre>1\n2</pre><td><pre>if x:\n    y</pre></table>"
    assert read_document(text_file(tmp_path / "b.html", code)).text == "Room\tThings\nif x:\n    y"


# ---- numbers of lists

NUMBERS = {
    # Word's name, OpenDocument's, the slides', CSS's, and the third number
    "circled": ("decimalEnclosedCircle", "①, ②, ③, ...", "circleNumDbPlain", "", "③"),
    "Chinese": ("chineseCountingThousand", "一, 二, 三, ...", "ea1ChsPlain", "simp-chinese-informal", "三"),
    "ordinal": ("ordinal", "1st", "", "", "3rd"),
    "roman": ("lowerRoman", "i", "romanLcPlain", "lower-roman", "iii"),
    "letter": ("upperLetter", "A", "alphaUcPlain", "upper-alpha", "C"),
    "stem": ("ideographTraditional", "甲, 乙, 丙, ...", "", "cjk-heavenly-stem", "丙"),
}


def numbered(kind: str, path: Path, names: Sequence[str]) -> Path | None:
    word, open_document, slide, css = names[:4]
    if kind == "docx":
        level = f'<w:lvl w:ilvl="0"><w:numFmt w:val="{word}"/><w:lvlText w:val="%1"/></w:lvl>'
        lists = f'<w:abstractNum w:abstractNumId="0">{level}</w:abstractNum>'
        lists += '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
        item = '<w:p><w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr></w:pPr>'
        return docx(path, "".join(f"{item}<w:r><w:t>{each}</w:t></w:r></w:p>" for each in "abc"), lists)
    if kind == "odt":
        level = f'<text:list-level-style-number text:level="1" style:num-format="{open_document}"/>'
        styles = f'<office:automatic-styles {STYLE}><text:list-style style:name="L">{level}'
        items = "".join(f"<text:list-item><text:p>{each}</text:p></text:list-item>" for each in "abc")
        inside = f'<text:list text:style-name="L">{items}</text:list>'
        return odf(path, "text", inside, f"{styles}</text:list-style></office:automatic-styles>")
    if kind == "pptx" and slide:
        paragraph = f'<a:p><a:pPr><a:buAutoNum type="{slide}"/></a:pPr><a:r><a:t>{{}}</a:t></a:r></a:p>'
        paragraphs = "".join(paragraph.format(each) for each in "abc")
        return pptx(path, f"<p:sp><p:txBody>{paragraphs}</p:txBody></p:sp>")
    if kind == "html" and css:
        return text_file(path, f'<!doctype html><ol style="list-style-type:{css}"><li>a<li>b<li>c</ol>')
    return None


@pytest.mark.parametrize("kind", ["docx", "odt", "pptx", "html"])
@pytest.mark.parametrize("way", NUMBERS)
def test_numbers_of_lists(way: str, kind: str, tmp_path: Path) -> None:
    path = numbered(kind, tmp_path / f"a.{kind}", NUMBERS[way])
    if path is not None:
        last = read_document(path).text.split("\n")[-1]
        assert last.replace(".", "") == f"{NUMBERS[way][4]} c"


# ---- equations, pictures, boxes, comments and other parts

OMML = f"""<m:oMath xmlns:m="{M}"><m:sSup><m:e><m:r><m:t>c</m:t></m:r></m:e>
<m:sup><m:r><m:t>2</m:t></m:r></m:sup>
</m:sSup></m:oMath>"""
MATHML = '<math xmlns="http://www.w3.org/1998/Math/MathML"><msup><mi>c</mi><mn>2</mn></msup></math>'
A14 = "http://schemas.microsoft.com/office/drawing/2010/main"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
DRAWN = "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def sheet_with(path: Path, kind: str, part: str) -> Path:
    """A workbook whose sheet refers to a part of that kind."""
    import zipfile

    write_workbook(path, '<row r="1"><c r="A1"><v>1</v></c></row>')
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("xl/_rels/sheet.xml.rels", relations({f"{kind}#d": "part.xml"}))
        archive.writestr("xl/part.xml", part)
    return path


def word_notes(path: Path, kind: str, inside: str, body: str) -> Path:
    return docx(path, body, more={f"word/{kind}.xml": f'<w:{kind} xmlns:w="{W}">{inside}</w:{kind}>'})


BOX = (
    '<xdr:wsDr xmlns:xdr="http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing"'
    f' xmlns:a="{DRAWING}"><xdr:sp>'
    "<xdr:txBody><a:p><a:r><a:t>In thousands</a:t></a:r></a:p></xdr:txBody></xdr:sp>"
    "</xdr:wsDr>"
)
ICON = '<xdr:pic><xdr:nvPicPr><xdr:cNvPr descr="up"/></xdr:nvPicPr></xdr:pic>'
MIXED = "MIME-Version: 1.0\nSubject: x\nContent-Type: multipart/{}; boundary=b\n\n{}--b--\n"
PARTS: dict[str, tuple[Callable[[Path], Path], str, tuple[LeftOut, ...]]] = {
    "equation.docx": (lambda path: docx(path, f"<w:p>{word_runs([('E=m', '')])}{OMML}</w:p>"), "E=mc^2", ()),
    "equation.pptx": (
        lambda path: pptx(
            path, shape(slide_runs([("E=m", "")]) + f'<a14:m xmlns:a14="{A14}">{OMML}</a14:m>')
        ),
        "E=mc^2",
        (),
    ),
    "equation.html": (lambda path: text_file(path, f"<!doctype html><p>E=m{MATHML}</p>"), "E=mc^2", ()),
    "equation.odt": (
        lambda path: odf(
            path, "text", f"<text:p>E=m<draw:frame><draw:object>{MATHML}</draw:object></draw:frame></text:p>"
        ),
        "E=mc^2",
        (),
    ),
    "equation.rtf": (
        lambda path: text_file(
            path, r"{\rtf1 E=m{\mmath{\*\moMath{\msSup{\me{\mr c}}{\msup{\mr 2}}}}}{\mmathPict no}\par}"
        ),
        "E=mc^2",
        (),
    ),
    "ruby.html": (
        lambda path: text_file(path, "<!doctype html><ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp></ruby>字"),
        "漢(かん)字",
        (),
    ),
    "ruby.odt": (
        lambda path: odf(
            path,
            "text",
            "<text:p><text:ruby><text:ruby-base>漢</text:ruby-base><text:ruby-text>かん</text:ruby-text>"
            "</text:ruby>字</text:p>",
        ),
        "漢(かん)字",
        (),
    ),
    "graphic.html": (
        lambda path: text_file(
            path, "<!doctype html><p>a</p><svg><title>no</title><text>High water</text></svg>"
        ),
        "High water",
        (),
    ),
    "picture.docx": (
        lambda path: docx(
            path,
            f'<w:p><w:r><w:drawing xmlns:a="{DRAWING}" xmlns:p="{DRAWN}"><p:docPr descr="A quay"/>'
            f"<a:blip/></w:drawing></w:r></w:p>{word_words('x')}",
        ),
        "[picture: A quay]",
        (LeftOut("picture"),),
    ),
    "picture.pptx": (
        lambda path: pptx(
            path,
            '<p:pic><p:nvPicPr><p:cNvPr descr="A quay"/></p:nvPicPr></p:pic>'
            + shape(slide_runs([("x", "")])),
        ),
        "[picture: A quay]",
        (LeftOut("picture"),),
    ),
    "picture.odt": (
        lambda path: odf(path, "text", "<text:p>x <draw:frame><draw:image/></draw:frame></text:p>"),
        "x [picture]",
        (LeftOut("picture"),),
    ),
    "picture.rtf": (
        lambda path: text_file(path, r"{\rtf1 x {\pict 00ff}\par}"),
        "x [picture]",
        (LeftOut("picture"),),
    ),
    "box.ods": (
        lambda path: odf(
            path,
            "spreadsheet",
            '<table:table table:name="S"><table:shapes><draw:frame>'
            "<draw:text-box><text:p>In thousands</text:p>"
            "</draw:text-box></draw:frame></table:shapes><table:table-row><table:table-cell><text:p>1</text:p>"
            "</table:table-cell></table:table-row></table:table>",
        ),
        "[text box] In thousands",
        (),
    ),
    "icons.xlsx": (
        lambda path: sheet_with(path, "drawing", BOX.replace("</xdr:sp>", f"</xdr:sp>{ICON}{ICON}")),
        "[picture: up]",
        (LeftOut("picture", 2),),
    ),
    "footer.xlsx": (
        lambda path: write_workbook(
            path,
            '<row r="1"><c r="A1"><v>1</v></c></row>',
            "<headerFooter><oddFooter>&amp;LDraft &amp;[PAGE]</oddFooter></headerFooter>",
        ),
        "[page footer] Draft",
        (),
    ),
    "comment.docx": (
        lambda path: word_notes(
            path,
            "comments",
            f'<w:comment w:id="4" w:author="Ann">{word_words("Why?")}</w:comment>',
            f'<w:p>{word_runs([("Rent", "")])}<w:r><w:commentReference w:id="4"/></w:r></w:p>',
        ),
        "[comment 1] Ann: Why?",
        (),
    ),
    "comment.odt": (
        lambda path: odf(
            path,
            "text",
            "<text:p>Rent<office:annotation><dc:creator xmlns:dc='http://purl.org/dc/elements/1.1/'>Ann</dc:creator>"
            "<text:p>Why?</text:p></office:annotation></text:p>",
        ),
        "[comment 1] Why?",
        (),
    ),
    "comment.rtf": (
        lambda path: text_file(path, r"{\rtf1 Rent{\*\atnid A}{\*\annotation\pard Why?}\par}"),
        "[comment 1] Why?",
        (),
    ),
    "comment.xlsx": (
        lambda path: sheet_with(
            path,
            "comments",
            f'<comments xmlns="{SHEET}"><commentList>'
            '<comment ref="B3"><text><t>Why?</t></text></comment></commentList>'
            "</comments>",
        ),
        "[comment B3] Why?",
        (),
    ),
    "comment.ods": (
        lambda path: odf(
            path, "spreadsheet", ods_row("1<office:annotation><text:p>Why?</text:p></office:annotation>")
        ),
        "[comment A1] Why?",
        (),
    ),
    "header.docx": (
        lambda path: docx(
            path,
            word_words("x"),
            more={
                "word/_rels/document.xml.rels": relations({"header": "header1.xml"}),
                "word/header1.xml": f'<w:hdr xmlns:w="{W}">{word_words("Secret")}</w:hdr>',
            },
        ),
        "[page header] Secret",
        (),
    ),
    "header.rtf": (
        lambda path: text_file(path, r"{\rtf1{\header Secret\par}x\par}"),
        "[page header] Secret",
        (),
    ),
    "box.html": (
        lambda path: text_file(
            path, "<!doctype html><p><input type=checkbox checked> yes <input type=radio> no"
        ),
        "[x] yes [ ] no",
        (),
    ),
    "choice.html": (
        lambda path: text_file(
            path, "<!doctype html><p>To <select><option>A<option selected>Norway</select>."
        ),
        "To Norway .",
        (),
    ),
    "box.rtf": (
        lambda path: text_file(
            path, r"{\rtf1{\field{\*\fldinst FORMCHECKBOX{\*\formfield{\fftype1\ffres1}}}{\fldrslt}} yes\par}"
        ),
        "[x] yes",
        (),
    ),
    "patch.eml": (
        lambda path: text_file(path, MIXED.format("mixed", "--b\nContent-Type: text/x-patch\n\n+new line\n")),
        "+new line",
        (),
    ),
    "attached.eml": (
        lambda path: text_file(
            path,
            MIXED.format(
                "mixed",
                "--b\nContent-Type: text/plain\n\nSee it\n--b\nContent-Type: image/png; name=a.png\n"
                "Content-Disposition: attachment\n\nx\n",
            ),
        ),
        "See it",
        (LeftOut("attachment", 1, "a.png"),),
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_are_read_or_marked(name: str, tmp_path: Path) -> None:
    write, expected, left_out = PARTS[name]
    document = read_document(write(tmp_path / name))
    assert document.text.split("\n").count(expected) == 1
    assert document.left_out == left_out


# ---- the order of a PDF page, and what it has beside its text


def drawn(x: int, y: int, text: str) -> str:
    return f"BT /F1 11 Tf 1 0 0 1 {x} {y} Tm ({text}) Tj ET\n"


def lines_at(x: int, *lines: str) -> list[str]:
    return [drawn(x, 700 - 14 * number, line) for number, line in enumerate(lines)]


LEFT = (
    *(
        "The harbour opens at six in the",
        "morning and closes when the last",
        "boat has left the north quay in",
    ),
    *(
        "the evening. In winter the gates",
        "are shut at four, because the ice",
        "makes the passage dangerous for",
    ),
)
RIGHT = (
    *("small boats and for those without", "lights. Fees are paid at the office", "beside the gate, and the"),
    *(
        "keeper hands out charts of the bay",
        "and the table of tides for the",
        "coming month and the next one.",
    ),
)
BOX_A = ("Check the roof", "and the gutters", "after the storm")
BOX_B = ("Call the office", "or the landlord", "within a week")
FRAMES = "".join(f"{x} {y} 150 {height} re S\n" for x in (45, 195) for y, height in ((660, 55), (715, 20)))


@pytest.mark.parametrize("by_row", [True, False])
def test_columns_are_read_one_after_the_other(by_row: bool, tmp_path: Path) -> None:
    left, right = lines_at(50, *LEFT), lines_at(300, *RIGHT)
    content = "".join(a + b for a, b in zip(left, right)) if by_row else "".join(left + right)
    assert read_document(pdf_file(tmp_path / "a.pdf", content)).text.split("\n") == [*LEFT, *RIGHT]


def test_boxes_of_a_chart_are_read_one_by_one(tmp_path: Path) -> None:
    heads = drawn(50, 720, "Finding") + drawn(200, 720, "Treatment")
    content = FRAMES + heads + "".join(lines_at(50, *BOX_A) + lines_at(200, *BOX_B))
    text = read_document(pdf_file(tmp_path / "a.pdf", content)).text
    assert text.split() == " ".join(("Finding Treatment", *BOX_A, *BOX_B)).split()


def test_words_are_whole_at_the_ends_of_lines(tmp_path: Path) -> None:
    content = "".join(
        lines_at(50, "It is a written docu-", "ment on the well-", "known Anglo-", "Saxon rule.")
    )
    text = read_document(pdf_file(tmp_path / "a.pdf", content)).text
    assert text == "It is a written document on the well-known Anglo-Saxon rule."


def annotated(path: Path, *annotations: str) -> Document:
    extra = f"/Annots [{' '.join(f'<< /Type /Annot {each} >>' for each in annotations)}]"
    path.write_bytes(pdf_of_content(drawn(50, 700, "Get the form now"), extra=extra))
    return read_document(path)


def test_links_and_comments_of_a_page_follow_their_words(tmp_path: Path) -> None:
    link = f"/Subtype /Link /Rect [89 695 113 712] /A << /S /URI /URI ({ADDRESS}) >>"
    assert annotated(tmp_path / "a.pdf", link).text == f"Get the form ({ADDRESS}) now"
    note = "/Subtype /Text /Rect [200 695 220 712] /Contents (Which?)"
    assert annotated(tmp_path / "b.pdf", note).text == "Get the form now [comment: Which?]"


@pytest.mark.parametrize(("y", "text"), [(704, "is ~~5,000~~ now"), (698, "is 5,000 now")])
def test_a_line_through_a_word_strikes_it_out(y: int, text: str, tmp_path: Path) -> None:
    content = "BT /F1 12 Tf 1 0 0 1 50 700 Tm (is 5,000 now) Tj ET\n"
    file = pdf_file(tmp_path / "a.pdf", f"{content}62 {y} m 93 {y} l S\n")
    assert read_document(file).text == text


def test_attachments_and_scans_of_a_pdf_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    names = "/Names << /EmbeddedFiles << /Names [(a.csv) 6 0 R] >> >>"
    file = "<< /Type /Filespec /F (a.csv) /UF (a.csv) /EF << /F 7 0 R >> >>"
    parts = (file, "<< /Length 1 >>\nstream\n1\nendstream")
    path.write_bytes(pdf_of_content(drawn(50, 700, "See it"), catalog=names, more=parts))
    assert read_document(path).left_out == (LeftOut("attachment", 1, "a.csv"),)
    picture = "q 800 0 0 800 0 0 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \x20 EI Q\n"
    scan = read_document(pdf_file(path, picture + drawn(50, 700, "Received 3 May")))
    assert scan.left_out == (LeftOut("scanned page", 1, "page 1"),)
    assert scan.text.startswith("Received 3 May\n\n[page 1 has no text but")


# ---- what is hidden


def hidden_document(kind: str, folder: Path) -> Document:
    if kind == "pptx":
        return read_document(write_pptx(folder / "a.pptx", [slide_shape("x"), slide_shape("y")], hidden=1))
    box = "<draw:frame><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>"
    page = f'<draw:page draw:style-name="{{}}">{box}</draw:page>'
    styles = (
        f'<office:automatic-styles {STYLE}><style:style style:name="H"><style:drawing-page-properties'
        ' presentation:visibility="hidden"/></style:style></office:automatic-styles>'
    )
    return read_document(
        odf(folder / "a.odp", "presentation", page.format("", "x") + page.format("H", "y"), styles)
    )


@pytest.mark.parametrize(
    ("kind", "left_out"),
    [
        ("pptx", (LeftOut("hidden slide", 1, "2"),)),
        ("odp", (LeftOut("hidden slide", 1, "2"),)),
    ],
)
def test_what_is_hidden_is_in_the_record(kind: str, left_out: tuple[LeftOut, ...], tmp_path: Path) -> None:
    assert hidden_document(kind, tmp_path).left_out == left_out


# ---- one file of XML

WORD_2003 = (
    '<?xml version="1.0"?><?mso-application progid="Word.Document"?>'
    '<w:wordDocument xmlns:w="http://schemas.microsoft.com/office/word/2003/wordml"><w:body><w:p><w:r><w:t>Tides</w:t>'
    "</w:r></w:p></w:body></w:wordDocument>"
)
EXCEL_2003 = (
    '<?xml version="1.0"?><Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet"'
    ' xmlns:ss="urn:schemas-microsoft-com:office:spreadsheet"><Worksheet ss:Name="S"><Table><Row>'
    '<Cell><Data ss:Type="String">Tides</Data></Cell>'
    '<Cell ss:Index="3"><Data ss:Type="Number">4.5</Data></Cell>'
    "</Row></Table></Worksheet></Workbook>"
)
FLAT = (
    '<?xml version="1.0"?><office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
    ' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
    ' office:mimetype="application/vnd.oasis.opendocument.text">'
    "<office:body><office:text><text:p>Tides</text:p></office:text></office:body></office:document>"
)


@pytest.mark.parametrize(
    ("name", "source", "text"),
    [
        ("a.doc", WORD_2003, "Tides"),
        ("a.xml", WORD_2003, "Tides"),
        ("a.xls", EXCEL_2003, "## S (A1:C1)\n\nTides\t\t4.5"),
        ("a.fodt", FLAT, "Tides"),
        ("a.xml", "<package><document>x</document></package>", "<package><document>x</document></package>"),
    ],
)
def test_documents_that_are_one_file_of_xml(name: str, source: str, text: str, tmp_path: Path) -> None:
    assert read_document(text_file(tmp_path / name, source)).text == text
