"""Equations and symbols of Word documents."""

from __future__ import annotations

import pytest

from core.documents.docx_symbols import symbol
from core.documents.equations import equation_line
from core.documents.parts import Builder, Element

M = "http://schemas.openxmlformats.org/officeDocument/2006/math"


def equation(markup: str) -> str:
    """A short notation for tests: `tag(...)` elements, `tag=value` properties, the rest text."""
    reader = Builder(Element("oMath"))
    at = 0
    word = ""
    while at < len(markup):
        letter = markup[at]
        if letter == "{":
            tag, _, value = word.partition("=")
            reader.start(tag, {f"{M} val": value} if value else None)
            word = ""
        elif letter == "}":
            if word:
                reader.start("t")
                reader.characters(word)
                reader.end()
                word = ""
            reader.end()
        else:
            word += letter
        at += 1
    return equation_line(reader.root)


@pytest.mark.parametrize(
    ("markup", "line"),
    [
        ("f{num{1}den{2}}", "1/2"),
        ("f{num{a+b}den{2c}}", "(a+b)/(2c)"),
        ("sSup{e{x}sup{2}}", "x^2"),
        ("sSup{e{x+1}sup{n-1}}", "(x+1)^(n-1)"),
        ("sSub{e{x}sub{i}}", "x_i"),
        ("rad{deg{}e{b-4ac}}", "√(b-4ac)"),
        ("rad{deg{3}e{x}}", "∛x"),
        ("nary{naryPr{chr=∑{}}sub{i=1}sup{n}e{x}}", "∑_(i=1)^n x"),
        ("d{dPr{begChr=[{}endChr=]{}}e{a}}", "[a]"),
        ("m{mr{e{1}e{0}}mr{e{0}e{1}}}", "[1, 0; 0, 1]"),
        ("func{fName{sin}e{x}}", "sin x"),
    ],
)
def test_equations_as_lines(markup: str, line: str) -> None:
    # `=` inside a text is not a property: only what stands before `{` is split.
    assert equation(markup) == line


def test_unknown_symbols_are_marked() -> None:
    assert symbol("Symbol", "F061") == "α"
    assert symbol("Webdings", "F061") == "\ufffd"
    assert symbol("Arial", "20AC") == "€"
    assert symbol("Symbol", "no") == "\ufffd"
