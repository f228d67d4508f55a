"""Raised and lowered numbers in words of any length and at any place."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.documents.reading import read_document
from tests.core.documents.made import pdf_drawn

_SMALL = {"super": dict(zip("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")), "sub": dict(zip("0123456789-", "₀₁₂₃₄₅₆₇₈₉₋"))}


def _read(folder: Path, *parts: tuple[str, float, float]) -> str:
    """The text of the end of a line whose parts have a size and a rise in points."""
    drawn = " ".join(f"/F1 {size} Tf {rise} Ts ({text}) Tj" for text, size, rise in parts)
    path = folder / "page.pdf"
    path.write_bytes(pdf_drawn(f"BT 50 700 Td /F1 12 Tf (A line of words with ) Tj {drawn} ET"))
    return read_document(path).text.removeprefix("A line of words with ")


@pytest.mark.parametrize("script", ["super", "sub"])
@pytest.mark.parametrize("before", ["m", "km", "word"])
@pytest.mark.parametrize("number", ["2", "10", "-1"])
@pytest.mark.parametrize("after", ["", "O", " more"])
def test_small_numbers_are_small_wherever_they_are(
    script: str, before: str, number: str, after: str, tmp_path: Path
) -> None:
    rise = 5 if script == "super" else -3
    small = "".join(_SMALL[script][letter] for letter in number)
    parts = [(before, 12, 0), (number, 8, rise), *([(after, 12, 0)] if after else [])]
    assert _read(tmp_path, *parts) == f"{before}{small}{after}"


@pytest.mark.parametrize(
    ("size", "rise", "read"),
    [(8, 0, "m2"), (8, 2.2, "m²"), (8, 1.0, "m2"), (9.8, 4, "m²"), (10.4, 4, "m2")],
)
def test_a_number_is_small_if_its_letters_and_its_place_are(
    size: float, rise: float, read: str, tmp_path: Path
) -> None:
    assert _read(tmp_path, ("m", 12, 0), ("2", size, rise)) == read
