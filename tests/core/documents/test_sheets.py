"""Spreadsheets: each visible sheet as rows under its name and range."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.documents.number_formats import number_text, text_text
from core.documents.reading import read_document
from core.errors import RequestError
from tests.core.documents.made import write_xlsx

ROWS = (
    ("B2", "Name"), ("C2", "Sum"), ("D2", "Due"), ("B3", "A,\tB\nC"), ("C3", 1234.5),
    ("B9", "Total"), ("C9", 20240117),
)  # fmt: skip


def test_what_a_part_claims_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_xlsx(tmp_path / "a.xlsx", {"Budget": ROWS})
    monkeypatch.setattr("core.documents.parts.MOST_XML_BYTES", 100)
    with pytest.raises(RequestError, match="unpacks to"):
        read_document(path)


@pytest.mark.parametrize("ending", [".xls", ".doc"])
def test_a_damaged_old_file_is_refused_by_its_ending(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a{ending}"
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2_000))
    with pytest.raises(
        RequestError, match="damaged" if ending == ".xls" else "an old Word or PowerPoint file"
    ):
        read_document(path)


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
