"""Files of all kinds: what text they give, and how those that give none are refused."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pypdf
import pytest

from app.chat import attach_file
from app.chat.attach_file import GivenUpError, is_quick, read_attachment
from core.errors import RequestError
from tests.app.chat.documents import paragraph, pdf_of, write_docx

WORDS = "Ærlig talt: Nebel über der Förde, 12 €\nzweite Zeile\n"


@pytest.mark.parametrize(
    "codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"]
)
def test_every_usual_encoding_is_read(tmp_path: Path, codec: str) -> None:
    file = tmp_path / "words.txt"
    file.write_bytes(WORDS.replace("\n", "\r\n").encode(codec))
    assert read_attachment(file).text == WORDS


def test_bytes_that_windows_does_not_know_are_latin(tmp_path: Path) -> None:
    file = tmp_path / "old.txt"
    file.write_bytes("Förde".encode("latin-1") + b"\x81" + b" quay" * 200)
    assert read_attachment(file).text.startswith("Förde\x81 quay")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("photo.png", b"\x89PNG\r\n\x1a\n\0\0", "“photo.png” is a picture."),
        ("photo.jpg", b"\xff\xd8\xff\xe0" + b"\0" * 9, "“photo.jpg” is a picture."),
        ("pack.gz", b"\x1f\x8b\x08\0", "“pack.gz” is an archive."),
        ("old.doc", b"\xd0\xcf\x11\xe0\xa1\xb1" + b"\0" * 9, "“old.doc” is an old Office file."),
        ("letter.rtf", rb"{\rtf1\ansi hello}", "“letter.rtf” is a rich text file."),
        ("noise.txt", bytes(range(256)) * 4, "“noise.txt” is not a text."),
        ("half.txt", b"text and\0 more \0" * 50 + b"\xc3", "“half.txt” is not a text."),
        ("nothing.txt", b"", "“nothing.txt” holds no text."),
        ("blank.md", b" \n\n", "“blank.md” holds no text."),
        ("torn.pdf", b"%PDF-1.4\n1 0 obj", "“torn.pdf” is damaged, or not a PDF file after all."),
        ("torn.docx", b"PK\x03\x04torn", "“torn.docx” is an archive."),
    ],
)
def test_other_files_are_refused_by_name(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    file = tmp_path / name
    file.write_bytes(data)
    with pytest.raises(RequestError) as refused:
        read_attachment(file)
    assert refused.value.message == message
    assert refused.value.hint


def test_a_text_may_begin_like_a_picture(tmp_path: Path) -> None:
    file = tmp_path / "cars.txt"
    file.write_text("BM stands for the harbour, MZ for the town")
    assert read_attachment(file).text.startswith("BM stands")


def test_folders_and_missing_files_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere.txt"):
        with pytest.raises(RequestError, match="is not a file"):
            read_attachment(path)
        assert is_quick(path)


def test_a_file_that_may_not_be_read_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "secret.txt"
    file.write_text("x")

    def refuse(*args: object) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(RequestError, match=r"“secret.txt” cannot be read: Permission denied\."):
        read_attachment(file)
    assert is_quick(file)


def test_huge_files_are_refused_before_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "log.txt"
    with file.open("wb") as stream:
        stream.write(b"line\n")
        stream.truncate(attach_file.MAX_TEXT_BYTES + 1)
    with pytest.raises(RequestError, match=r"“log\.txt” has 34 MB, the most is 34"):
        read_attachment(file)
    assert not is_quick(file)
    monkeypatch.setattr(attach_file, "MAX_TEXT_CHARACTERS", 3)
    short = tmp_path / "short.txt"
    short.write_text("four")
    with pytest.raises(RequestError, match=r"“short\.txt” has 4 characters, the most is 3"):
        read_attachment(short)


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
    assert read_attachment(file).text == (
        "# Fog rules\n\n## 7.2 Departure\n\nA vessel shall not sail in fog & snow.\nUnless:\n\n"
        "- it is clear\n- it is urgent\n\nBerth\tDepth\nNorth\t4 m\n\nkeep\n   this\n\nThe quay"
    )


def test_html_says_its_encoding(tmp_path: Path) -> None:
    file = tmp_path / "old.htm"
    file.write_bytes('<meta charset="windows-1251"><p>Туман</p>'.encode("cp1251"))
    assert read_attachment(file).text == "Туман"


def test_html_that_is_torn_gives_what_is_there(tmp_path: Path) -> None:
    file = tmp_path / "torn.html"
    file.write_text("<head><title>A</title><style></style><body><p>One<p>Two <b>three</p></i><div>four")
    assert "Two three\n" in read_attachment(file).text


# ---- PDF


def test_a_pdf_gives_its_pages_and_says_how_far_it_is(tmp_path: Path) -> None:
    file = tmp_path / "handbook.pdf"
    file.write_bytes(pdf_of(["North quay", "South quay", "Lamps"]))
    said: list[tuple[float, str]] = []
    text = read_attachment(file, lambda fraction, words: said.append((round(fraction, 2), words))).text
    assert text == "North quay\n\nSouth quay\n\nLamps"
    assert said == [(0.0, "Page 1 of 3"), (0.33, "Page 2 of 3"), (0.67, "Page 3 of 3")]
    assert not is_quick(file)


def test_a_scanned_pdf_says_that_it_has_no_text(tmp_path: Path) -> None:
    file = tmp_path / "scan.pdf"
    file.write_bytes(pdf_of(["", ""]))
    with pytest.raises(RequestError, match=r"“scan\.pdf” holds no text, only pictures of pages"):
        read_attachment(file)


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
        assert read_attachment(locked).text == "North quay"
    else:
        with pytest.raises(RequestError, match=r"“locked\.pdf” is locked with a password"):
            read_attachment(locked)


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
        + paragraph("first", "<w:numPr/>")
        + paragraph("second", "<w:numPr/>")
        + table
        + paragraph("End")
    )
    assert read_attachment(write_docx(tmp_path / "h.docx", body)).text == (
        "# Handbook\n\n## Fog & snow\n\nOne\ttwo\nthree\n\n- first\n- second\nBerth\tDepth\nNorth\t4 m\n\nEnd"
    )


def test_other_zips_say_what_to_do(tmp_path: Path) -> None:
    for name, hint in (("sums.xlsx", "Save it as CSV."), ("all.zip", "Unpack it")):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("content.xml", "<x/>")
        with pytest.raises(RequestError) as refused:
            read_attachment(tmp_path / name)
        assert refused.value.hint.startswith(hint)


def test_a_word_file_with_broken_xml_is_refused(tmp_path: Path) -> None:
    file = write_docx(tmp_path / "broken.docx", "<w:p><w:r>")
    with pytest.raises(RequestError, match=r"“broken\.docx” is damaged"):
        read_attachment(file)


def test_a_word_file_that_unpacks_beyond_all_measure_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_docx(tmp_path / "bomb.docx", paragraph("x" * 5000))
    monkeypatch.setattr("app.chat.attach_docx.MAX_XML_BYTES", 4000)
    with pytest.raises(RequestError, match=r"“bomb\.docx”"):
        read_attachment(file)


@pytest.mark.parametrize("kind", ["pdf", "docx"])
def test_long_readings_can_be_given_up(tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"long.{kind}"
    if kind == "pdf":
        file.write_bytes(pdf_of(["a", "b"]))
    else:
        write_docx(file, paragraph("a") * 2)
    calls = []

    def stop(fraction: float, words: str) -> None:
        calls.append(words)
        raise GivenUpError

    stopping: Callable[[float, str], None] = stop
    with pytest.raises(GivenUpError):
        read_attachment(file, stopping)
    assert len(calls) == 1
