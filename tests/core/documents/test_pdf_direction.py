"""Lines from right to left: what is drawn, from left to right, and what is read."""

from __future__ import annotations

import pytest

from core.documents.pdf import is_from_right, reading_order


def _read(drawn: str, letters: str = "", spans: list[tuple[float, float]] | None = None) -> str:
    spans = spans or [(at, at + 1) for at in range(len(drawn))]
    order, read = reading_order(letters or drawn, spans)
    assert sorted(order) == list(range(len(letters or drawn)))
    return "".join(read)


@pytest.mark.parametrize(
    ("read", "drawn"),
    [
        ("שעה 10:30.", ".10:30 העש"),
        ("(כולל מע) הוא", "אוה (עמ ללוכ)"),
        ("(כולל מע) הוא", "אוה )עמ ללוכ("),
        ("ב-5/3/2024; הבאה", "האבה ;5/3/2024-ב"),
        ("של iPhone 15 חדש 12%.", ".12% שדח iPhone 15 לש"),
        ("טלפון 03-555-1234.", ".03-555-1234 ןופלט"),
        ("המחיר, 250 שקל, ועל", "לעו ,לקש 250 ,ריחמה"),
        ("עמוד [7]!", "![7] דומע"),
        ("10 20 אב", "בא 20 10"),
        ("رقم 2024-117", "117-2024 مقر"),
        ("في 1,250.50 درهم", "مهرد 1,250.50 يف"),
        ("(نسخة iPhone) بقيمة", "ةميقب )iPhone ةخسن("),
    ],
)
def test_a_line_is_read_as_it_was_written(read: str, drawn: str) -> None:
    assert _read(drawn) == read


def test_spaces_are_between_words_wherever_the_file_has_them() -> None:
    letters = "אב גד."
    spans = [(40.0, 45.0), (34.0, 40.0), (90.0, 90.0), (24.0, 29.0), (18.0, 24.0), (15.0, 18.0)]
    assert _read("", letters, spans) == "אב גד."


def test_marks_and_ligatures_stay_with_their_letters() -> None:
    # Shin with two points, then lam and alef in one glyph, which PDFium has as they are drawn.
    shin = [(20.0, 30.0), (24.0, 25.0), (22.0, 23.0)]
    assert _read("", "ש\u05c1\u05b8ב", [*shin, (10.0, 20.0)]) == "ש\u05c1\u05b8ב"
    assert _read("", "ال", [(10.0, 20.0), (10.0, 20.0)]) == "لا"


def test_the_direction_of_a_line_is_that_of_most_letters() -> None:
    assert is_from_right("המחיר של iPhone")
    assert not is_from_right("The word שלום means peace.")
    assert not is_from_right("12:30")


@pytest.mark.parametrize(
    ("letters", "read"),
    [
        ("لخ", "لخ"),  # a ligature of Unicode's, in its order
        ("خل", "لخ"),  # and as it is drawn
        ("لا", "لا"),
        ("ال", "لا"),
    ],
)
def test_letters_of_a_ligature_are_read_in_their_order(letters: str, read: str) -> None:
    # Both letters have the place of one glyph, to the left of another word.
    assert _read("", f"{letters} ب", [(0, 2), (0, 2), (2, 3), (3, 4)]).endswith(read)
