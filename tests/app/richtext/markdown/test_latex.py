"""Formulas as Unicode: what they look like, and that nothing is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.richtext.markdown.latex import legible


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (r"x^2 + y_{i+1}^{n}", "x² + yᵢ₊₁ⁿ"),
        (r"e^{i\pi} = -1", "e^(iπ) = −1"),
        (r"\sum_{i=1}^{n} i = \frac{n(n+1)}{2}", "∑ᵢ₌₁ⁿ i = (n(n+1))/2"),
        (r"\sqrt[3]{x+1} \ne \sqrt2", "³√(x+1) ≠ √2"),
        (r"f'(x) \in \mathbb{R}, \forall x", "f′(x) ∈ ℝ, ∀ x"),
        (r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}", "( a b; c d )"),
        (r"\hat{x} = \text{ if } \left( y \right.", "x̂ = if ( y"),
        (r"\begin{aligned} a &= b \\ &= c \end{aligned}", "a = b\n= c"),
        (r"100\% \{x\} \, \& \|v\|", "100% {x} & ‖v‖"),
        (r"\binom{n}{k}", "(n choose k)"),
    ],
)
def test_common_notation(source: str, shown: str) -> None:
    assert legible(source)[0] == shown


@pytest.mark.parametrize("source", [r"\strange{a+b}{c}", "{a", r"a\?b", "x^", r"\begin{odd"])
def test_what_is_not_known_stays_as_written(source: str) -> None:
    assert legible(source)[0] == source


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
    shown, places = legible(source)
    assert len(shown) == len(places)
    assert list(places) == sorted(places)
    assert all(0 <= place < len(source) for place in places)


@given(st.lists(pieces, max_size=14).map("".join))
def test_letters_and_digits_outside_of_commands_are_never_lost(source: str) -> None:
    marked = source.replace("a", "Ж").replace("1", "Щ")
    if "\\" not in marked:
        assert [c for c in legible(marked)[0] if c in "ЖЩ"] == [c for c in marked if c in "ЖЩ"]
