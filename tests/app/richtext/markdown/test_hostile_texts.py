"""Texts made to break what reads them: none is hidden, none raises, none takes out of all proportion."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from app.chat.answer_text import AnswerText
from app.richtext.markdown.blocks import shown_end
from app.richtext.markdown.inline import bare_links
from app.richtext.markdown.latex import legible
from app.richtext.markdown.markdown import parse_block, pieces_of
from app.richtext.markdown.piece import source_at
from tests.app.chat.written import token

NESTED = [
    "\\frac", "\\sqrt[", "\\sqrt", "\\hat", "\\binom", "\\foo{", "{", "^{", "_", "\\text{", "\\mathbf",
    "\\not", "\\begin{a", "\\overline{", "\\overline", "\\left", "\\frac{", "\\begin{pmatrix}", "\\mathbb{",
]  # fmt: skip


@pytest.mark.parametrize("unit", NESTED)
@pytest.mark.parametrize("times", [70, 1_200, 50_000])
def test_a_formula_of_any_depth_is_shown(unit: str, times: int) -> None:
    source = "$" + unit * times + "x$"
    shown = "\n".join(piece.text for piece in parse_block(source, 0, len(source)))
    assert shown == source or legible(source[1:-1])


@pytest.mark.parametrize(
    "source",
    [
        "> " * 40 + "deep words",
        "- " * 40 + "deep words",
        "1. " * 40 + "deep words",
        "> - " * 40 + "deep words",
        "\n".join("  " * depth + f"- item {depth}" for depth in range(40))
        + "\n\n"
        + "  " * 40
        + "deep words",
        "> " * 40 + "one\n" + "> " * 40 + "two\n\ndeep words",
        "> " * 40 + "one\nlazy deep words",
    ],
)
def test_no_depth_hides_words(source: str) -> None:
    shown = "\n".join(piece.text for piece in parse_block(source, 0, len(source)))
    for word in ("deep words", "one", "two", "lazy", *(f"item {depth}" for depth in range(40))):
        assert (word in shown) == (word in source)


def test_what_is_too_long_stands_as_it_was_written() -> None:
    source = "**a** " * 10_000
    (piece,) = parse_block(source, 0, len(source))
    assert piece.text == source
    code = "```python\n" + "x = 1\n" * 10_000 + "```\n"
    (piece,) = parse_block(code, 0, len(code))
    assert (piece.kind, piece.language, piece.text) == ("code", "python", "x = 1\n" * 9_999 + "x = 1")


def test_a_table_of_too_many_cells_stands_as_it_was_written() -> None:
    source = "|a" * 50 + "|\n" + "|-" * 50 + "|\n" + "|b|\n" * 500
    (piece,) = parse_block(source, 0, len(source))
    assert (piece.kind, piece.text) == ("text", source.strip())
    assert all(source[source_at(piece.segments, at) or 0] == piece.text[at] for at in range(len(piece.text)))


def streamed(source: str) -> None:
    text = AnswerText()
    for at in range(0, len(source), 40):
        text.append([token(source[at : at + 40])])
    text.finish()


def read(source: str) -> None:
    parse_block(source, 0, len(source))


SHAPES: dict[str, tuple[Callable[[str], object], Callable[[int], str], int]] = {
    "formulas begun": (read, lambda n: "\\[ a\n" * n, 4_000),
    "formulas begun and words behind the end": (read, lambda n: "\\[ a\n" * n + "\\] b", 4_000),
    "formulas begun in a line": (read, lambda n: "\\( a " * n, 4_000),
    "environments begun": (read, lambda n: "\\begin{a} " * n, 2_000),
    "bold in bold": (read, lambda n: "**a " * n + "b** " * n, 2_000),
    "parentheses after an address": (
        lambda s: list(bare_links(s)),
        lambda n: "http://a.b/" + ")" * n,
        20_000,
    ),
    "marks that may become an item": (lambda s: shown_end(s, 0, len(s)), lambda n: "- " * n + "x", 10_000),
    "a quote under way": (streamed, lambda n: "> " + "words " * n, 4_000),
    "code in a message": (pieces_of, lambda n: "```\na\n```\n\nb\n\n" * n, 1_000),
    "a table": (read, lambda n: "a|b\n-|-\n" + "c|d\n" * n, 900),
}


@pytest.mark.sweep
@pytest.mark.parametrize("name", SHAPES)
def test_twice_the_text_takes_no_four_times_the_time(name: str) -> None:
    work, make, size = SHAPES[name]
    spent = []
    for times in (1, 4):
        source = make(size * times)
        tries = []
        for _ in range(2):
            started = time.process_time()
            work(source)
            tries.append(time.process_time() - started)
        spent.append(min(tries))
    # Of four times the text: quadratic would be sixteen times; ten milliseconds are what a clock may err.
    assert spent[1] < 10 * spent[0] + 0.01
