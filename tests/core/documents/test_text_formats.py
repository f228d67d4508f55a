"""Tables with separators, subtitles, logs, and texts that declare their encoding."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.documents.limits import Gathered
from core.documents.reading import read_document
from core.documents.text_formats import subtitles_text, table_text

CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\r\t\n\v\f\0\x1c\x1d\x1e\x85\u2028\u2029"))


@given(
    rows=st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=3, max_size=12),
    separator=st.sampled_from(",;\t|"),
)
def test_a_table_keeps_every_cell_whatever_its_separator(rows: list[list[str]], separator: str) -> None:
    rows = [["Berth", "Depth", "Name"], *rows]
    written = io.StringIO()
    # All cells quoted: no other separator explains the file as well.
    csv.writer(written, delimiter=separator, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    expected = "\n".join("\t".join(cell.strip(" ") for cell in row).rstrip("\t") for row in rows)
    assert table_text(written.getvalue(), Gathered(10**6)) == expected.strip("\n")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Name;Price\nLamp;1,50\nRope;12,00\n", "Name\tPrice\nLamp\t1,50\nRope\t12,00"),
        ("sep=|\nName|Price\nLamp|1\n", "Name\tPrice\nLamp\t1"),
        ("a,b\n'x,y',1\n'z',2\n", "a\tb\nx,y\t1\nz\t2"),
        ('a,b\n"say \\"hi, you\\"",1\n"z",2\n', 'a\tb\nsay "hi, you"\t1\nz\t2'),
        ('a,b\n"two\nlines",1\n6" pipe,2\n', 'a\tb\ntwo lines\t1\n6" pipe\t2'),
        ("id\tname\n1\tLamp, red\n2\tRope\n", "id\tname\n1\tLamp, red\n2\tRope"),
        (
            "Report of May\n\na,b,c\n1,,\n,2,3\n4,5,6\n7,8,9\n",
            "Report of May\n\na\tb\tc\n1\n\t2\t3\n4\t5\t6\n7\t8\t9",
        ),
        ("one column\nonly\n", "one column\nonly\n"),
        ("Well, this is prose.\nIt has no columns.\nNot one, two, three.\n", None),
    ],
)
def test_dialects_of_tables(tmp_path: Path, source: str, text: str | None) -> None:
    path = tmp_path / "a.csv"
    path.write_text(source)
    assert read_document(path).text == (source if text is None else text)


def test_a_quotation_mark_that_is_never_closed_does_not_join_the_rows() -> None:
    source = 'a,b\n1,"2\n' + "3,4\n" * 2_000
    text = table_text(source, Gathered(10**6))
    assert text is not None
    assert text.count("\n") == 2_001


SRT = """1
00:00:01,000 --> 00:00:03,500
<i>Good evening.</i>
- Is it 5 < 6?

2
01:02:03,000 --> 01:02:04,000 X1:40 X2:600
{\\an8}The harbour

is closed.
3
01:02:05,000 --> 01:02:06,000
42
"""
VTT = """WEBVTT - harbour
Kind: captions

NOTE not shown
either

STYLE
::cue { color: red }

intro
00:01.000 --> 00:02.500 align:start
<v.loud Roger Bingham>We are <00:01.500><c.yellow>here</c> &amp; now

00:02.500 --> 00:02.510
We are here &amp; now

00:02.500 --> 00:05.000
Roger Bingham: We are here &amp; now
next line
"""


def test_subtitles_have_a_line_for_each_caption(tmp_path: Path) -> None:
    path = tmp_path / "film.srt"
    path.write_text("\ufeff" + SRT.replace("\n", "\r\n"), encoding="utf-8", newline="")
    assert read_document(path).text == (
        "[00:01] Good evening. - Is it 5 < 6?\n[1:02:03] The harbour is closed.\n[1:02:05] 42"
    )
    path = tmp_path / "captions.txt"  # recognised by its content
    path.write_text(VTT.replace("00:02.500 --> 00:02.510\nWe", "00:02.500 --> 00:02.500\nRoger Bingham: We"))
    assert read_document(path).text == "[00:01] Roger Bingham: We are here & now\n[00:02] next line"


@given(
    words=st.lists(st.text(st.sampled_from("abcé ñ漢1"), min_size=1).map(str.strip).filter(bool), max_size=9)
)
def test_no_caption_is_lost(words: list[str]) -> None:
    source = "".join(
        f"{number}\n00:00:{number:02},000 --> 00:00:{number:02},900\n{each}\n\n"
        for number, each in enumerate(words, 1)
    )
    shown = [f"[00:{number:02}] {' '.join(each.split())}" for number, each in enumerate(words, 1)]
    assert (subtitles_text(source, Gathered(10**6)) or "").split("\n") == (shown or [""])


@pytest.mark.parametrize(
    ("name", "head", "codec"),
    [
        ("a.tex", "\\documentclass{article}\n\\usepackage[latin2]{inputenc}\n", "iso8859-2"),
        ("a.tex", "% !TEX encoding = x\n\\usepackage[applemac]{inputenc}\n", "mac-roman"),
        ("a.xml", '<?xml version="1.0" encoding="ISO-8859-2"?>\n', "iso8859-2"),
        ("a.py", "#!/usr/bin/python\n# -*- coding: cp1250 -*-\n", "cp1250"),
    ],
)
def test_a_text_is_read_in_the_encoding_that_it_declares(
    tmp_path: Path, name: str, head: str, codec: str
) -> None:
    word = "mañana" if "mac" in codec else "žluťoučký kůň"
    path = tmp_path / name
    path.write_bytes((head + word).encode(codec))
    assert read_document(path).text == head + word
    # The declaration is older than the file.
    path.write_bytes((head + word).encode())
    assert read_document(path).text == head + word
