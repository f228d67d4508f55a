"""Typeset formulas: nothing of them is lost, other programs can read them, and LaTeX stays within limits."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from core.typesetting import EM, LONGEST, Formula
from core.typesetting.child import typeset

# ziamath is imported with a function that Python 3.11 deprecates and 3.13 does not.
pytestmark = pytest.mark.filterwarnings("ignore:path is deprecated:DeprecationWarning")
FORMULAS = (Path(__file__).parent / "formulas.txt").read_text("utf-8").splitlines()
PATH = re.compile(r"(?:[MLQCZ]|-?\d+)(?: (?:[MLQCZ]|-?\d+))*")


class Words(HTMLParser):
    """The text of MathML, whose elements are closed in order, and its attributes."""

    def __init__(self, mathml: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.attributes: set[str] = set()
        self.feed(mathml)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_there_are_formulas_of_many_kinds() -> None:
    assert len(FORMULAS) >= 60
    assert len(set(FORMULAS)) == len(FORMULAS)


@pytest.mark.sweep
@pytest.mark.parametrize("latex", FORMULAS)
@pytest.mark.parametrize("display", [True, False])
def test_a_formula_is_shapes_of_a_plausible_size_and_mathml(latex: str, display: bool) -> None:
    made = typeset(Formula(latex, display))
    assert EM / 4 < made.width < 40 * EM
    assert 0 < made.ascent + made.descent < 8 * EM
    assert made.letters or PATH.fullmatch(" ".join(made.fill.split()))
    numbers = [int(number) for number in re.findall(r"-?\d+", made.fill)]
    assert all(-4 * EM < number < 42 * EM for number in numbers)
    read = Words(made.mathml)
    assert not read.attributes & {"href", "style", "class", "id"}
    # Some letters have signs of their own, as ℝ; digits have not.
    written = re.sub(r"\\(?:begin|end)\{\w+\*?\}(?:\{\d\})?|\[\dpt\]|\{1cm\}", "", latex)
    assert sorted(re.findall(r"\d", written)) == sorted(re.findall(r"\d", read.text))


def test_characters_that_the_font_lacks_are_named_with_their_place() -> None:
    made = typeset(Formula(r"\frac{\text{距离}}{\text{时间}} = v", True))
    assert [each.text for each in made.letters] == list("距离时间")
    assert made.letters[0].y < 0 < made.letters[2].y
    assert made.letters[1].x - made.letters[0].x == pytest.approx(EM, rel=0.01)


@pytest.mark.parametrize(
    "latex",
    [
        *(
            "",
            r"\text{ }",
            r"\quad",
            r"\frac{a}{",
            "x_",
            r"\foo{x}",
            r"a \unknown b",
            r"\begin{foo} a \end{foo}",
            r"\left( x",
        ),
        *(r"\rule{9cm}{9cm}", r"\hspace{100000cm} x", r"\includegraphics{a}", r"\begin{matrix} a", "a & b"),
        *(r"\verb|<b>|", r"\style{color:red;a:url(http://x)}{y}", r"\text{\foo}"),
        *(r"\newcommand{\x}[1]{#1#1}\x{\x{a}}", r"\def\a{\a}\a", "x" * (LONGEST + 1)),
        *(
            r"\frac{" * 600 + "x" + "}{y}" * 600,
            r"\sqrt{" * 700 + "x" + "}" * 700,
            "{" * 2_000 + "x" + "}" * 2_000,
        ),
    ],
)
def test_what_is_wrong_unsupported_or_huge_is_refused(latex: str) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011 - of either of two parsers
        typeset(Formula(latex, True))


@pytest.mark.parametrize(
    "latex",
    [
        r"\href{javascript:alert(1)}{x}",
        r'\class{a" onload="b}{z}',
        "</math><script>alert(1)</script>",
        r"\text{a & b < c}",
        "a<b>c&d;",
    ],
)
def test_mathml_has_no_elements_of_the_formula_s_own(latex: str) -> None:
    try:
        made = typeset(Formula(latex, False))
    except Exception:
        return
    assert "<script" not in made.mathml
    assert not Words(made.mathml).attributes & {"href", "style", "class", "onload"}
