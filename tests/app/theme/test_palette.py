"""The palettes hold complete colours, and the contrasts that the design promises."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError, asdict

import pytest

from app.theme.theme import DARK, LIGHT, Palette


def _luminance(color: str) -> float:
    channels = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_every_token_is_a_full_colour(palette: Palette) -> None:
    for name, value in asdict(palette).items():
        assert re.fullmatch(r"#[0-9A-F]{6}", value), name


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_text_stays_readable(palette: Palette) -> None:
    for surface in (palette.window, palette.sidebar, palette.panel, palette.raised):
        assert _contrast(palette.text, surface) >= 12
        assert _contrast(palette.text2, surface) >= 4.5
    for tint in (palette.accepted_tint, palette.bonus_tint):
        assert _contrast(palette.text, tint) >= 8.7
    assert _contrast(palette.accepted_line, palette.accepted_tint) >= 3.6
    assert _contrast(palette.bonus_line, palette.bonus_tint) >= 3.6


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_the_focus_ring_is_seen_on_every_surface(palette: Palette) -> None:
    surfaces = (palette.window, palette.raised, palette.panel, palette.sidebar, palette.code, palette.fill2)
    for surface in surfaces:
        assert _contrast(palette.focus, surface) >= 3


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_what_can_be_pressed_and_what_warns_is_readable(palette: Palette) -> None:
    for surface in (palette.window, palette.raised, palette.panel, palette.sidebar):
        assert _contrast(palette.accent, surface) >= 4.5
        assert _contrast(palette.danger, surface) >= 4.5
    for fill in (palette.accent_fill, palette.accent_pressed):
        assert _contrast(palette.on_accent, fill) >= 4.5
    for tint in (palette.danger_tint, palette.accent_tint):
        assert _contrast(palette.text, tint) >= 4.5


def test_a_palette_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        LIGHT.text = "#000000"  # type: ignore[misc]
