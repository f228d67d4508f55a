"""Packages that are damaged, and names of their parts in another case."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from core.documents.reading import read_document
from core.errors import RequestError
from tests.core.documents.made import paragraph, slide_shape, write_docx, write_pptx, write_xlsx, write_zip


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
        read_document(write_zip(tmp_path / "a", parts))


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
        expected = read_document(path).text
        with zipfile.ZipFile(path) as archive:
            parts = {renamed(name): archive.read(name).decode() for name in archive.namelist()}
        assert read_document(write_zip(path, parts)).text == expected
