"""Formulas as Unicode: what they look like, and that nothing is lost."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import pytest
from hypothesis import given, settings
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
        (r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}", "(a, b; c, d)"),
        (r"\hat{x} = \text{ if } \left( y \right.", "x̂ = if ( y"),
        (r"\begin{aligned} a &= b \\ &= c \end{aligned}", "a = b\n= c"),
        (r"100\% \{x\} \, \& \|v\|", "100% {x} & ‖v‖"),
        (r"\binom{n}{k}", "(n choose k)"),
        (r"{n \choose k} \ne {n \over k}x", "(n choose k) ≠ (n/k)x"),
        (r"2\frac{1}{2} \ne \frac{21}{2}", "2 1/2 ≠ 21/2"),
        (r"2\frac12mv^2 + \frac{1}{2}\, mv^2", "(2 1/2)mv² + (1/2) mv²"),
        (r"\sqrt{2}\pi \ne \sqrt{2\pi} \ne \sqrt2", "√(2)π ≠ √(2π) ≠ √2"),
        (r"2\sqrt[3]{x} \ne \sqrt[q]{x}", "2(³√x) ≠ √[q](x)"),
        (r"{x^2}^3 + {ab}^2 + \sqrt{x}^2 + \frac{a}{b}^2", "(x²)³ + (ab)² + (√x)² + (a/b)²"),
        (r"x^q y + x^{qy} + x_b^q", "x^(q) y + x^(qy) + x_(b)^q"),
        (r"a\sin b\cos^2x", "a sin b cos² x"),
        (r"\frac{d}{\boxed{}}", "d/"),
        (r"\frac{\partial^2 f}{\partial x \partial y} = \frac{d}{dx} f", "∂²f/∂x∂y = (d/dx) f"),
        (r"\lim_{x\to 0}\frac{\sin x}{x}", "lim_(x→ 0) (sin x)/x"),
        (r"\begin{cases} 1, & x > 0 \\[2pt] 0 & x \le 0 \end{cases}", "{ 1, x > 0; 0, x ≤ 0"),
        (r"\begin{bmatrix} f(x,y) & 1, 2 \\ 0 \end{bmatrix}b", "[f(x,y), (1, 2); 0]b"),
        (r"\begin{aligned} a \\[4pt] b \end{aligned}", "a\nb"),
        (r"\operatorname*{arg\,max}_x f", "arg maxₓ f"),
        (r"\mathcal{L}(A^\top) = 90^\circ", "ℒ(Aᵀ) = 90°"),
        (r"y {}^{14}C", "y ¹⁴C"),
    ],
)
def test_common_notation(source: str, shown: str) -> None:
    assert legible(source).text == shown


def test_bold_letters_are_marked() -> None:
    formula = legible(r"a\mathbf{x}b")
    assert (formula.text, formula.bold) == ("axb", ((1, 2),))


@pytest.mark.parametrize("source", [r"\strange{a+b}{c}", "{a", r"a\?b", "x^", r"\begin{odd"])
def test_what_is_not_known_stays_as_written(source: str) -> None:
    assert legible(source).text == source


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
    shown, places = legible(source).text, legible(source).places
    assert len(shown) == len(places)
    assert list(places) == sorted(places)
    assert all(0 <= place < len(source) for place in places)


@given(st.lists(pieces, max_size=14).map("".join))
def test_letters_and_digits_outside_of_commands_are_never_lost(source: str) -> None:
    marked = source.replace("a", "Ж").replace("1", "Щ")
    if "\\" not in marked:
        assert [c for c in legible(marked).text if c in "ЖЩ"] == [c for c in marked if c in "ЖЩ"]


class Value(NamedTuple):
    """A formula as LaTeX with what it is worth. `single`: it needs no braces as a base."""

    latex: str
    number: float
    single: bool = False


LETTERS = {"a": 1.3, "b": 0.7, "m": 2.1, "q": 1.9, "\\pi ": 3.1}
leaves = st.one_of(
    st.sampled_from(sorted(LETTERS)).map(lambda name: Value(name, LETTERS[name], True)),
    st.integers(2, 30).map(lambda n: Value(str(n), n, n < 10)),
    st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(2, 9)).map(
        lambda n: Value(f"{n[0]}\\frac{{{n[1]}}}{{{n[2]}}}", n[0] + n[1] / n[2])
    ),
)


def _times(pair: tuple[Value, Value, bool]) -> Value:
    left, right, dot = pair
    # Digits side by side are one number, and a number before a fraction is a mixed one.
    begins = right.latex.lstrip("{")
    dot = dot or (left.latex[-1].isdigit() and (begins[0].isdigit() or begins.startswith("\\frac")))
    a, b = ((v.latex if "+" not in v.latex else f"({v.latex})") for v in (left, right))
    return Value(a + (r" \cdot " if dot else "") + b, left.number * right.number)


def _power(pair: tuple[Value, int]) -> Value:
    base, exponent = pair
    return Value(f"{{{base.latex}}}^{{{exponent}}}", base.number**exponent)


def _grown(inner: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    return st.one_of(
        st.tuples(inner, inner).map(
            lambda p: Value(rf"\frac{{{p[0].latex}}}{{{p[1].latex}}}", p[0].number / p[1].number)
        ),
        inner.map(lambda v: Value(rf"\sqrt{{{v.latex}}}", v.number**0.5)),
        inner.map(lambda v: Value(rf"\sqrt[3]{{{v.latex}}}", v.number ** (1 / 3))),
        st.tuples(inner, inner, st.booleans()).map(_times),
        st.tuples(inner, st.sampled_from([2, 3])).map(_power),
        st.tuples(inner, inner).map(
            lambda p: Value(f"{p[0].latex} + {p[1].latex}", p[0].number + p[1].number)
        ),
    )


class _LinearReader:
    """Reads a shown formula as people do. `tight`: factors side by side bind stronger than a slash and
    a root takes the exponent behind it; conventions differ, and no formula may depend on them."""

    def __init__(self, text: str, tight: bool) -> None:
        self.text = text
        self.tight = tight
        self.at = 0

    def all(self) -> float:
        value = self._sum()
        assert self.at == len(self.text), (self.text, self.at)
        return value

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _skip(self) -> str:
        while self._peek() == " ":
            self.at += 1
        return self._peek()

    def _sum(self) -> float:
        value = self._product()
        while self._skip() == "+":
            self.at += 1
            value += self._product()
        return value

    def _product(self) -> float:
        value = self._beside() if self.tight else self._factor()
        while self._skip() and self._peek() not in ")+":
            sign = self._peek()
            self.at += sign in "·/"
            other = self._beside() if self.tight else self._factor()
            value = value / other if sign == "/" else value * other
        return value

    def _beside(self) -> float:
        value = self._factor()
        while self._skip() and self._peek() not in ")+·/":
            value *= self._factor()
        return value

    def _factor(self) -> float:
        self._skip()
        root = self._peek() in "³√" and re.match("³?√", self.text[self.at :])
        if root:
            self.at += len(root.group())
            degree = 1 / 3 if "³" in root.group() else 1 / 2
            value = self._atom()
            if self.tight:
                return (value ** self._exponent()) ** degree
            return (value**degree) ** self._exponent()
        value = self._atom()
        return value ** self._exponent()

    def _exponent(self) -> int:
        digits = ""
        while self._peek() and self._peek() in "⁰¹²³⁴⁵⁶⁷⁸⁹":
            digits += str("⁰¹²³⁴⁵⁶⁷⁸⁹".index(self._peek()))
            self.at += 1
        return int(digits) if digits else 1

    def _atom(self) -> float:
        if self._peek() == "(":
            self.at += 1
            value = self._sum()
            assert self._skip() == ")", (self.text, self.at)
            self.at += 1
            return value
        number = re.match(r"(\d+)(?: (\d+)/(\d+))?", self.text[self.at :])
        if number:
            self.at += number.end()
            whole, top, bottom = number.groups()
            return int(whole) + (int(top) / int(bottom) if top else 0)
        self.at += 1
        return {"a": 1.3, "b": 0.7, "m": 2.1, "q": 1.9, "π": 3.1}[self.text[self.at - 1]]


@settings(max_examples=600)
@given(st.recursive(leaves, _grown, max_leaves=7))
def test_a_shown_formula_means_what_was_written_in_every_reading(value: Value) -> None:
    shown = legible(value.latex).text
    for tight in (True, False):
        assert math.isclose(_LinearReader(shown, tight).all(), value.number, rel_tol=1e-6), shown
