"""Spreadsheets: each visible sheet as rows under its name and range."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.documents.number_formats import number_text, text_text
from core.documents.reading import document_text
from core.errors import RequestError
from tests.core.documents.made import write_odf, write_workbook, write_xlsx

ROWS = (
    ("B2", "Name"), ("C2", "Sum"), ("D2", "Due"), ("B3", "A,\tB\nC"), ("C3", 1234.5),
    ("B9", "Total"), ("C9", 20240117),
)  # fmt: skip


def test_a_sheet_keeps_its_name_range_and_columns(tmp_path: Path) -> None:
    path = write_xlsx(tmp_path / "a.xlsx", {"Budget": ROWS, "Empty": ()})
    assert document_text(path) == (
        "## Budget (B2:D9)\n\nName\tSum\tDue\nA, B C\t1234.5\n[rows 4 to 8 are empty]\n"
        "Total\t20240117\n\n## Empty"
    )


def test_no_cells_are_no_text(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="holds no text"):
        document_text(write_xlsx(tmp_path / "a.xlsx", {"Empty": ()}))


def test_what_a_part_claims_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_xlsx(tmp_path / "a.xlsx", {"Budget": ROWS})
    monkeypatch.setattr("core.documents.parts.MOST_XML_BYTES", 100)
    with pytest.raises(RequestError, match="unpacks to"):
        document_text(path)


@pytest.mark.parametrize("ending", [".xls", ".doc"])
def test_a_damaged_old_file_is_refused_by_its_ending(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a{ending}"
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2_000))
    with pytest.raises(
        RequestError, match="damaged" if ending == ".xls" else "an old Word or PowerPoint file"
    ):
        document_text(path)


@pytest.mark.parametrize(
    ("inside", "refused"),
    [
        ("EncryptedPackage".encode("utf-16-le"), "is locked with a password"),
        (b"\x09\x08\x10\0" + bytes(16) + b"\x2f\0\6\0", "is locked with a password"),
        ("__properties_version1.0".encode("utf-16-le"), "is an Outlook message"),
    ],
)
def test_a_compound_file_is_refused_with_its_reason(tmp_path: Path, inside: bytes, refused: str) -> None:
    path = tmp_path / "a.docx"
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2_000) + inside)
    with pytest.raises(RequestError, match=refused):
        document_text(path)


def test_a_cut_workbook_is_refused(tmp_path: Path) -> None:
    path = write_xlsx(tmp_path / "a.xlsx", {"Budget": ROWS})
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data[: len(data) // 2] if name.startswith("xl/worksheets") else data)
    with pytest.raises(RequestError, match="damaged"):
        document_text(path)


@pytest.mark.parametrize(
    ("value", "code", "shown"),
    [
        (2024.0, "General", "2024"),
        (0.1 + 0.2, "General", "0.3"),
        (1e20, "General", "1e+20"),
        (0.1234, "0.00%", "12.34%"),
        (1234.5, '#,##0.00\\ "€"', "1,234.50 €"),
        (1234.567, "[$€-407] #,##0.00", "€ 1,234.57"),
        (-1234.5, '_(* #,##0.00_);_(* (#,##0.00);_(* "-"??_);_(@_)', "(1,234.50)"),
        (0.0, '_-* #,##0.00\\ _€_-;-* #,##0.00\\ _€_-;_-* "-"??\\ _€_-', "-"),
        (1234.0, "00000", "01234"),
        (123456789.0, "000-00-0000", "123-45-6789"),
        (12_500_000.0, '0.0,,"M"', "12.5M"),
        (3.5, "# ?/?", "3 1/2"),
        (12.0, "0.0# €/k\\g", "12.0 €/kg"),
        (1.005, "0.00", "1.01"),
        (-0.001, "0.00", "0.00"),
        (-5.0, "[<10]0.0;0", "-5.0"),
        (-5.0, "[Red][<0]0;0.0", "5"),
        (12.5, ".0", "12.5"),
        (7.0, ";;;", ""),
        (1e300, "0.00", "1e+300"),
        (45292.0, "m/d/yyyy", "2024-01-01"),
        (45292.5, "dd.mm.yy hh:mm", "2024-01-01 12:00"),
        (45292.0, "mmm-yy", "2024-01"),
        (45292.0, "[$-F800]dddd, mmmm dd, yyyy", "2024-01-01"),
        (0.75, "h:mm AM/PM", "18:00"),
        (1.5, "[h]:mm:ss", "36:00:00"),
        (61.0, "yyyy-mm-dd", "1900-03-01"),
        (59.0, "yyyy-mm-dd", "1900-02-28"),
        (1e9, "yyyy-mm-dd", "1000000000"),
    ],
)
def test_a_number_is_shown_in_the_format_of_its_cell(value: float, code: str, shown: str) -> None:
    assert number_text(value, code) == shown


def test_dates_that_count_from_1904() -> None:
    assert number_text(43830.0, "d/m/yy", from_1904=True) == "2024-01-01"


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.text('0#?,.;"\\_*[]$<>=-%/Ee+ymdhsGg@ ak', max_size=20),
)
@example(5.0, "[>.]0")
@settings(max_examples=300)
def test_any_code_shows_any_number(value: float, code: str) -> None:
    """Codes come from files: none of them raises."""
    number_text(value, code)
    text_text("words", code)


def test_the_cells_of_a_workbook(tmp_path: Path) -> None:
    """Formats, formulas without a result, errors, dates, rich texts, and cells without an address."""
    cells = (
        '<row r="2"><c r="B2" t="s"><v>0</v></c><c t="e"><v>#DIV/0!</v></c><c t="b"><v>1</v></c></row>'
        '<row><c r="B3" s="1"><v>0.125</v></c><c s="2"><v>45292</v></c><c><f>SUM(B3:B9)</f></c>'
        '<c><f>1+1</f><v>2</v></c><c t="str"><f>A1</f><v>a_x000D_b</v></c><c t="s"><v>9</v></c></row>'
    )
    strings = "<si><r><t>Na</t></r><r><t>me</t></r><rPh><t>no</t></rPh></si>"
    styles = (
        '<numFmts><numFmt numFmtId="164" formatCode="0.0%"/></numFmts><cellStyleXfs><xf numFmtId="1"/>'
        '</cellStyleXfs><cellXfs><xf/><xf numFmtId="164"/><xf numFmtId="14"/></cellXfs>'
        '<dxfs><dxf><numFmt numFmtId="164" formatCode="0"/></dxf></dxfs>'
    )
    path = write_workbook(tmp_path / "a.xlsx", cells, strings=strings, styles=styles)
    assert document_text(path) == (
        "## S (B2:F3)\n\nName\t#DIV/0!\tTRUE\n12.5%\t2024-01-01\t=SUM(B3:B9)\t2\ta b"
    )


def test_hidden_rows_and_columns_are_left_out_and_named(tmp_path: Path) -> None:
    cells = "".join(
        f'<row r="{row}" hidden="{int(row in (3, 4))}">'
        + "".join(f'<c r="{column}{row}"><v>{row}</v></c>' for column in "ABC")
        + "</row>"
        for row in (1, 3, 4, 5)
    )
    columns = '<cols><col min="2" max="2" hidden="1"/></cols>'
    assert document_text(write_workbook(tmp_path / "a.xlsx", cells, columns=columns)) == (
        "## S (A1:C5)\n\n1\t\t1\n\n[left out: rows 3 to 4, which the file hides]\n5\t\t5\n"
        "[left out: column B, which the file hides]"
    )


def test_the_cells_of_an_opendocument_spreadsheet(tmp_path: Path) -> None:
    def row(*cells: str, attributes: str = "") -> str:
        return f"<table:table-row {attributes}>{''.join(cells)}</table:table-row>"

    def cell(text: str, attributes: str = "", name: str = "table-cell") -> str:
        return f"<table:{name} {attributes}><text:p>{text}</text:p></table:{name}>"

    inside = (
        '<table:table table:name="S"><table:table-column table:number-columns-repeated="3"/>'
        '<table:table-column table:visibility="collapse"/>'
        + row("<table:table-cell/>", attributes='table:number-rows-repeated="5"')
        + row(
            "<table:table-cell/>",
            cell("12.5%", 'office:value="0.125"'),
            '<table:table-cell office:value="3"><office:annotation><text:p>no</text:p></office:annotation>'
            "</table:table-cell>",
            cell("secret"),
        )
        + row(
            cell("", 'table:number-columns-repeated="90"'),
            cell("1/2/24", 'office:date-value="2024-02-01"'),
            cell("no", name="covered-table-cell"),
            attributes='table:number-rows-repeated="2"',
        )
        + row(cell("secret"), attributes='table:visibility="filter"')
        + "</table:table>"
    )
    tabs = "\t" * 89
    assert document_text(write_odf(tmp_path / "a.ods", "spreadsheet", inside)) == (
        f"## S (B6:CM9)\n\n12.5%\t3\n{tabs}2024-02-01\n{tabs}2024-02-01\n"
        "[left out: row 9, which the file hides]\n[left out: column D, which the file hides]\n[comment C6] no"
    )
