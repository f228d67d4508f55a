"""What EQ and SYMBOL fields show."""

from __future__ import annotations

import random

import pytest

from core.documents.fields import field_text


@pytest.mark.parametrize(
    ("instruction", "shown"),
    [
        (r" EQ \f(3,4) ", "3/4"),
        (r"EQ \f(a+b;c)", "(a+b)/c"),
        (r"EQ \f(\r(2),2)", "(√2)/2"),
        (r"EQ \r(3,x+1)", "∛(x+1)"),
        (r"eq \r(5,x)", "root 5 of (x)"),
        (r"EQ x\s\up8(2)+y\s\do4(1)", "x²+y₁"),
        (r"EQ \o\ac(○,3)", "③"),
        (r"EQ \o\ac(○,35)", "㉟"),
        (r"EQ \o\ac(○,a)", "ⓐ"),
        (r"EQ \o\ac(○,Nr)", "(Nr)"),
        (r"EQ \o(e,´)", "é"),
        (r"EQ \o\ad(\s\up 9(とうきょう),東京)", "東京(とうきょう)"),
        (r'EQ \* jc2 \* "Font:MS Mincho" \* hps10 \o\ad(\s\up 9(とう),東)', "東(とう)"),
        (r"EQ \b(x)", "(x)"),
        (r"EQ \b\bc\{(x)", "{x}"),
        (r"EQ \b\lc\<\rc\](x)", "<x]"),
        (r"EQ \a\al\co2(1,2,3,4)", "1; 2; 3; 4"),
        (r"EQ \i\su(i=1,5,3i)", "∑_(i=1)^5 3i"),
        (r"EQ \i(0,1,x dx)", "∫_0^1 x dx"),
        (r"EQ \l(a,b)", "a, b"),
        (r"EQ \x\to(Total (net))", "Total (net)"),
        (r"EQ \f(1\,5,2)", "(1,5)/2"),
        (r"EQ \f(1", "1"),
        (r"EQ \d\fo10()", ""),
        ('SYMBOL 252 \\f "Wingdings" \\s 12', "✓"),
        ("SYMBOL 97 \\f Symbol", "α"),
        ("SYMBOL 0x2022 \\u", "•"),
        ("SYMBOL 8226 \\u \\f Arial", "•"),
        ("SYMBOL 169", "©"),
        ("PAGE", None),
        ("EQUIPMENT", None),
        ("", None),
    ],
)
def test_what_a_field_shows(instruction: str, shown: str | None) -> None:
    assert field_text(instruction) == shown


@pytest.mark.parametrize("seed", range(30))
def test_any_instruction_gives_all_of_its_words(seed: int) -> None:
    dice = random.Random(seed)
    pieces = [
        dice.choice((r"\f(", r"\o\ac(", r"\zz(", r"\s\up8(", "(", ")", ",", ";", " ", f"word{at} "))
        for at in range(dice.randrange(1, 60))
    ]
    shown = field_text("EQ " + "".join(pieces)) or ""
    assert all(piece.strip() in shown for piece in pieces if piece.startswith("word"))
