"""Word documents: nothing of the final version is lost, doubled or changed on the way into the text."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from core.documents import strings
from core.documents.docx_symbols import symbol
from core.documents.equations import equation_line
from core.documents.parts import Builder, Element
from core.documents.reading import document_text
from tests.core.documents.made import W, write_docx

M = "http://schemas.openxmlformats.org/officeDocument/2006/math"


def run(inside: str) -> str:
    return f"<w:r>{inside}</w:r>"


def text_of(tmp_path: Path, *runs: str, styles: str = "", properties: str = "") -> str:
    body = f'<w:p xmlns:m="{M}"><w:pPr>{properties}</w:pPr>{"".join(runs)}</w:p>'
    return document_text(write_docx(tmp_path / "a.docx", body, styles=styles))


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("<w:t>2024</w:t><w:noBreakHyphen/><w:t>117</w:t>", "2024-117"),
        ("<w:t>e</w:t><w:softHyphen/><w:t>mail</w:t>", "email"),
        ('<w:t>20 </w:t><w:sym w:font="Symbol" w:char="F0B0"/><w:t>C</w:t>', "20 °C"),
        ('<w:sym w:font="Wingdings" w:char="F0FE"/><w:t> paid</w:t>', "☑ paid"),
        ('<w:t>Total</w:t><w:ptab w:alignment="right"/><w:t>12</w:t>', "Total\t12"),
        ("<w:t>one</w:t><w:tab/><w:t>two</w:t>", "one\ttwo"),
        (
            "<w:ruby><w:rt><w:r><w:t>かん</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>漢</w:t></w:r></w:rubyBase></w:ruby>",
            "漢(かん)",
        ),
        ("<w:instrText>PAGE</w:instrText><w:t>7</w:t>", "7"),
        ("<w:smartTag>" * 3_000 + "<w:t>deep</w:t>" + "</w:smartTag>" * 3_000, "deep"),
    ],
)
def test_characters_that_are_elements(tmp_path: Path, inside: str, expected: str) -> None:
    assert text_of(tmp_path, run(inside)) == expected


def test_the_final_version_is_read(tmp_path: Path) -> None:
    found = text_of(
        tmp_path,
        '<w:moveFrom w:id="1"><w:r><w:t>moved </w:t></w:r></w:moveFrom>',
        '<w:del w:id="2"><w:r><w:delText>gone </w:delText><w:tab/></w:r></w:del>',
        '<w:ins w:id="3"><w:r><w:t>new </w:t></w:r></w:ins>',
        '<w:moveTo w:id="4"><w:r><w:t>moved</w:t></w:r></w:moveTo>',
    )
    assert found == "new moved"


@pytest.mark.parametrize(
    ("style", "level"),
    [
        ('<w:name w:val="heading 2"/>', "## "),
        ('<w:name w:val="Title"/>', "# "),
        ('<w:name w:val="Clause"/><w:pPr><w:outlineLvl w:val="2"/></w:pPr>', "### "),
        ('<w:name w:val="Clause"/><w:basedOn w:val="berschrift1"/>', "# "),
        ('<w:name w:val="Clause"/><w:pPr><w:outlineLvl w:val="9"/></w:pPr>', ""),
        ('<w:name w:val="Clause"/><w:basedOn w:val="X"/>', ""),
    ],
)
def test_headings_in_any_language(tmp_path: Path, style: str, level: str) -> None:
    base = '<w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>'
    styles = f'{base}<w:style w:styleId="X">{style}</w:style>'
    found = text_of(tmp_path, run("<w:t>Words</w:t>"), styles=styles, properties='<w:pStyle w:val="X"/>')
    assert found == f"{level}Words"


def test_notes_follow_the_text(tmp_path: Path) -> None:
    body = (
        "<w:p><w:r><w:t>Rent is due</w:t></w:r><w:r><w:footnoteReference w:id='7'/></w:r>"
        "<w:r><w:t> monthly.</w:t></w:r><w:r><w:endnoteReference w:id='2'/></w:r></w:p>"
    )
    file = write_docx(tmp_path / "a.docx", body)
    notes = (
        "<w:footnote w:id='-1'><w:p><w:r><w:t>separator</w:t></w:r></w:p></w:footnote>"
        "<w:footnote w:id='7'><w:p><w:r><w:footnoteRef/></w:r>"
        "<w:r><w:t>Unless waived.</w:t></w:r></w:p></w:footnote>"
        "<w:footnote w:id='8'><w:p><w:r><w:t>not referred to</w:t></w:r></w:p></w:footnote>"
    )
    ends = "<w:endnote w:id='2'><w:p><w:r><w:t>See 4.</w:t></w:r></w:p></w:endnote>"
    with zipfile.ZipFile(file, "a") as archive:
        for name, inside in (("footnotes", notes), ("endnotes", ends)):
            archive.writestr(f"word/{name}.xml", f'<w:{name} xmlns:w="{W}">{inside}</w:{name}>')
    assert document_text(file) == "Rent is due[1] monthly.[2]\n\n[1] Unless waived.\n[2] See 4."


@pytest.mark.parametrize("strict", [False, True])
def test_strict_files_and_other_part_names(tmp_path: Path, strict: bool) -> None:
    space = "http://purl.oclc.org/ooxml/wordprocessingml/main" if strict else W
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    with zipfile.ZipFile(tmp_path / "a.docx", "w") as archive:
        archive.writestr(
            "_rels/.rels",
            '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
            f'<Relationship Id="r1" Type="{kind}" Target="/word/document2.xml"/></Relationships>',
        )
        archive.writestr(
            "word/document2.xml",
            f'<w:document xmlns:w="{space}"><w:body><w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr>'
            "<w:r><w:t>Words</w:t></w:r></w:p></w:body></w:document>",
        )
    assert document_text(tmp_path / "a.docx") == "# Words"


def test_merged_cells_keep_their_columns(tmp_path: Path) -> None:
    def cell(text: str, span: int = 1) -> str:
        properties = f'<w:tcPr><w:gridSpan w:val="{span}"/></w:tcPr>' if span > 1 else ""
        return f"<w:tc>{properties}<w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:tc>"

    rows = (cell("a") + cell("b") + cell("c"), cell("sum", 2) + cell("9"), cell("") + cell("x") + cell("y"))
    body = f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"
    assert document_text(write_docx(tmp_path / "a.docx", body)) == "a\tb\tc\nsum\t\t9\n\tx\ty"


def equation(markup: str) -> str:
    """A short notation for tests: `tag(...)` elements, `tag=value` properties, the rest text."""
    reader = Builder(Element("oMath"))
    at = 0
    word = ""
    while at < len(markup):
        letter = markup[at]
        if letter == "{":
            tag, _, value = word.partition("=")
            reader.start(tag, {f"{M} val": value} if value else None)
            word = ""
        elif letter == "}":
            if word:
                reader.start("t")
                reader.characters(word)
                reader.end()
                word = ""
            reader.end()
        else:
            word += letter
        at += 1
    return equation_line(reader.root)


@pytest.mark.parametrize(
    ("markup", "line"),
    [
        ("f{num{1}den{2}}", "1/2"),
        ("f{num{a+b}den{2c}}", "(a+b)/(2c)"),
        ("sSup{e{x}sup{2}}", "x^2"),
        ("sSup{e{x+1}sup{n-1}}", "(x+1)^(n-1)"),
        ("sSub{e{x}sub{i}}", "x_i"),
        ("rad{deg{}e{b-4ac}}", "√(b-4ac)"),
        ("rad{deg{3}e{x}}", "∛x"),
        ("nary{naryPr{chr=∑{}}sub{i=1}sup{n}e{x}}", "∑_(i=1)^n x"),
        ("d{dPr{begChr=[{}endChr=]{}}e{a}}", "[a]"),
        ("m{mr{e{1}e{0}}mr{e{0}e{1}}}", "[1, 0; 0, 1]"),
        ("func{fName{sin}e{x}}", "sin x"),
    ],
)
def test_equations_as_lines(markup: str, line: str) -> None:
    # `=` inside a text is not a property: only what stands before `{` is split.
    assert equation(markup) == line


def test_unknown_symbols_are_marked() -> None:
    assert symbol("Symbol", "F061") == "α"
    assert symbol("Webdings", "F061") == "\ufffd"
    assert symbol("Arial", "20AC") == "€"
    assert symbol("Symbol", "no") == "\ufffd"


def test_hidden_text_is_left_out_and_counted(tmp_path: Path) -> None:
    styles = (
        '<w:style w:type="character" w:styleId="Secret"><w:rPr><w:vanish/></w:rPr></w:style>'
        '<w:style w:type="character" w:styleId="Deeper"><w:basedOn w:val="Secret"/></w:style>'
    )
    found = text_of(
        tmp_path,
        run("<w:t>Seen </w:t>"),
        run("<w:rPr><w:vanish/></w:rPr><w:t>one two</w:t><w:tab/><w:noBreakHyphen/>"),
        run('<w:rPr><w:rStyle w:val="Deeper"/></w:rPr><w:t>three</w:t>'),
        run('<w:rPr><w:rStyle w:val="Deeper"/><w:vanish w:val="0"/></w:rPr><w:t>and </w:t>'),
        run("<w:rPr><w:webHidden/></w:rPr><w:t>printed</w:t>"),
        styles=styles,
        # The paragraph's mark is hidden, its text is not.
        properties="<w:rPr><w:vanish/></w:rPr>",
    )
    assert found == f"Seen and printed\n\n{strings.hidden_text(4)}"
