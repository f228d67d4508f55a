"""Markup: what browsers make of odd tags, cells in their columns, and time that grows with the length."""

from __future__ import annotations

import random
import time

import pytest

from core.documents import strings
from core.documents.html import declared_charset, html_text
from core.documents.limits import Gathered
from core.documents.markup import EndTag, Markup, StartTag, TagText
from core.documents.text import codec_of


def _cut(markup: str) -> list[TagText | StartTag | EndTag]:
    return list(Markup(markup, frozenset(("alt",))))


def _text(markup: str) -> str:
    return html_text(markup, lambda done, total, unit: None, Gathered(10_000_000))


@pytest.mark.parametrize(
    ("markup", "pieces"),
    [
        ("a < b <", [TagText("a < b <")]),
        ("<A HREF=x>y</A >", [StartTag("a", {}, False), TagText("y"), EndTag("a")]),
        ("<br/>", [StartTag("br", {}, True)]),
        ("<a href=x/>", [StartTag("a", {}, False)]),
        ("<img alt='a > b'>", [StartTag("img", {"alt": "a > b"}, False)]),
        ('<img alt="a&amp;b" alt="c">', [StartTag("img", {"alt": "a&b"}, False)]),
        ("<img ALT = x src>", [StartTag("img", {"alt": "x"}, False)]),
        ("<img =alt alt>", [StartTag("img", {"alt": ""}, False)]),
        ("<a<b>c", [StartTag("a<b", {}, False), TagText("c")]),
        ("x<!-- <p> --!>y<!-->z<!--->", [TagText("x"), TagText("y"), TagText("z")]),
        ("x<!DOCTYPE html><?php x ?>y</ z>", [TagText("x"), TagText("y")]),
        (
            "<script>a<b></script >c",
            [StartTag("script", {}, False), TagText("a<b>"), EndTag("script"), TagText("c")],
        ),
        ("<title>a &lt; <b></TITLE>", [StartTag("title", {}, False), TagText("a < <b>"), EndTag("title")]),
        ("<style>never ended <p>", [StartTag("style", {}, False), TagText("never ended <p>")]),
        ("x<a href='never ended><p>y", [TagText("x")]),
        ("x<a href", [TagText("x")]),
        ("x</a", [TagText("x")]),
        ("x<<<!-->", [TagText("x<<")]),
        ("x</", [TagText("x"), TagText("<"), TagText("/")]),
        ("</>x", [TagText("x")]),
        ("<p><![CDATA[a]]>", [StartTag("p", {}, False)]),
        ("<?xml version='1.0'?><![CDATA[a <b> &amp;]]>c", [TagText("a <b> &amp;"), TagText("c")]),
        ("&#65;&#00000000066;&#x43;&nbsp;&zz;", [TagText("ABC\xa0&zz;")]),
        (f"&#{'9' * 10_000};&#xd800;", [TagText("\ufffd\ufffd")]),
        ("<plaintext>a<b>", [StartTag("plaintext", {}, False), TagText("a<b>")]),
    ],
)
def test_tags_are_cut_as_browsers_cut_them(markup: str, pieces: list[TagText | StartTag | EndTag]) -> None:
    assert _cut(markup) == pieces


SHAPES = {
    "unfinished tags": "<a",
    "unfinished quotes": "<a b='",
    "quotes in turn": "<a b='<a c=\"",
    "attributes": "<a b=c ",
    "unfinished comments": "<!--",
    "unfinished declarations": "<![CDATA[",
    "unfinished ends": "</a",
    "unfinished scripts": "<script><",
    "brackets": "<",
    "ampersands": "&",
    "numbers": "&#1",
    "spaces in tags": "<a                               \n",
    "cells": "<td>x",
    "hidden inside hidden": "<svg><math></object>",
    "deep blocks": "<div><pre>",
    "titles": "<title>x</title>",
    "line ends": "<br>\n\t ",
}


@pytest.mark.sweep
@pytest.mark.parametrize("shape", SHAPES)
def test_time_grows_with_the_length_alone(shape: str) -> None:
    markup = SHAPES[shape] * (300_000 // len(SHAPES[shape]))
    started = time.process_time()
    _text(markup)
    # What is quadratic takes minutes to hours.
    assert time.process_time() - started < 5


def test_hidden_elements_end_with_what_was_opened_inside_them() -> None:
    assert _text("a<svg><object>b<math>c</object>d</svg>e") == "ae"
    assert _text("<head><script src=x /><title/>a<body>b<svg/>c") == "bc"
    assert _text("<svg><title>no</title></svg><title>Fog</title><p>a") == "# Fog\n\na"


@pytest.mark.parametrize("name", ["utf-7", "idna", "punycode", "unicode_escape", "no-such", "hex", "x" * 60])
def test_encodings_that_no_page_is_in_are_not_tried(name: str) -> None:
    assert codec_of(declared_charset(f'<meta charset="{name}">'.encode())) == ""


def test_a_page_says_its_encoding_in_two_ways() -> None:
    assert declared_charset(b"<meta charset=KOI8-R>") == "KOI8-R"
    assert declared_charset(b'<meta http-equiv=x content="text/html; charset=Shift_JIS">') == "Shift_JIS"
    assert declared_charset(b'<?xml version="1.0" encoding="gb2312"?>') == "gb2312"


def drawn_table(draw: random.Random) -> tuple[str, list[list[str]]]:
    """The markup of a table of groups of rows, without optional tags here and there, and its cells."""
    columns, markup, shown = draw.randint(2, 6), "<table>", list[list[str]]()
    for group in range(draw.randint(1, 3)):
        rows = draw.randint(1, 4)
        free = {(row, column) for row in range(rows) for column in range(columns)}
        texts = [[""] * columns for _ in range(rows)]
        markup += "<tbody>" if group or draw.random() < 0.5 else ""
        for row in range(rows):
            markup += "<tr>"
            for column in range(columns):
                if (row, column) not in free:
                    continue
                wide, high = draw.choice((1, 1, 2, 3)), draw.choice((1, 1, 2, rows - row))
                while not free >= {(row, column + at) for at in range(wide)}:
                    wide -= 1
                free -= {(row + down, column + at) for down in range(high) for at in range(wide)}
                texts[row][column] = text = f"cell {len(shown)} {row} {column}"
                # Up to the end of its group, a cell may say that it is higher, or 0.
                said = draw.choice((high, high + 3, 0)) if row + high >= rows else high
                markup += f"<td colspan={wide} rowspan={said}>{text}" + draw.choice(("", "</td>"))
            markup += draw.choice(("", "</tr>"))
        markup += "</tbody>" if draw.random() < 0.5 else ""
        shown += texts
    return f"{markup}</table>", shown


@pytest.mark.parametrize("seed", range(10))
def test_every_cell_is_in_its_column(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(30):
        markup, cells = drawn_table(draw)
        lines = ("\t".join(row).rstrip("\t") for row in cells)
        assert _text(markup).split("\n") == [line for line in lines if line], markup


def test_a_table_that_arranges_a_page_gives_blocks() -> None:
    page = "<table><tr><td>Menu<td><h1>Fog</h1><p>No sailing.</p><table><tr><td>a<td>b</table></table>"
    assert _text(page) == "Menu\n\n# Fog\n\nNo sailing.\n\na\tb"


@pytest.mark.parametrize(
    ("markup", "seen", "hidden"),
    [
        ("<p>a<p hidden>b c<p>d", "a\n\nd", 2),
        ("<p>a</p><div style='color:red;DISPLAY : none !important'><div>b</div>c</div>d", "a\n\nd", 2),
        ("<div hidden>a<script>x y</script></div>b", "b", 1),
        ("<span style='visibility:hidden'>a</span>b", "b", 1),
        ("<span style='opacity:0.0'>a</span><i style='font-size:0px'>c</i>b", "b", 2),
        ("<span style='opacity:0.5;font-size:10px'>a</span>b", "ab", 0),
        ("<span aria-hidden=true>a</span>b", "ab", 0),
        ("<div hidden=until-found>a</div>b", "a\nb", 0),
        ("<body style='opacity:0'>a</body>", "a", 0),
        ("<img hidden alt=x>a<br hidden>b<input style='display:none'>c", "abc", 0),
        ("<ul><li hidden>a<li>b<li hidden>c</ul>d", "- b\n\nd", 2),
        (
            "<table><tr><td>a<td hidden>b<td>c<tr hidden><td>d<tr><td>e<td>f<td>g</table>",
            "a\t\tc\ne\tf\tg",
            2,
        ),
        ("<section><div hidden>a<b>b</section>c", "c", 2),
        ("<div hidden>a</p></span>b</div>c", "c", 2),
        ("<div hidden>a<div hidden>b</div></div>c", "c", 2),
    ],
)
def test_what_the_page_hides_is_left_out_and_counted(markup: str, seen: str, hidden: int) -> None:
    text, _, last = _text(markup).partition("\n\n[")
    assert text == seen
    assert last == (strings.hidden_text(hidden)[1:] if hidden else "")
