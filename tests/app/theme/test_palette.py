"""The palettes hold complete colours, and the contrasts that the design promises."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError, asdict

import pytest
from PySide6.QtGui import QColor

from app.theme.theme import DARK, LIGHT, Palette
from tests.app.contrast import ratio


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_every_token_is_a_full_colour(palette: Palette) -> None:
    for name, value in asdict(palette).items():
        assert re.fullmatch(r"#[0-9A-F]{6}", value), name


SURFACES = ("window", "sidebar", "panel", "raised")


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("inks", "papers", "least"),
    [
        ("text", SURFACES, 12),
        ("text2 accent danger", SURFACES, 4.5),
        ("text", ("accepted_tint",), 8.7),
        ("text", ("accepted_hover", "bonus_hover"), 4.5),
        ("bonus_line", ("window", "code", "fill1"), 3),
        ("focus", (*SURFACES, "code", "fill2"), 3),
        ("on_accent", ("accent_fill", "accent_pressed"), 4.5),
        ("text", ("danger_tint", "accent_tint"), 4.5),
    ],
)
def test_contrasts(palette: Palette, inks: str, papers: tuple[str, ...], least: float) -> None:
    for ink in inks.split():
        for paper in papers:
            assert ratio(QColor(getattr(palette, ink)), QColor(getattr(palette, paper))) >= least, (
                ink,
                paper,
            )


def test_a_palette_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        LIGHT.text = "#000000"
