"""Markup: what browsers make of odd tags, and that time grows with the length alone."""

from __future__ import annotations

import time

import pytest

from core.documents.html import declared_charset, html_text
from core.documents.limits import Gathered
from core.documents.markup import End, Markup, Start, Text


def _cut(markup: str) -> list[Text | Start | End]:
    return list(Markup(markup, frozenset(("alt",))))


def _text(markup: str) -> str:
    return html_text(markup, lambda done, total, unit: None, Gathered(10_000_000))


@pytest.mark.parametrize(
    ("markup", "pieces"),
    [
        ("a < b <", [Text("a < b <")]),
        ("<A HREF=x>y</A >", [Start("a", {}, False), Text("y"), End("a")]),
        ("<br/>", [Start("br", {}, True)]),
        ("<a href=x/>", [Start("a", {}, False)]),
        ("<img alt='a > b'>", [Start("img", {"alt": "a > b"}, False)]),
        ('<img alt="a&amp;b" alt="c">', [Start("img", {"alt": "a&b"}, False)]),
        ("<img ALT = x src>", [Start("img", {"alt": "x"}, False)]),
        ("<img =alt alt>", [Start("img", {"alt": ""}, False)]),
        ("<a<b>c", [Start("a<b", {}, False), Text("c")]),
        ("x<!-- <p> --!>y<!-->z<!--->", [Text("x"), Text("y"), Text("z")]),
        ("x<!DOCTYPE html><?php x ?>y</ z>", [Text("x"), Text("y")]),
        ("<script>a<b></script >c", [Start("script", {}, False), Text("a<b>"), End("script"), Text("c")]),
        ("<title>a &lt; <b></TITLE>", [Start("title", {}, False), Text("a < <b>"), End("title")]),
        ("<style>never ended <p>", [Start("style", {}, False), Text("never ended <p>")]),
        ("x<a href='never ended><p>y", [Text("x")]),
        ("x<a href", [Text("x")]),
        ("x</a", [Text("x")]),
        ("x<<<!-->", [Text("x<<")]),
        ("x</", [Text("x"), Text("<"), Text("/")]),
        ("</>x", [Text("x")]),
        ("&#65;&#00000000066;&#x43;&nbsp;&zz;", [Text("ABC\xa0&zz;")]),
        (f"&#{'9' * 10_000};&#xd800;", [Text("\ufffd\ufffd")]),
        ("<plaintext>a<b>", [Start("plaintext", {}, False), Text("a<b>")]),
    ],
)
def test_tags_are_cut_as_browsers_cut_them(markup: str, pieces: list[Text | Start | End]) -> None:
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


def test_cells_stand_apart_and_leading_ones_do_not() -> None:
    assert _text("<tr><td>a<td><b>b</b> c<td> <tr><td><td>d") == "a\tb c\nd"


@pytest.mark.parametrize("name", ["utf-7", "idna", "punycode", "unicode_escape", "no-such", "hex", "x" * 60])
def test_encodings_that_no_page_is_in_are_not_tried(name: str) -> None:
    assert declared_charset(f'<meta charset="{name}">'.encode()) in ("", "hex")


def test_a_page_says_its_encoding_in_two_ways() -> None:
    assert declared_charset(b"<meta charset=KOI8-R>") == "koi8-r"
    assert declared_charset(b'<meta http-equiv=x content="text/html; charset=Shift_JIS">') == "shift_jis"
