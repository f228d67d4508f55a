"""Formulas at other cells, addresses in them, and OpenDocument's form."""

from __future__ import annotations

import random

import pytest

from core.documents.formulas import column_letters, column_number, link_address, open_formula, shifted


@pytest.mark.parametrize(
    ("formula", "rows", "columns", "moved"),
    [
        ("A2*B2", 1, 0, "A3*B3"),
        ("A2*B2", 0, 1, "B2*C2"),
        ("$A2*B$2*$C$3", 2, 2, "$A4*D$2*$C$3"),
        ("SUM(Z9:AA10)", 1, 1, "SUM(AA10:AB11)"),
        ("LOG10(A1)+ATAN2(B1,C1)", 1, 0, "LOG10(A2)+ATAN2(B2,C2)"),
        ('"A1 is "&A1', 1, 0, '"A1 is "&A2'),
        ("'A1 it''s'!B2+Sheet1!B2", 1, 0, "'A1 it''s'!B3+Sheet1!B3"),
        ("SUM(A:B,$C:D)", 5, 1, "SUM(B:C,$C:E)"),
        ("SUM(1:2,$3:4)", 1, 5, "SUM(2:3,$3:5)"),
        ("Table1[A1]+total_A1+A1.x", 1, 0, "Table1[A1]+total_A1+A1.x"),
        ("A1", -1, 0, "#REF!"),
        ("A1", 0, -1, "#REF!"),
        ("XFD1", 0, 1, "XFE1"),
    ],
)
def test_a_formula_at_another_cell(formula: str, rows: int, columns: int, moved: str) -> None:
    assert shifted(formula, rows, columns) == moved


@pytest.mark.parametrize("seed", range(20))
def test_a_formula_that_is_moved_there_and_back_is_the_same(seed: int) -> None:
    dice = random.Random(seed)
    cells = [(column_letters(dice.randrange(5, 9_000)), dice.randrange(9, 999)) for _ in range(8)]
    signs = [dice.choice(("", "$")) for _ in range(16)]
    references = [
        f"{signs[2 * at]}{column}{signs[2 * at + 1]}{row}" for at, (column, row) in enumerate(cells)
    ]
    formula = dice.choice("+*&").join(references)
    rows, columns = dice.randrange(-5, 90), dice.randrange(-5, 90)
    assert shifted(formula, 0, 0) == formula
    assert shifted(shifted(formula, rows, columns), -rows, -columns) == formula


def test_columns_have_letters_and_numbers() -> None:
    assert [column_letters(number) for number in (0, 25, 26, 701, 702, 16_383)] == [
        "A", "Z", "AA", "ZZ", "AAA", "XFD",
    ]  # fmt: skip
    assert all(column_number(column_letters(number)) == number for number in range(20_000))


@pytest.mark.parametrize(
    ("formula", "address"),
    [
        ('HYPERLINK("https://files.example/a","Go")', "https://files.example/a"),
        ('IF(A1,hyperlink( "https://files.example/?q=""x""" ;"Go"),"")', 'https://files.example/?q="x"'),
        ('HYPERLINK("https://files.example/a")', "https://files.example/a"),
        ("HYPERLINK(A2,A3)", ""),
        ('HYPERLINK("https://files.example/"&A1,"Go")', ""),
        ('MYHYPERLINK("x","y")', ""),
    ],
)
def test_the_address_of_a_link_by_formula(formula: str, address: str) -> None:
    assert link_address(formula) == address


@pytest.mark.parametrize(
    ("formula", "shown"),
    [
        ("of:=[.A1]*2", "=A1*2"),
        ("of:=SUM([.A1:.B$2])+[$Prices.C3]", "=SUM(A1:B$2)+Prices.C3"),
        ('of:="[.A1]"&[.A1]', '="[.A1]"&A1'),
        ("=A1+1", "=A1+1"),
        ("", ""),
    ],
)
def test_formulas_of_opendocument(formula: str, shown: str) -> None:
    assert open_formula(formula) == shown
