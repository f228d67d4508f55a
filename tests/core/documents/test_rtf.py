"""Rich text keeps every character, also of damaged files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.documents.limits import Gathered
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


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (r"one\par two", "one\n\ntwo"),
        ("one\\\ntwo\\\n", "one\n\ntwo"),
        (r"one}} two", "one two"),
        (r"a \\*\u161? b {\*\unknown c}d", "a \\*¡ b d"),
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
