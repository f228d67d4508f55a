"""Files of all kinds: what text they give, and how those that give none are refused."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import pypdf
import pytest
from pypdf.annotations import FreeText

from core.documents import limits, reading
from core.documents.reading import document_text, quick_document
from core.documents.types import DOCUMENT_TYPES, KINDS_BY_ENDING
from core.errors import RequestError
from tests.core.documents.made import W, paragraph, pdf_of, pdf_of_content, write_docx

WORDS = "Ærlig talt: Nebel über der Förde, 12 €\nzweite Zeile\n"


@pytest.mark.parametrize(
    "codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"]
)
def test_every_usual_encoding_is_read(tmp_path: Path, codec: str) -> None:
    file = tmp_path / "words.txt"
    file.write_bytes(WORDS.replace("\n", "\r\n").encode(codec))
    assert document_text(file) == WORDS


def test_a_byte_that_no_encoding_knows_costs_one_character(tmp_path: Path) -> None:
    file = tmp_path / "old.txt"
    file.write_bytes("Förde".encode("latin-1") + b"\x81" + b" quay" * 200)
    assert document_text(file).startswith("Förde\ufffd quay")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("photo.png", b"\x89PNG\r\n\x1a\n\0\0", "“photo.png” is a picture."),
        ("photo.jpg", b"\xff\xd8\xff\xe0" + b"\0" * 9, "“photo.jpg” is a picture."),
        ("pack.gz", b"\x1f\x8b\x08\0", "“pack.gz” is an archive."),
        ("old.doc", b"\xd0\xcf\x11\xe0\xa1\xb1" + b"\0" * 9, "“old.doc” is an old Word or PowerPoint file."),
        ("letter.rtf", rb"{\rtf1\ansi }", "“letter.rtf” holds no text."),
        ("noise.txt", bytes(range(256)) * 4, "“noise.txt” is not a text."),
        ("half.txt", b"text and\0 more \0" * 50 + b"\xc3", "“half.txt” is not a text."),
        ("nothing.txt", b"", "“nothing.txt” holds no text."),
        ("blank.md", b" \n\n", "“blank.md” holds no text."),
        ("torn.pdf", b"%PDF-1.4\n1 0 obj", "“torn.pdf” is damaged, or not a valid PDF file."),
        ("torn.docx", b"PK\x03\x04torn", "“torn.docx” is an archive."),
    ],
)
def test_other_files_are_refused_by_name(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    file = tmp_path / name
    file.write_bytes(data)
    with pytest.raises(RequestError) as refused:
        document_text(file)
    assert refused.value.message == message
    assert refused.value.hint


def test_a_text_may_begin_like_a_picture(tmp_path: Path) -> None:
    file = tmp_path / "cars.txt"
    file.write_text("BM stands for the harbour, MZ for the town")
    assert document_text(file).startswith("BM stands")


def test_folders_and_missing_files_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere.txt"):
        with pytest.raises(RequestError, match="is not a file"):
            document_text(path)
        with pytest.raises(RequestError, match="is not a file"):
            quick_document(path)


def test_a_file_that_may_not_be_read_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "secret.txt"
    file.write_text("x")

    def refuse(*args: object) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(reading.os, "open", refuse)
    with pytest.raises(RequestError, match=r"“secret.txt” cannot be read: Permission denied\."):
        document_text(file)


def test_huge_files_are_refused_before_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "log.txt"
    with file.open("wb") as stream:
        stream.write(b"line\n")
        stream.truncate(limits.MOST_TEXT_BYTES + 1)
    with pytest.raises(RequestError, match=r"“log\.txt” has 34 MB, the most is 34"):
        document_text(file)
    with pytest.raises(RequestError, match="has 34 MB"):
        quick_document(file)
    short = tmp_path / "short.txt"
    short.write_text("four")
    with pytest.raises(RequestError, match=r"“short\.txt” holds more than 3 characters"):
        document_text(short, most_characters=3)


def test_only_short_plain_texts_are_quick(tmp_path: Path) -> None:
    for name, data in (("a.html", b"<p>words"), ("a.pdf", pdf_of(["words"])), ("a.txt", b"x" * 2_000_000)):
        (tmp_path / name).write_bytes(data)
        assert quick_document(tmp_path / name) is None
    (tmp_path / "a.csv").write_bytes(b"a,b\n")
    assert quick_document(tmp_path / "a.csv") is None
    (tmp_path / "a.md").write_bytes(b"x" * 1_000_000)
    read = quick_document(tmp_path / "a.md")
    assert read
    assert read.text == "x" * 1_000_000


@pytest.mark.timeout(20)
def test_pipes_and_devices_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    for path in (tmp_path / "pipe.txt", Path("/dev/zero"), Path("/dev/tty"), tmp_path / "zero\0.txt"):
        for read in (document_text, quick_document):
            with pytest.raises(RequestError, match="is not a file"):
                read(path)


def test_names_of_any_bytes_can_be_told(tmp_path: Path) -> None:
    file = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff\n.txt"))
    file.write_bytes(b"\0\1\2" * 100)
    with pytest.raises(RequestError, match=r"“a\ufffd\ufffd\.txt” is not a text"):
        document_text(file)


# ---- HTML

PAGE = """<!doctype html><html><head><title>Fog rules</title><style>p { color: red }</style></head>
<body><script>alert("no")</script>
<h2>7.2 Departure</h2><p>A vessel   shall <b>not</b>
sail&nbsp;in fog &amp; snow.<br>Unless:</p>
<ul><li>it is <a href="#">clear</a></li><li>it is urgent</li></ul>
<table><tr><th>Berth</th><th>Depth</th></tr><tr><td>North</td><td>4 m</td></tr></table>
<pre>keep
   this</pre><img src="x.png" alt="The quay"><noscript>hidden</noscript></body></html>"""


def test_html_becomes_what_a_reader_sees(tmp_path: Path) -> None:
    file = tmp_path / "fog.html"
    file.write_text(PAGE)
    assert document_text(file) == (
        "# Fog rules\n\n## 7.2 Departure\n\nA vessel shall not sail in fog & snow.\nUnless:\n\n"
        "- it is clear\n- it is urgent\n\nBerth\tDepth\nNorth\t4 m\n\nkeep\n   this\n\nThe quay"
    )


def test_html_says_its_encoding(tmp_path: Path) -> None:
    file = tmp_path / "old.htm"
    file.write_bytes('<meta charset="windows-1251"><p>Туман</p>'.encode("cp1251"))
    assert document_text(file) == "Туман"


def test_html_that_is_torn_gives_what_is_there(tmp_path: Path) -> None:
    file = tmp_path / "torn.html"
    file.write_text("<head><title>A</title><style></style><body><p>One<p>Two <b>three</p></i><div>four")
    assert "Two three\n" in document_text(file)


# ---- PDF


def test_a_pdf_gives_its_pages_and_says_how_far_it_is(tmp_path: Path) -> None:
    file = tmp_path / "handbook.pdf"
    file.write_bytes(pdf_of(["North quay", "South quay", "Lamps"]))
    said: list[tuple[int, int, str]] = []
    text = document_text(file, lambda *how_far: said.append(how_far))
    assert text == "North quay\n\nSouth quay\n\nLamps"
    assert said == [(0, 3, "pages"), (1, 3, "pages"), (2, 3, "pages")]


def test_a_scanned_pdf_says_that_it_has_no_text(tmp_path: Path) -> None:
    file = tmp_path / "scan.pdf"
    file.write_bytes(pdf_of(["", ""]))
    with pytest.raises(
        RequestError, match=r"“scan\.pdf” holds no text: this PDF has no text layer, only pictures of pages"
    ):
        document_text(file)


@pytest.mark.parametrize(("password", "readable"), [("", True), ("secret", False)])
def test_an_encrypted_pdf_is_read_only_without_a_password(
    tmp_path: Path, password: str, readable: bool
) -> None:
    plain, locked = tmp_path / "plain.pdf", tmp_path / "locked.pdf"
    plain.write_bytes(pdf_of(["North quay"]))
    writer = pypdf.PdfWriter(clone_from=plain)
    writer.encrypt(user_password=password, owner_password="owner", algorithm="RC4-128")
    writer.write(locked)
    if readable:
        assert document_text(locked) == "North quay"
    else:
        with pytest.raises(RequestError, match=r"“locked\.pdf” is locked with a password"):
            document_text(locked)


# ---- Word


def test_a_word_document_keeps_its_structure(tmp_path: Path) -> None:
    def style(name: str) -> str:
        return f'<w:pStyle w:val="{name}"/>'

    cell = "<w:tc>{}</w:tc>".format
    table = "<w:tbl><w:tr>{}{}</w:tr><w:tr>{}{}</w:tr></w:tbl>".format(
        *(cell(paragraph(word)) for word in ("Berth", "Depth", "North", "4 m"))
    )
    body = (
        paragraph("Handbook", style("Title"))
        + paragraph("Fog & snow", style("Heading2"))
        + "<w:p><w:r><w:t>One</w:t><w:tab/><w:t>two</w:t><w:br/><w:t>three</w:t>"
        + "<w:delText>gone</w:delText></w:r></w:p>"
        + paragraph("first", '<w:numPr><w:numId w:val="1"/></w:numPr>')
        + paragraph("second", '<w:numPr><w:numId w:val="1"/></w:numPr>')
        + table
        + paragraph("End")
    )
    assert document_text(write_docx(tmp_path / "h.docx", body)) == (
        "# Handbook\n\n## Fog & snow\n\nOne\ttwo\nthree\n\n- first\n- second\n\n"
        "Berth\tDepth\nNorth\t4 m\n\nEnd"
    )


def test_other_zips_say_what_to_do(tmp_path: Path) -> None:
    for name, hint in (("letter.pages", "Save it as .docx"), ("all.zip", "Unpack it")):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("content.xml", "<x/>")
        with pytest.raises(RequestError) as refused:
            document_text(tmp_path / name)
        assert refused.value.hint.startswith(hint)


def test_a_word_file_with_broken_xml_is_refused(tmp_path: Path) -> None:
    file = write_docx(tmp_path / "broken.docx", "<w:p><w:r>")
    with pytest.raises(RequestError, match=r"“broken\.docx” is damaged"):
        document_text(file)


def test_a_word_file_that_unpacks_beyond_all_measure_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_docx(tmp_path / "bomb.docx", paragraph("x" * 5000))
    monkeypatch.setattr("core.documents.parts.MOST_XML_BYTES", 4000)
    with pytest.raises(RequestError, match=r"“bomb\.docx” unpacks to 0 MB, the most is 0 MB"):
        document_text(file)


@pytest.mark.parametrize(
    "encoding", ["utf-7", "gb18030", "no-such-encoding", "idna", "undefined", "punycode"]
)
def test_a_word_file_in_an_encoding_that_word_does_not_use_is_refused(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "odd.docx"
    xml = f'<?xml version="1.0" encoding="{encoding}"?><w:document xmlns:w="{W}"><w:body/></w:document>'
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("word/document.xml", xml)
    with pytest.raises(RequestError) as refused:
        document_text(file)
    assert (
        refused.value.message
        == f"The text of “odd.docx” is in an encoding that Word does not use ({encoding})."
    )


def test_a_word_file_with_entities_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "laughs.docx"
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10 if n else "ha"}">' for n in range(10))
    xml = f'<!DOCTYPE d [{entities}]><w:document xmlns:w="{W}">{paragraph("x")}</w:document>'
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("word/document.xml", xml)
    with pytest.raises(RequestError, match=r"“laughs\.docx” is damaged"):
        document_text(file)


def test_a_word_file_of_one_endless_tag_is_refused_soon(tmp_path: Path) -> None:
    file = write_docx(tmp_path / "tag.docx", f'<w:p x="{"y" * 40_000_000}"/>')
    with pytest.raises(RequestError, match=r"“tag\.docx” is damaged"):
        document_text(file)


def test_a_word_file_with_more_text_than_wanted_is_refused_while_it_is_read(tmp_path: Path) -> None:
    file = write_docx(tmp_path / "long.docx", paragraph("x" * 999) * 5000)
    told: list[int] = []
    with pytest.raises(RequestError, match=r"“long\.docx” holds more than 1,000,000 characters"):
        document_text(file, lambda done, total, unit: told.append(done), most_characters=1_000_000)
    assert told[-1] < 3_000_000


def test_every_kind_that_is_read_is_declared_to_the_desktop() -> None:
    contents = {"pdf": b"%PDF-1.7", "word": b"PK\x03\x04", "html": b"<p>One", "text": b"One"}
    for kind, part in {
        "sheets": "xl/workbook.xml",
        "slides": "ppt/presentation.xml",
        "book": "META-INF/container.xml",
        "opendocument": "mimetype",
    }.items():
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr(part, "application/vnd.oasis.opendocument.text")
        contents[kind] = packed.getvalue()
    contents |= {"rtf": b"{\\rtf1 One}", **dict.fromkeys(KINDS_BY_ENDING.values(), b"One")}
    assert {kind.kind for kind in DOCUMENT_TYPES} == set(contents)
    endings = {kind: ending for ending, kind in KINDS_BY_ENDING.items()}
    for kind, content in contents.items():
        path = Path(f"file{endings.get(kind, '')}")
        assert reading._kind(io.BytesIO(content), len(content), path, path.name) == kind


def test_a_form_field_over_a_word_stands_behind_it(tmp_path: Path) -> None:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf_of(["Gender of the person"])))
    note = FreeText(text="female", rect=(30, 198, 70, 212))  # begins over “Gender”
    writer.add_annotation(page_number=0, annotation=note)
    writer.write(tmp_path / "form.pdf")
    assert document_text(tmp_path / "form.pdf") == "Gender female of the person"


def test_fields_are_in_the_cells_that_they_are_over_or_at_the_end(tmp_path: Path) -> None:
    words = "".join(
        f"BT /F1 10 Tf {x} {y} Td ({word}) Tj ET "
        for x, y, word in ((205, 405, "Fee"), (105, 385, "Name"), (105, 365, "City"), (205, 365, "Oslo"))
    )
    lines = "".join(f"100 {y} m 300 {y} l S " for y in (420, 400, 380, 360))
    lines += "".join(f"{x} 360 m {x} 420 l S " for x in (100, 200, 300))
    field = "<< /Type /Annot /Subtype /Widget /FT /Tx /T (f{}) /V ({}) /Rect [{}] /P 4 0 R >>"
    fields = [
        field.format(*each)
        for each in (
            (1, "4,200", "205 383 290 397"),
            (2, "Form 7", "105 402 190 418"),
            (3, "end", "9 9 90 20"),
        )
    ]
    fields.append(
        "<< /Type /Annot /Subtype /Widget /FT /Ch /T (f4) /Opt [(red) (green 5)] /V (red) /I [0] /P 4 0 R"
        " /Rect [105 300 190 340] >>"
    )
    numbers = "6 0 R 7 0 R 8 0 R 9 0 R"
    file = tmp_path / "form.pdf"
    file.write_bytes(
        pdf_of_content(words + lines, f"/Annots [{numbers}]", f"/AcroForm << /Fields [{numbers}] >>", fields)
    )
    text = document_text(file)
    assert text.startswith("Form 7\tFee\nName\t4,200\nCity\tOslo\n\n")
    assert "[x] red [ ] green 5" in text
    assert text.count("end") == 1


@pytest.mark.parametrize("direction", ["L2R", "R2L"])
def test_pages_from_right_to_left_do_not_turn_lines_of_other_scripts(tmp_path: Path, direction: str) -> None:
    content = "BT /F1 10 Tf 14 TL 60 700 Td (First, second \\(third\\) 4.5.) Tj T* (Fifth: sixth!) Tj ET"
    file = tmp_path / "page.pdf"
    file.write_bytes(pdf_of_content(content, catalog=f"/ViewerPreferences << /Direction /{direction} >>"))
    assert document_text(file) == "First, second (third) 4.5.\nFifth: sixth!"


def test_fields_without_a_word_before_them_are_at_the_end_in_their_order(tmp_path: Path) -> None:
    field = "<< /Type /Annot /Subtype /Widget /FT /Tx /T ({0}) /V ({0}) /Rect [9 {1} 90 {2}] /P 4 0 R >>"
    fields = [field.format(*each) for each in (("first", 60, 70), ("second", 40, 50), ("third", 20, 30))]
    numbers = "6 0 R 7 0 R 8 0 R"
    file = tmp_path / "form.pdf"
    content = "BT /F1 10 Tf 500 700 Td (Words) Tj ET"
    file.write_bytes(
        pdf_of_content(content, f"/Annots [{numbers}]", f"/AcroForm << /Fields [{numbers}] >>", fields)
    )
    assert document_text(file) == "Words\nfirst\nsecond\nthird"


def test_a_row_that_begins_later_keeps_its_columns(tmp_path: Path) -> None:
    def cell(words: str) -> str:
        return f"<w:tc>{paragraph(words)}</w:tc>"

    later = f'<w:tr><w:trPr><w:gridBefore w:val="1"/></w:trPr>{cell("2023")}{cell("2024")}</w:tr>'
    row = f"<w:tr>{cell('Rent')}{cell('800')}{cell('900')}</w:tr>"
    file = write_docx(tmp_path / "table.docx", f"<w:tbl>{later}{row}</w:tbl>")
    assert document_text(file) == "\t2023\t2024\nRent\t800\t900"


@pytest.mark.parametrize("spacing_pt", [0.0, 1.0, 2.0, 3.0])
def test_a_word_that_is_drawn_in_parts_stays_one(tmp_path: Path, spacing_pt: float) -> None:
    parts = "(Singapor) Tj (e 1385) Tj (88) Tj"
    path = tmp_path / "spaced.pdf"
    path.write_bytes(pdf_of_content(f"BT /F1 12 Tf {spacing_pt} Tc 20 700 Td {parts} ET"))
    assert document_text(path) == "Singapore 138588"


def test_words_with_a_narrow_gap_stay_apart(tmp_path: Path) -> None:
    path = tmp_path / "narrow.pdf"
    # A gap of 3 points, as no other in these words.
    path.write_bytes(pdf_of_content("BT /F1 12 Tf 20 700 Td (Table) Tj 31.69 0 Td (in) Tj ET"))
    assert document_text(path) == "Table in"


@pytest.mark.parametrize(
    ("name", "source", "text"),
    [
        ("a.xls", "<html><table><tr><td>A</td><td>1</td></tr></table></html>", "A\t1"),
        ("a.XLS", "Name,Sum\nA,1\n", "Name\tSum\nA\t1"),
        ("a.doc", "\ufeff<?xml version='1.0'?>\n<!-- x --><!DOCTYPE html><p>Quay</p>", "Quay"),
        (
            "a.doc",
            "Date: Fri, 1 Mar 2024\nSubject: Quay\nContent-Type: text/html\n\n<p>Rope</p>",
            "# Quay\n\nDate: Fri, 1 Mar 2024\n\nRope",
        ),
        ("a.docx", "Plain, words\n", "Plain, words\n"),
        ("a.txt", "<html>as it is", "<html>as it is"),
    ],
)
def test_pages_mail_and_cells_under_the_endings_of_office_files(
    tmp_path: Path, name: str, source: str, text: str
) -> None:
    path = tmp_path / name
    path.write_text(source, encoding="utf-8")
    assert document_text(path) == text
