"""Lists of Word documents: their numbers, bullets and levels are in the text."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.documents.reading import document_text
from core.errors import RequestError
from tests.core.documents.made import paragraph, write_docx


def level(index: int, kind: str, pattern: str, more: str = "", start: int = 1) -> str:
    return (
        f'<w:lvl w:ilvl="{index}"><w:start w:val="{start}"/><w:numFmt w:val="{kind}"/>{more}'
        f'<w:lvlText w:val="{pattern}"/></w:lvl>'
    )


def definition(name: int, *levels: str) -> str:
    return f'<w:abstractNum w:abstractNumId="{name}">{"".join(levels)}</w:abstractNum>'


def use(name: int, of: int, more: str = "") -> str:
    return f'<w:num w:numId="{name}"><w:abstractNumId w:val="{of}"/>{more}</w:num>'


def item(text: str, name: int = 1, index: int = 0) -> str:
    return paragraph(text, f'<w:numPr><w:ilvl w:val="{index}"/><w:numId w:val="{name}"/></w:numPr>')


OUTLINE = definition(
    0, level(0, "decimal", "%1."), level(1, "lowerLetter", "%2)"), level(2, "upperRoman", "%1.%2.%3")
)


def test_numbers_letters_and_roman_ones_stand_at_their_level(tmp_path: Path) -> None:
    body = (
        item("Fog")
        + item("horn", index=1)
        + item("bell", index=1)
        + item("long", index=2)
        + item("short", index=2)
        + item("Ice")
        + item("boom", index=1)
        + paragraph("End")
    )
    assert document_text(write_docx(tmp_path / "o.docx", body, OUTLINE + use(1, 0))) == (
        "1. Fog\n    a) horn\n    b) bell\n        1.b.I long\n        1.b.II short\n"
        "2. Ice\n    a) boom\n\nEnd"
    )


def test_bullets_are_bullets_at_their_level_whatever_they_look_like(tmp_path: Path) -> None:
    lists = definition(0, level(0, "bullet", "\uf0b7"), level(1, "bullet", "o")) + use(1, 0)
    body = item("North") + item("quay", index=1) + item("South")
    assert document_text(write_docx(tmp_path / "b.docx", body, lists)) == "- North\n    - quay\n- South"


def test_a_list_begins_anew_where_it_says_so_and_else_counts_on(tmp_path: Path) -> None:
    anew = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride>'
    lists = OUTLINE + use(1, 0) + use(2, 0) + use(3, 0, anew)
    body = item("a") + item("b") + paragraph("Between") + item("c", 2) + item("d", 3) + item("e", 3)
    assert document_text(write_docx(tmp_path / "r.docx", body, lists)) == (
        "1. a\n2. b\n\nBetween\n\n3. c\n5. d\n6. e"
    )


def test_a_level_that_never_begins_anew_counts_on(tmp_path: Path) -> None:
    lists = definition(
        0, level(0, "decimal", "%1."), level(1, "decimal", "(%2)", '<w:lvlRestart w:val="0"/>')
    )
    body = item("a") + item("x", index=1) + item("b") + item("y", index=1)
    assert document_text(write_docx(tmp_path / "n.docx", body, lists + use(1, 0))) == (
        "1. a\n    (1) x\n2. b\n    (2) y"
    )


def test_the_list_of_a_style_holds_for_its_paragraphs_and_for_headings(tmp_path: Path) -> None:
    lists = definition(
        0,
        level(0, "upperRoman", "%1.", '<w:pStyle w:val="Heading1"/>'),
        level(1, "decimal", "%1.%2", '<w:isLgl/><w:pStyle w:val="Heading2"/>'),
    )
    lists += definition(1, level(0, "decimal", "Step %1:", start=3)) + use(1, 0) + use(2, 1)
    styles = (
        '<w:style w:styleId="Heading1"><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
        '<w:style w:styleId="Heading2"><w:basedOn w:val="Heading1"/><w:pPr><w:numPr>'
        '<w:ilvl w:val="1"/><w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
        '<w:style w:styleId="Steps"><w:pPr><w:numPr><w:numId w:val="2"/></w:numPr></w:pPr></w:style>'
        '<w:style w:styleId="Late"><w:basedOn w:val="Steps"/></w:style>'
    )
    body = "".join(
        paragraph(text, f'<w:pStyle w:val="{style}"/>{more}')
        for text, style, more in (
            ("Harbour", "Heading1", ""),
            ("Quays", "Heading2", ""),
            ("Pilots", "Heading1", ""),
            ("Calls", "Heading2", ""),
            ("look", "Steps", ""),
            ("wait", "Late", ""),
            ("not a step", "Steps", '<w:numPr><w:numId w:val="0"/></w:numPr>'),
        )
    )
    assert document_text(write_docx(tmp_path / "s.docx", body, lists, styles)) == (
        "# I. Harbour\n\n## 1.1 Quays\n\n# II. Pilots\n\n## 2.1 Calls\n\n"
        "Step 3: look\nStep 4: wait\n\nnot a step"
    )


def test_numbers_stand_in_cells_and_lines_of_an_item_stay_below_it(tmp_path: Path) -> None:
    row = f"<w:tbl><w:tr><w:tc>{item('bollard')}</w:tc><w:tc>{item('rope')}</w:tc></w:tr></w:tbl>"
    broken = item("@").replace("<w:t>@</w:t>", "<w:t>hook</w:t><w:br/><w:t>and eye</w:t>")
    assert document_text(write_docx(tmp_path / "c.docx", row + broken, OUTLINE + use(1, 0))) == (
        "1. bollard\t2. rope\n\n3. hook\n   and eye"
    )


def test_what_a_paragraph_was_before_a_change_does_not_count(tmp_path: Path) -> None:
    was = '<w:pPrChange><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:pPrChange>'
    body = paragraph("plain now", was) + item("one")
    assert document_text(write_docx(tmp_path / "t.docx", body, OUTLINE + use(1, 0))) == "plain now\n\n1. one"


def test_a_text_box_inside_an_item_takes_nothing_of_it(tmp_path: Path) -> None:
    box = f"<w:r><w:txbxContent>{paragraph('in the box')}</w:txbxContent></w:r></w:p>"
    body = item("one") + item("two").replace("</w:p>", box)
    assert document_text(write_docx(tmp_path / "x.docx", body, OUTLINE + use(1, 0))) == (
        "1. one\n\nin the box\n\n2. two"
    )


def test_numbers_beyond_all_measure_stay_short(tmp_path: Path) -> None:
    wild = definition(
        0,
        level(0, "lowerRoman", "%1.", start=999_999_999),
        level(1, "upperLetter", "%2" * 5_000, start=781),
        level(2, "lowerLetter", "%3.", start=28),
    )
    body = item("a") + item("b", index=1) + item("c", index=2) + item("d", index=7)
    text = document_text(write_docx(tmp_path / "w.docx", body, wild + use(1, 0)))
    first, second, third, fourth = text.split("\n")
    assert (first, third) == ("999999999. a", "        bb. c")
    assert second == "    " + "781" * 20 + " b"
    assert fourth.strip() == "d"


def test_lists_that_are_torn_are_refused_and_missing_ones_are_bullets(tmp_path: Path) -> None:
    assert document_text(write_docx(tmp_path / "m.docx", item("one", 9), OUTLINE)) == "- one"
    with pytest.raises(RequestError, match=r"“torn\.docx” is damaged"):
        document_text(write_docx(tmp_path / "torn.docx", item("one"), "<w:num>"))
