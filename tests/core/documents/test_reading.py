"""Encodings, limits and refusals of files. What documents say is in `cases` (test_cases)."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import pytest

from core.documents import limits, reading
from core.documents.reading import quick_document, read_document
from core.documents.types import DOCUMENT_TYPES, KINDS_BY_ENDING
from core.errors import RequestError
from tests.core.documents.made import W, paragraph, pdf_of, write_docx

WORDS = "Ærlig talt: Nebel über der Förde, 12 €\nzweite Zeile\n"


@pytest.mark.parametrize(
    "codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"]
)
def test_every_usual_encoding_is_read(tmp_path: Path, codec: str) -> None:
    file = tmp_path / "words.txt"
    file.write_bytes(WORDS.replace("\n", "\r\n").encode(codec))
    assert read_document(file).text == WORDS


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
        read_document(file)
    assert refused.value.message == message
    assert refused.value.hint


def test_folders_and_missing_files_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere.txt"):
        with pytest.raises(RequestError, match="is not a file"):
            read_document(path)
        with pytest.raises(RequestError, match="is not a file"):
            quick_document(path)


def test_a_file_that_may_not_be_read_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "secret.txt"
    file.write_text("x")

    def refuse(*args: object) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(reading.os, "open", refuse)
    with pytest.raises(RequestError, match=r"“secret.txt” cannot be read: Permission denied\."):
        read_document(file)


def test_huge_files_are_refused_before_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "log.txt"
    with file.open("wb") as stream:
        stream.write(b"line\n")
        stream.truncate(limits.MOST_TEXT_BYTES + 1)
    with pytest.raises(RequestError, match=r"“log\.txt” has 34 MB; the limit is 34"):
        read_document(file)
    with pytest.raises(RequestError, match="has 34 MB"):
        quick_document(file)
    short = tmp_path / "short.txt"
    short.write_text("four")
    with pytest.raises(RequestError, match=r"“short\.txt” holds more than 3 characters"):
        read_document(short, most_characters=3)


def test_only_short_plain_texts_are_quick(tmp_path: Path) -> None:
    for name, data in (
        *(("a.html", b"<p>words"), ("a.ipynb", b'{"cells": []}')),
        *(("a.pdf", pdf_of(["words"])), ("a.txt", b"x" * 2_000_000)),
    ):
        (tmp_path / name).write_bytes(data)
        assert quick_document(tmp_path / name) is None
    (tmp_path / "a.csv").write_bytes(b"a,b\n")
    assert quick_document(tmp_path / "a.csv") is None
    (tmp_path / "a.md").write_bytes(b"x" * 1_000_000)
    read = quick_document(tmp_path / "a.md")
    assert read
    assert read.text == "x" * 1_000_000


@pytest.mark.parametrize(
    "source",
    ["{", "[" * 100_000, "[1]", '{"cells": 1}', '{"worksheets": [{}]}', '{"cells": [1]}', "plain words"],
)
def test_what_is_no_notebook_stays_as_it_is(tmp_path: Path, source: str) -> None:
    path = tmp_path / "a.ipynb"
    path.write_text(source)
    assert read_document(path).text == source


@pytest.mark.timeout(20)
def test_pipes_and_devices_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    for path in (tmp_path / "pipe.txt", Path("/dev/zero"), Path("/dev/tty"), tmp_path / "zero\0.txt"):
        for read in (read_document, quick_document):
            with pytest.raises(RequestError, match="is not a file"):
                read(path)


def test_names_of_any_bytes_can_be_told(tmp_path: Path) -> None:
    file = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff\n.txt"))
    file.write_bytes(b"\0\1\2" * 100)
    with pytest.raises(RequestError, match=r"“a\ufffd\ufffd\.txt” is not a text"):
        read_document(file)


def test_a_pdf_gives_its_pages_and_says_how_far_it_is(tmp_path: Path) -> None:
    file = tmp_path / "handbook.pdf"
    file.write_bytes(pdf_of(["North quay", "South quay", "Lamps"]))
    said: list[tuple[int, int, str]] = []
    text = read_document(file, lambda *how_far: said.append(how_far)).text
    assert text == "North quay\n\nSouth quay\n\nLamps"
    assert said == [(0, 3, "pages"), (1, 3, "pages"), (2, 3, "pages")]


@pytest.mark.parametrize(
    ("case", "short", "long", "shown"),
    [
        ("comment", b"Which?", b"word," * 10_000, f"[comment: {'word,' * 10_000}]"),
        ("fields-at-the-end", b"V (first", b"V (" + b"word," * 10_000, "word," * 10_000),
        ("link", b"/form-12.pdf", b"/?" + b"q" * 9_000, "(https://files.example/?…)"),
    ],
)
def test_a_text_of_any_length_beside_a_page_is_read(
    tmp_path: Path, case: str, short: bytes, long: bytes, shown: str
) -> None:
    source = Path(__file__).parent / "cases" / "pdf" / f"{case}.pdf"
    (tmp_path / "a.pdf").write_bytes(source.read_bytes().replace(short, long))
    assert shown in read_document(tmp_path / "a.pdf").text


def test_a_word_file_that_unpacks_beyond_all_measure_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_docx(tmp_path / "bomb.docx", paragraph("x" * 5000))
    monkeypatch.setattr("core.documents.parts.MOST_XML_BYTES", 4000)
    with pytest.raises(RequestError, match=r"“bomb\.docx” unpacks to 0 MB; the limit is 0 MB"):
        read_document(file)


@pytest.mark.parametrize(
    "encoding", ["utf-7", "gb18030", "no-such-encoding", "idna", "undefined", "punycode"]
)
def test_a_word_file_in_an_encoding_that_word_does_not_use_is_refused(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "odd.docx"
    xml = f'<?xml version="1.0" encoding="{encoding}"?><w:document xmlns:w="{W}"><w:body/></w:document>'
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("word/document.xml", xml)
    with pytest.raises(RequestError) as refused:
        read_document(file)
    assert (
        refused.value.message
        == f"The text of “odd.docx” is in an encoding that Word does not use ({encoding})."
    )


def test_words_deep_inside_a_word_file_are_read(tmp_path: Path) -> None:
    nested = "<w:smartTag>" * 3_000 + "<w:r><w:t>deep</w:t></w:r>" + "</w:smartTag>" * 3_000
    assert read_document(write_docx(tmp_path / "deep.docx", f"<w:p>{nested}</w:p>")).text == "deep"


def test_a_word_file_of_one_endless_tag_is_refused_soon(tmp_path: Path) -> None:
    file = write_docx(tmp_path / "tag.docx", f'<w:p x="{"y" * 40_000_000}"/>')
    with pytest.raises(RequestError, match=r"“tag\.docx” is damaged"):
        read_document(file)


def test_a_word_file_with_more_text_than_wanted_is_refused_while_it_is_read(tmp_path: Path) -> None:
    file = write_docx(tmp_path / "long.docx", paragraph("x" * 999) * 5000)
    told: list[int] = []
    with pytest.raises(RequestError, match=r"“long\.docx” holds more than 1,000,000 characters"):
        read_document(file, lambda done, total, unit: told.append(done), most_characters=1_000_000)
    assert told[-1] < 3_000_000


def test_every_kind_that_is_read_is_declared_to_the_desktop() -> None:
    contents = {"pdf": b"%PDF-1.7", "word": b"PK\x03\x04", "html": b"<p>One", "text": b"One"}
    for kind, part in {
        "sheets": "xl/workbook.xml",
        "slides": "ppt/presentation.xml",
        "book": "META-INF/container.xml",
        "opendocument": "mimetype",
        "zipped rtf": "Letter.rtfd/TXT.rtf",
    }.items():
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr(part, "application/vnd.oasis.opendocument.text")
        contents[kind] = packed.getvalue()
    contents |= {"rtf": b"{\\rtf1 One}", **dict.fromkeys(KINDS_BY_ENDING.values(), b"One")}
    # A zip of a rich text folder is an archive to the desktop.
    assert {kind.kind for kind in DOCUMENT_TYPES} == set(contents) - {"zipped rtf"}
    endings = {kind: ending for ending, kind in KINDS_BY_ENDING.items()}
    for kind, content in contents.items():
        path = Path(f"file{endings.get(kind, '')}")
        assert reading._kind(io.BytesIO(content), len(content), path, path.name) == kind


def test_places_are_counted_where_they_are_until_there_are_many() -> None:
    gathered = limits.Gathered(0)
    for place in [*map(str, range(250)), "7", "240"]:
        gathered.leave_out("picture", place=place)
    assert gathered.left_out["picture", "7"] == 2
    assert gathered.left_out["picture", ""] == 51
    assert sum(gathered.left_out.values()) == 252


def test_each_page_of_a_pdf_begins_where_it_says(tmp_path: Path) -> None:
    lines = ["", "The first line", "", "The second line", "The third line", ""]
    path = tmp_path / "six.pdf"
    path.write_bytes(pdf_of(lines))
    document = read_document(path)
    assert len(document.pages) == len(lines)
    ends = (*document.pages[1:], len(document.text))
    found = [document.text[begin:end].strip() for begin, end in zip(document.pages, ends, strict=True)]
    assert found == lines
    assert document.attachment("six.pdf").pages == document.pages
