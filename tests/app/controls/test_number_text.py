"""Typed numbers are read as they are meant in the person's region or refused, and shown with all digits."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from PySide6.QtCore import QLocale

from app.controls.number_text import Notation, may_be_typed, plain, read, shown
from core.errors import RequestError

NAMES = """
    C en_US en_GB en_IN en_ZA de_DE de_AT de_CH fr_FR fr_CH it_IT es_ES es_MX pt_PT pt_BR nl_NL pl_PL cs_CZ
    hu_HU sv_SE nb_NO fi_FI da_DK ru_RU uk_UA el_GR tr_TR he_IL ar_EG ar_MA fa_IR ur_PK hi_IN bn_BD mr_IN
    ne_NP th_TH ja_JP ko_KR zh_CN zh_TW vi_VN id_ID lt_LT my_MM gsw_CH
"""
NOTATIONS = {name: Notation.of(QLocale(name)) for name in NAMES.split()}
notations = st.sampled_from(sorted(NOTATIONS)).map(NOTATIONS.__getitem__)
values = st.one_of(
    st.integers(-(2**53), 2**53).map(float),
    st.decimals(-10_000, 10_000, places=3).map(float),
    st.floats(-1e9, 1e9).filter(lambda value: value == 0 or abs(value) > 1e-12),
)
# Marks between thousands that anyone uses anywhere, and marks before a fraction.
GROUPS = ["", ",", ".", "'", "’", " ", "\u00a0", "\u202f", "٬"]
POINTS = [".", ",", "٫"]


def test_the_regions_differ() -> None:
    """Else the properties below would say little."""
    assert len({(each.point, each.group, each.zero) for each in NOTATIONS.values()}) >= 8


@given(notations, values, st.booleans())
@example(NOTATIONS["en_US"], 0.005, True)
@example(NOTATIONS["de_DE"], 4.096, True)
@example(NOTATIONS["ar_EG"], -1234567.875, True)
def test_what_is_shown_is_read_as_the_same_number(notation: Notation, value: float, grouped: bool) -> None:
    text = shown(value, notation, grouped=grouped)
    assert may_be_typed(text)
    assert read(text, notation, whole=False) == value
    assert float(plain(value)) == value
    assert "e" not in plain(value)
    if value.is_integer():
        assert read(text, notation, whole=True) == value


def _read(text: str, notation: Notation, *, whole: bool) -> float | None:
    try:
        return read(text, notation, whole=whole)
    except RequestError:
        return None


def _typed(digits: int, places: int, point: str, group: str) -> str:
    """`digits` divided by 10**places as somebody types it."""
    text = f"{digits:0{places + 1}d}"
    before, after = text[: len(text) - places], text[len(text) - places :]
    return f"{int(before):,}".replace(",", group) + (point + after if places else "")


@given(
    notations,
    st.one_of(st.integers(0, 9_999), st.integers(0, 10**10)),
    st.integers(0, 4),
    st.sampled_from(POINTS),
    st.sampled_from(GROUPS),
    st.booleans(),
)
@example(NOTATIONS["en_US"], 7, 1, ",", "", False)  # “0,7”
@example(NOTATIONS["en_US"], 4096, 0, ".", ".", True)  # “4.096”
@example(NOTATIONS["de_DE"], 4096, 3, ".", "", False)  # “4.096”
@example(NOTATIONS["en_US"], 2000, 3, ".", "", True)  # “2.000”
def test_what_is_typed_is_the_number_that_is_meant_or_refused(
    notation: Notation, digits: int, places: int, point: str, group: str, whole: bool
) -> None:
    """In the person's notation it is read; in another one it is read as that number, or refused."""
    assume(point != group)
    text = _typed(digits, places, point, group)
    meant = digits / 10**places
    own = places and (point == notation.point) and group in ("", notation.group)
    own = own or (not places and group in ("", notation.group))
    number = _read(text, notation, whole=whole)
    if number is None:
        # A fraction that was typed for a whole number, or a text that another notation reads otherwise.
        assert not own or (whole and places)
    elif number != meant:
        # It is another number in the person's own notation.
        mark = point if places else group
        assert text.count(mark) == 1
        assert mark in (notation.group, notation.point)
        assert number == float(text.replace(mark, "" if mark == notation.group else "."))
        assert not whole or mark == notation.group


@pytest.mark.parametrize(
    ("name", "text", "whole", "number"),
    [
        ("en_US", "0,7", False, 0.7),
        ("de_DE", "0,7", False, 0.7),
        ("de_DE", "0.7", False, 0.7),
        ("de_DE", "0.005", False, 0.005),
        ("de_DE", "4.096", True, 4096),
        ("de_CH", "4'096", True, 4096),
        ("fr_FR", "4 096", True, 4096),
        ("fr_FR", "1 234,5", False, 1234.5),
        ("hi_IN", "1,00,000", True, 100_000),
        ("ar_EG", "٤٬٠٩٦", True, 4096),
        ("ar_EG", "٠٫٧", False, 0.7),
        ("ar_EG", "4,096.5", False, 4096.5),
        ("ja_JP", "４，０９６", True, 4096),
        ("en_US", "1.234.567", True, 1_234_567),
        ("en_US", "-1,5", False, -1.5),
        ("en_US", "−.5", False, -0.5),
        ("en_US", "5.0", True, 5),
    ],
)
def test_examples(name: str, text: str, whole: bool, number: float) -> None:
    assert read(text, NOTATIONS[name], whole=whole) == number


@pytest.mark.parametrize(
    ("name", "text", "whole", "reason"),
    [
        ("en_US", "4.096", True, "two numbers"),
        ("fr_FR", "4.096", False, "two numbers"),
        ("de_DE", "4,096", True, "two numbers"),
        ("en_US", "0.7", True, "not a whole number"),
        ("en_US", "1.2.3", False, "not a number"),
        ("en_US", "1,2,3", False, "not a number"),
        ("en_US", "12 34", True, "not a number"),
        ("en_US", "1.2,3,4", False, "not a number"),
        ("en_US", "", True, "not a number"),
        ("en_US", "-", True, "not a number"),
        (".", ".", True, "not a number"),
        ("en_US", "10²", True, "not a number"),
        ("en_US", "1e5", True, "not a number"),
    ],
)
def test_refused(name: str, text: str, whole: bool, reason: str) -> None:
    with pytest.raises(RequestError, match=reason):
        read(text, NOTATIONS.get(name, NOTATIONS["en_US"]), whole=whole)


@given(notations, st.text("0123456789.,'’ ٤٬٫-+٠", max_size=12), st.booleans())
def test_nothing_else_is_raised(notation: Notation, text: str, whole: bool) -> None:
    number = _read(text, notation, whole=whole)
    assert number is None or not whole or number.is_integer()
