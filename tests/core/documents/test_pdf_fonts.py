"""Letters of PDF fonts: names of glyphs, maps that are added, and what cannot be text."""

from __future__ import annotations

import unicodedata

import pytest

from core.documents.pdf_fonts import codes_are_letters, glyph_letters, has_layers, impossible, mapped
from tests.core.documents.made import pdf_of


@pytest.mark.parametrize(
    ("name", "letters"),
    [
        ("f_f_i", "ffi"),
        ("T_h", "Th"),
        ("A", "A"),
        ("eacute", "é"),
        ("Scaron", "Š"),
        ("ohungarumlaut", "ő"),
        ("tcommaaccent", "ţ"),
        ("alpha", "α"),
        ("Omega", "Ω"),
        ("uni0416", "Ж"),
        ("uni00660069", "fi"),
        ("u1F600", "\U0001f600"),
        ("a.sc", "a"),
        ("zero.taboldstyle", "0"),
        ("Euro", "€"),
        ("uniD800", ""),
        ("u110000", ""),
        ("f_g77", ""),
        ("g77", ""),
        (".notdef", ""),
        ("", ""),
    ],
)
def test_names_of_glyphs(name: str, letters: str) -> None:
    assert glyph_letters(name) == letters


def test_every_letter_of_western_languages_has_a_name_that_gives_it() -> None:
    accents = {"GRAVE": "grave", "ACUTE": "acute", "CIRCUMFLEX": "circumflex", "TILDE": "tilde"}
    accents |= {"DIAERESIS": "dieresis", "RING ABOVE": "ring", "CEDILLA": "cedilla", "CARON": "caron"}
    found = 0
    for code in range(0xC0, 0x180):
        kind, _, accent = unicodedata.name(chr(code)).partition(" WITH ")
        base = kind.rpartition(" ")[2]
        if accent in accents and len(base) == 1:
            letter = base if "CAPITAL" in kind else base.lower()
            assert glyph_letters(letter + accents[accent]) == chr(code)
            found += 1
    assert found > 100


@pytest.mark.parametrize(
    ("codes", "are_letters"),
    [
        ("Issue 5039", True),
        ("Výbava na přání", True),
        ("KEY INVESTOR INFORMATION", True),
        ("p20-40:p15-25.qxd 10/02/2012", True),
        ("の削除・インストールについて", True),
        ("6XPPD", False),
        ("9ROXPHV\x03", False),
        ("'(6&5,37,21", False),
        ("5(&20('$&1", False),
        ("ɎɅȺɇɐɕ", False),
        ("킜킰톁톁킰톈톂", False),
        ("᧒ᥱᦎᦫ", False),
        ("¨\xa0YB¾\x9fÕ²", False),
        ("  ", False),
    ],
)
def test_codes_that_are_the_letters_which_the_page_shows(codes: str, are_letters: bool) -> None:
    assert codes_are_letters(codes) is are_letters


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("A line of text, 940 €.", 0),
        ("नमस्ते दुनिया, السلام عليكم, שלום, ภาษาไทย, 東京のカフェ", 0),
        ("α-Strahlung µm Ω", 0),
        ("\U00010c80\U0001f600", 0),
        ("a\ue000b", 1),
        ("\ufffd\ufffd x", 2),
        ("\u0378", 1),
        ("Жกa", 3),
        ("\u0301abc", 4),
        ("\u093fक", 0),
    ],
)
def test_what_cannot_be_text(text: str, count: int) -> None:
    assert impossible(text) == count


def _font(text: bytes) -> bytes:
    """A file with a font, which PDFium does not need to read."""
    data = pdf_of(["One"]).replace(b"/BaseFont /Helvetica", b"/BaseFont /Helvetica " + text)
    start = data.rindex(b"xref\n0")
    return data[: data.rindex(b"startxref")] + b"startxref\n%d\n%%%%EOF\n" % start


def test_only_fonts_with_names_of_glyphs_and_no_map_get_one() -> None:
    encoding = b"/Encoding << /Differences [65 /f_f_i /g77 90 /T_h] >>"
    added = mapped(_font(encoding))
    assert b"<41> <006600660069>" in added
    assert b"<5a> <00540068>" in added
    assert b"<42>" not in added
    assert added.count(b"/ToUnicode") == 1
    assert mapped(_font(b"/Encoding /WinAnsiEncoding")) == b""
    assert mapped(_font(encoding + b" /ToUnicode 9 0 R")) == b""
    assert mapped(_font(encoding).replace(b"trailer\n<<", b"trailer\n<< /Encrypt 9 0 R")) == b""
    assert mapped(_font(encoding).partition(b"startxref")[0]) == b""


def test_only_a_file_with_layers_is_searched_for_them() -> None:
    assert not has_layers(pdf_of(["One"]))
    assert has_layers(pdf_of(["One"]).replace(b"/Type /Catalog", b"/OCProperties 9 0 R /Type /Catalog"))
    assert has_layers(pdf_of(["One"]) + b"/Encrypt")
