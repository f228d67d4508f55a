"""Formulas, and the replies of the process that typesets them (`core.typesetting.child`)."""

from __future__ import annotations

from msgspec import Struct

LONGEST = 4_000  # characters of a formula
EM = 1_000  # coordinates are integers, a thousandth of the type size


class Formula(Struct, frozen=True):
    """A formula without its marks. `display`: in a separate paragraph."""

    latex: str
    display: bool


class Letters(Struct, frozen=True, array_like=True):
    """Characters that the formula's font does not have, from the left end of their baseline on."""

    text: str
    x: int
    y: int
    size: int


class Typeset(Struct, frozen=True):
    """A typeset formula in thousandths of the type size; y goes down from the baseline.

    `fill` is SVG path data to fill, `strokes` have a line width each. `mathml` is the same formula for other
    programs.
    """

    width: int
    ascent: int
    descent: int
    fill: str
    strokes: tuple[tuple[str, int], ...]
    letters: tuple[Letters, ...]
    mathml: str
