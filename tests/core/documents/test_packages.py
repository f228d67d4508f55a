"""Presentations, OpenDocument files and e-books: all that is shown, in its order."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from core.documents import strings
from core.documents.reading import document_text
from core.errors import RequestError
from tests.core.documents.made import (
    paragraph,
    slide_shape,
    write_docx,
    write_epub,
    write_odf,
    write_pptx,
    write_xlsx,
    write_zip,
)

TABLE = (
    "<p:graphicFrame><a:tbl>"
    "<a:tr><a:tc><a:txBody><a:p><a:r><a:t>Name</a:t></a:r></a:p></a:txBody></a:tc>"
    "<a:tc><a:txBody><a:p><a:r><a:t>Sum</a:t></a:r></a:p></a:txBody></a:tc></a:tr>"
    "<a:tr><a:tc><a:txBody><a:p/></a:txBody></a:tc>"
    "<a:tc><a:txBody><a:p><a:r><a:t>1</a:t></a:r></a:p><a:p><a:r><a:t>2</a:t></a:r></a:p></a:txBody></a:tc></a:tr>"
    "</a:tbl></p:graphicFrame>"
)


def test_slides_come_in_the_order_of_the_presentation(tmp_path: Path) -> None:
    runs = "<a:r><a:t>ro</a:t></a:r><a:r><a:t>pe</a:t></a:r>"
    item = f'<p:sp><p:txBody><a:p><a:pPr lvl="1"/>{runs}</a:p></p:txBody></p:sp>'
    slides = [
        slide_shape("Harbour", placeholder="ctrTitle") + slide_shape("One", "Two") + item,
        slide_shape("12", placeholder="sldNum") + TABLE,
        slide_shape("secret"),
    ]
    notes = {0: slide_shape("Speak slowly") + slide_shape("Greet them", placeholder="body")}
    path = write_pptx(tmp_path / "a.pptx", slides, notes, hidden=2)
    assert document_text(path) == (
        "## Slide 1: Harbour\n\nOne\nTwo\n- rope\n\nNotes: Greet them\n\n"
        f"## Slide 2\n\nName\tSum\n\t1 2\n\n{strings.hidden_slide(3)}"
    )


def test_slides_without_words_are_no_text(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="holds no text"):
        document_text(write_pptx(tmp_path / "a.pptx", ["", slide_shape("3", placeholder="sldNum")]))


def test_an_opendocument_text(tmp_path: Path) -> None:
    inside = (
        '<text:h text:outline-level="2">The  quay</text:h>'
        '<text:p>One<text:s text:c="2"/>two<text:tab/>three <text:span>four</text:span>'
        "<text:note><text:note-citation>i</text:note-citation><text:note-body><text:p>Below.</text:p>"
        "</text:note-body></text:note>.<office:annotation><text:p>no</text:p></office:annotation></text:p>"
        "<text:list><text:list-item><text:p>rope</text:p><text:list><text:list-item><text:p>knot</text:p>"
        "</text:list-item></text:list></text:list-item></text:list>"
        "<table:table><table:table-row><table:table-cell><text:p>Name</text:p></table:table-cell>"
        '<table:table-cell table:number-columns-repeated="2"/><table:table-cell><text:p>Sum</text:p>'
        "</table:table-cell></table:table-row></table:table>"
        "<text:tracked-changes><text:p>gone</text:p></text:tracked-changes>"
        '<text:section text:display="none"><text:p>very secret</text:p></text:section>'
    )
    assert document_text(write_odf(tmp_path / "a", "text", inside)) == (
        "## The quay\n\nOne  two\tthree four[1].[comment 1]\n\n- rope\n    - knot\n\nName\t\t\tSum\n\n"
        f"[1] Below.\n[comment 1] no\n\n{strings.hidden_text(2)}"
    )


def test_headings_and_items_keep_their_numbers(tmp_path: Path) -> None:
    level = '<text:outline-level-style text:level="{0}" style:num-format="1" text:display-levels="{0}"/>'
    styles = (
        '<office:styles xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
        ' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
        ' xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0">'
        f"<text:outline-style>{level.format(1)}{level.format(2)}</text:outline-style>"
        '<text:list-style style:name="L"><text:list-level-style-number text:level="1" style:num-format="a"'
        ' style:num-suffix=")" text:start-value="3"/></text:list-style></office:styles>'
    )
    inside = (
        '<text:h text:outline-level="1">A</text:h><text:h text:outline-level="2">B</text:h>'
        '<text:h text:outline-level="2">C</text:h><text:h text:outline-level="1">D</text:h>'
        '<text:list text:style-name="L"><text:list-item><text:p>E</text:p></text:list-item>'
        "<text:list-item><text:p>F</text:p></text:list-item></text:list>"
        '<text:list text:style-name="L" text:continue-numbering="true"><text:list-item><text:p>G</text:p>'
        "</text:list-item></text:list>"
    )
    path = write_odf(tmp_path / "a.odt", "text", inside)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("styles.xml", styles)
    assert document_text(path).split("\n") == [
        *("# 1 A", "", "## 1.1 B", "", "## 1.2 C", "", "# 2 D", "", "c) E", "d) F", "", "e) G"),
    ]


def test_an_opendocument_presentation(tmp_path: Path) -> None:
    page = (
        "<draw:page><draw:frame><draw:text-box><text:p>{0}</text:p></draw:text-box></draw:frame>"
        "<presentation:notes><draw:frame><draw:text-box><text:p>About {0}</text:p></draw:text-box>"
        "</draw:frame></presentation:notes></draw:page>"
    )
    path = write_odf(tmp_path / "a.odp", "presentation", page.format("one") + page.format("two"))
    assert document_text(path).split("\n\n") == [
        *("## Slide 1", "one", "Notes: About one"),
        *("## Slide 2", "two", "Notes: About two"),
    ]


def test_a_book_has_its_chapters_in_the_order_of_the_spine(tmp_path: Path) -> None:
    chapters = [
        f"<html><head><title>Book</title></head><body><h1>{n}</h1><p>Words {n}</p></body></html>"
        for n in "AB"
    ]
    path = write_epub(tmp_path / "a.epub", chapters, "The Harbour")
    assert document_text(path) == "# The Harbour\n\n# A\n\nWords A\n\n# B\n\nWords B"


def test_a_protected_book_is_refused(tmp_path: Path) -> None:
    path = write_epub(tmp_path / "a.epub", ["<p>x"], encrypted="OEBPS/text/chapter%200.xhtml")
    with pytest.raises(RequestError, match="locked with a password"):
        document_text(path)
    assert document_text(write_epub(tmp_path / "b.epub", ["<p>x"], encrypted="OEBPS/font.otf")) == "x"


@pytest.mark.parametrize(
    "parts",
    [
        {"ppt/presentation.xml": "<p"},
        {"ppt/presentation.xml": '<!DOCTYPE x [<!ENTITY e "e">]><x>&e;</x>'},
        {"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": "<a><b></a>"},
        {"mimetype": "application/vnd.oasis.opendocument.text"},
        {"mimetype": "application/epub+zip", "META-INF/container.xml": "<container/>"},
        {"xl/workbook.xml": "<workbook/>"},
    ],
)
def test_a_damaged_package_is_refused(tmp_path: Path, parts: dict[str, str]) -> None:
    with pytest.raises(RequestError, match=r"is damaged, or not a valid \w+ file"):
        document_text(write_zip(tmp_path / "a", parts))


@pytest.mark.parametrize("renamed", [str.upper, str.title, lambda name: name.replace("/", "\\")])
def test_parts_are_found_in_any_case_and_with_backslashes(
    renamed: Callable[[str], str], tmp_path: Path
) -> None:
    """1C writes SharedStrings.xml where its relations say sharedStrings.xml; Open Packaging ignores case."""
    slides = [slide_shape("Fog"), slide_shape("Wind")]
    for path in (
        write_docx(tmp_path / "a.docx", paragraph("Tide table")),
        write_xlsx(tmp_path / "a.xlsx", {"Tides": (("A1", "High"), ("B1", 4.5))}),
        write_pptx(tmp_path / "a.pptx", slides, {1: slide_shape("Calm")}),
    ):
        expected = document_text(path)
        with zipfile.ZipFile(path) as archive:
            parts = {renamed(name): archive.read(name).decode() for name in archive.namelist()}
        assert document_text(write_zip(path, parts)) == expected
