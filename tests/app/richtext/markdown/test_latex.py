"""Simple formulas as Unicode: what they look like, that nothing is lost, and which are typeset instead."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.richtext.markdown.latex import Legible, legible


def simple(source: str) -> Legible:
    read = legible(source)
    assert read is not None
    return read


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (r"x^2 + y_{i+1}^{n}", "x² + yᵢ₊₁ⁿ"),
        (r"f'(x) \in \mathbb{R}, \forall x", "f′(x) ∈ ℝ, ∀ x"),
        (r"\hat{x} = \text{ if } \left( y \right.", "x̂ = if ( y"),
        (r"100\% \{x\} \, \& \|v\|", "100% {x} & ‖v‖"),
        (r"a\sin b\cos^2x", "a sin b cos² x"),
        (r"\operatorname{arg max} f", "arg max f"),
        (r"\mathcal{L}(A^\top) = 90^\circ", "ℒ(Aᵀ) = 90°"),
        (r"y {}^{14}C", "y ¹⁴C"),
        (r"x  ^2 + 10^{-3}", "x² + 10⁻³"),
        (r"\mathrm{H_2O}", "H₂O"),
        (r"O(n \log n) \le n!", "O(n log n) ≤ n!"),
    ],
)
def test_common_notation(source: str, shown: str) -> None:
    assert simple(source).text == shown


@pytest.mark.parametrize(
    "source",
    [
        *(r"\frac{a}{b}", r"\sqrt2", r"e^{i\pi}", r"\sum_{i=1}^n i", r"\lim_{x\to 0} f", r"\binom{n}{k}"),
        *(r"a \over b", r"\begin{pmatrix} a \end{pmatrix}", r"a \\ b", r"x^q", r"{x^2}^3", "x^2^3", "{ab}^2"),
        *(r"\vec{ab}", r"\mathbb{x}", r"\strange{a+b}{c}", "{a", r"a\?b", "x^", r"\begin{odd", "a & b", "x}"),
        *("{" * 50 + "x" + "}" * 50, "x" * 600),
    ],
)
def test_what_unicode_does_not_say_is_not_simple(source: str) -> None:
    assert legible(source) is None


def test_bold_letters_are_marked() -> None:
    formula = simple(r"a\mathbf{x}b")
    assert (formula.text, formula.bold) == ("axb", ((1, 2),))


pieces = st.sampled_from(
    [
        *"ab1+-={}^_&\\ \n$'[]~",
        "\\frac",
        "\\sqrt",
        "\\alpha",
        "\\text",
        "\\left",
        "\\hat",
        "\\begin{cases}",
        "\\foo",
    ]
)


@given(st.lists(pieces, max_size=14).map("".join))
def test_places_are_in_the_source_and_never_go_back(source: str) -> None:
    if read := legible(source):
        assert len(read.text) == len(read.places)
        assert list(read.places) == sorted(read.places)
        assert all(0 <= place < len(source) for place in read.places)


@given(st.lists(pieces, max_size=14).map("".join))
def test_letters_and_digits_outside_of_commands_are_never_lost(source: str) -> None:
    marked = source.replace("a", "Ж").replace("1", "Щ")
    if "\\" not in marked and (read := legible(marked)):
        assert [c for c in read.text if c in "ЖЩ"] == [c for c in marked if c in "ЖЩ"]


parts = st.sampled_from(
    [
        *"xyn23+=()",
        "x^2",
        "a_{ij}",
        "{",
        "}",
        "^2",
        "^3",
        "_1",
        "{}",
        r"\sin ",
        r"\alpha ",
        r"\mathrm{kg}",
        r"\hat x",
        "'",
    ]
)


@settings(max_examples=400)
@given(st.lists(parts, max_size=8).map("".join))
def test_a_script_belongs_to_the_one_character_before_it(source: str) -> None:
    """Otherwise the reader would take it for another's: {ab}² is not ab²."""
    if legible(source) is None:
        return
    for group in re.finditer(r"(?<![\^_])\{([^{}]*)\}[\^_]", source):
        shown = legible(group.group(1))
        assert shown is not None
        assert len(shown.text.strip()) <= 1
