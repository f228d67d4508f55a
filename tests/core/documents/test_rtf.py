"""Rich text: paragraphs, lists, tables, notes, encodings, and what the page does not show."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.documents import strings
from core.documents.limits import Gathered
from core.documents.reading import document_text
from core.documents.rtf import rtf_text
from core.events.wire import well_formed

FONTS = (
    r"{\fonttbl{\f0\froman\fcharset0 Times New Roman;}{\f1\fnil\fcharset2 Symbol{\*\falt x};}"
    r"{\f2\fcharset204{\*\falt Arial}Arial Cyr;}{\f3\fcharset128 MS Mincho;}{\f4\fcharset2 Wingdings;}}"
)


def text_of(body: str | bytes, head: str = r"\ansi\ansicpg1252\deff0\uc1") -> str:
    data = body.encode("latin-1") if isinstance(body, str) else body
    source = b"{\\rtf1" + (head + FONTS).encode() + b"\n" + data + b"}"
    return rtf_text(source, lambda done, total, unit: None, Gathered(10**6))


def test_a_marked_style_of_characters_is_no_destination() -> None:
    assert text_of(r"\pard{\loch\f0\*\cs7\b The quay}{\*\unknown no}\par") == "The quay"


def test_paragraphs_headings_and_lists() -> None:
    body = (
        r"{\info{\title no}}{\stylesheet{\s1 heading 1;}}{\header\pard no\par}"
        r"{\pard\s1\outlinelevel0\b The Quay\par}"
        r"\pard\plain One\line two\tab three\par\par "
        r"{\listtext\pard\plain\f1 \'b7\tab}\pard\plain\ls1\ilvl0 rope\par "
        r"{\listtext\pard\plain a)\tab}\pard\plain\ls1\ilvl1 knot\par "
        r"\pard {\pntext\f0 2.\tab}\'93Lamp\'94\emdash \u8364?\~5\par"
    )
    assert text_of(body) == (
        "# The Quay\n\nOne\ntwo\tthree\n\n- rope\n    a) knot\n2. “Lamp”—€\u00a05\n\n[page header] no"
    )


def test_text_is_decoded_with_the_code_page_of_its_font() -> None:
    # The second byte of the Japanese word is an ordinary letter.
    body = rb"caf\'e9 {\f2 \'ec\'e0\'ff\'ea} {\f3 \'83A\'83b} {\f1 ab\'b7} {\f4\'fc}{\f1\u-4016\'d0}"
    body += rb" \u233\'e9\u-10178?\u-9056?"
    assert well_formed(text_of(body)) == "café маяк アッ αβ• ✓Π é\U0001f8a0"
    assert text_of(rb"\'8e\'80", r"\mac\deff9") == "éÄ"
    assert text_of(rb"{\uc0\u233 x}{\uc2\u233\'65\'65x}{\u233 }x") == "éxéxéx"
    assert text_of(r"{\upr{ansi}{\*\ud{\u233?}}}") == "é"


def test_rows_keep_merged_cells_in_their_columns() -> None:
    def row(edges: list[int], *cells: str) -> str:
        return (
            r"\trowd\trgaph70"
            + "".join(rf"\cellx{edge}" for edge in edges)
            + "".join(rf"\pard\intbl {cell}\cell" for cell in cells)
            + r"\row "
        )

    body = (
        row([1000, 2000, 3000], "Name", r"2023\par net", "2024")
        + row([2010, 3000], "Both", "900")
        + row([1000, 3000], r"Rent{\*\shppict no}", "")
        + r"\pard After\par "
        + row([500], r"a\par{\pard\intbl\itap2 in\nestcell{\*\nesttableprops\nestrow}{\nonesttables no}}")
    )
    assert text_of(body) == "Name\t2023 net\t2024\nBoth\t\t900\nRent[picture]\n\nAfter\n\na in"


def test_notes_fields_and_text_boxes() -> None:
    body = (
        r"See{\super\chftn{\*\footnote\pard\plain{\super\chftn} Below\par it.}}, "
        r"{\field{\*\fldinst HYPERLINK no}{\fldrslt the page}}{\*\atnid no}{\*\annotation no}"
        r" and{\super *}{\footnote Second.} 10{\super 3}{\sub 2}\par "
        r"{\shp{\*\shpinst\shpleft1{\sp{\sn no}{\sv no}}{\shptxt\pard Boxed\par}}{\shprslt no}}Last\par"
    )
    assert text_of(body) == (
        "See[1], the page[comment 1] and*[2] 10³₂\n\nBoxed\nLast\n\n"
        "[1] Below it.\n[comment 1] no\n[2] Second."
    )


def test_what_the_page_hides_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"  # recognised by its content
    path.write_bytes(rb"{\rtf1 Seen {\v very secret}{\deleted gone}\v now\v0 too{\pict\bin4 }}}}ffee}\par}")
    assert document_text(path) == f"Seen too[picture]\n\n{strings.hidden_text(3)}"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (r"one\par two", "one\n\ntwo"),
        ("one\\\ntwo\\\n", "one\n\ntwo"),
        (r"one}} two", "one two"),
        (r"{\pard\intbl a\cell b\cell", "a\tb"),
        (r"a\'zz\u99999999999999 b\bin99999 no", "azz" + chr(9999999999 & 0xFFFF)),
    ],
)
def test_damaged_files_keep_what_can_be_read(body: str, text: str) -> None:
    assert text_of(body) == text


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Zl", "Zp"))), max_size=6))
def test_no_character_is_lost(paragraphs: list[str]) -> None:
    def written(letter: str) -> str:
        if letter in "\\{}":
            return f"\\{letter}"
        if letter < "\x7f":
            return letter
        units = letter.encode("utf-16-le")
        return "".join(
            rf"\u{int.from_bytes(units[at : at + 2], 'little', signed=True)}?"
            for at in range(0, len(units), 2)
        )

    body = "".join("".join(map(written, each)) + r"\par " for each in paragraphs)
    whole = (each.replace("\u00ad", "").strip() for each in paragraphs)
    shown = "\n\n".join(filter(None, whole))
    assert well_formed(text_of(body)) == shown
