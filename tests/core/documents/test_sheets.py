"""Spreadsheets: each visible sheet as rows under its name and range."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from core.documents import sheets
from core.documents.limits import Gathered
from core.documents.reading import document_text
from core.errors import RequestError
from tests.core.documents.made import write_ods, write_xlsx

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


def test_a_hidden_sheet_is_left_out_and_named(tmp_path: Path) -> None:
    path = write_xlsx(
        tmp_path / "a.xlsx", {"Seen": (("A1", "x"),), "Prices": (("A1", "secret"),)}, hidden="Prices"
    )
    text = document_text(path)
    assert "secret" not in text
    assert text.endswith("[left out: the sheet “Prices”, which the file hides]")


def test_an_opendocument_spreadsheet(tmp_path: Path) -> None:
    path = write_ods(tmp_path / "any name", [["Name", "Sum"], ["Ada", "12"]])
    assert document_text(path) == "## Sheet1 (A1:B2)\n\nName\tSum\nAda\t12"


def test_no_cells_are_no_text(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="holds no text"):
        document_text(write_xlsx(tmp_path / "a.xlsx", {"Empty": ()}))


def test_what_a_part_claims_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_xlsx(tmp_path / "a.xlsx", {"Budget": ROWS})
    monkeypatch.setattr(sheets, "_MOST_PART_BYTES", 100)
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
    ("cell", "shown"), [(2024.0, "2024"), (0.1 + 0.2, "0.3"), (1e20, "1e+20"), (True, "TRUE"), (-0.5, "-0.5")]
)
def test_numbers_are_shown_as_stored(cell: sheets.Cell, shown: str) -> None:
    gathered = Gathered(1_000)
    sheets._sheet("S", (0, 0), (0, 0), [[cell]], lambda done, total, unit: None, gathered)
    assert gathered.text() == f"## S (A1:A1)\n\n{shown}\n\n"
