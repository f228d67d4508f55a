"""Palette: every colour token of the visual design, for light and for dark.

Values are "#RRGGBB" strings, so that importing this needs no application. Green and amber (`accepted_*`,
`bonus_*`, `series_green`, `series_amber`) are reserved for token classes; blue is for actions, progress,
memory and reading; vermilion and `danger*` for failures. `Theme` selects the palette.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Palette:
    """A complete set of colours; a field's name is the token's name."""

    window: str
    raised: str
    sidebar: str
    panel: str
    hair: str
    hair2: str
    text: str
    text2: str
    text3: str
    dim: str
    fill1: str
    fill2: str
    sel: str
    code: str
    tip: str
    accent: str
    accent_fill: str
    accent_hover: str
    accent_pressed: str
    accent_tint: str
    accent_mid: str
    on_accent: str
    focus: str
    accepted_tint: str
    accepted_line: str
    accepted_hover: str
    bonus_tint: str
    bonus_line: str
    bonus_hover: str
    normal_mark: str
    danger: str
    danger_tint: str
    danger_border: str
    control: str
    control_border: str
    text_area: str
    slider_track: str
    segment_track: str
    segment_on: str
    map_skipped: str
    map_empty: str
    series_blue: str
    series_sky: str
    series_green: str
    series_amber: str
    series_purple: str
    series_grey: str
    series_vermilion: str


LIGHT = Palette(
    window="#FFFFFF",
    raised="#FFFFFF",
    sidebar="#F2F2F4",
    panel="#F8F8F9",
    hair="#E4E4E8",
    hair2="#D2D2D8",
    text="#1C1C1F",
    text2="#62626A",
    text3="#8A8A92",
    dim="#6F6F77",
    fill1="#F1F1F3",
    fill2="#E7E7EB",
    sel="#E0E0E5",
    code="#F6F6F8",
    tip="#FFFFFF",
    accent="#0072B2",
    accent_fill="#0072B2",
    accent_hover="#00639C",
    accent_pressed="#00547F",
    accent_tint="#E6F2FA",
    accent_mid="#8CC0DE",
    on_accent="#FFFFFF",
    focus="#2E86B8",
    accepted_tint="#C7E9E0",
    accepted_line="#00835F",
    accepted_hover="#8FD3BF",
    bonus_tint="#F9EAC7",
    bonus_line="#A06C00",
    bonus_hover="#F2CF80",
    normal_mark="#C9C9D0",
    danger="#B83B00",
    danger_tint="#FDF1EA",
    danger_border="#F1CDB8",
    control="#FFFFFF",
    control_border="#D5D5DB",
    text_area="#FFFFFF",
    slider_track="#DEDEE3",
    segment_track="#E9E9ED",
    segment_on="#FFFFFF",
    map_skipped="#E4E4E9",
    map_empty="#F1F1F4",
    series_blue="#0072B2",
    series_sky="#56B4E9",
    series_green="#009E73",
    series_amber="#E69F00",
    series_purple="#B6568F",
    series_grey="#9A9AA3",
    series_vermilion="#D55E00",
)

DARK = Palette(
    window="#1D1D1F",
    raised="#2A2A2D",
    sidebar="#27272A",
    panel="#232326",
    hair="#353539",
    hair2="#48484D",
    text="#EDEDF0",
    text2="#A6A6AE",
    text3="#7B7B83",
    dim="#85858D",
    fill1="#2A2A2D",
    fill2="#38383C",
    sel="#3C3C41",
    code="#242427",
    tip="#2E2E32",
    accent="#5AB3E6",
    accent_fill="#1A79B2",
    accent_hover="#166FA5",
    accent_pressed="#00547F",
    accent_tint="#1C3444",
    accent_mid="#2F6488",
    on_accent="#FFFFFF",
    focus="#3F8FBF",
    accepted_tint="#17493B",
    accepted_line="#3CCBA0",
    accepted_hover="#1F6B56",
    bonus_tint="#4C3C19",
    bonus_line="#F2B84B",
    bonus_hover="#73591F",
    normal_mark="#55555B",
    danger="#FF9466",
    danger_tint="#36241C",
    danger_border="#5E3A28",
    control="#3A3A3E",
    control_border="#4A4A50",
    text_area="#2C2C30",
    slider_track="#38383C",
    segment_track="#303034",
    segment_on="#5A5A60",
    map_skipped="#38383D",
    map_empty="#28282B",
    series_blue="#4FA9DC",
    series_sky="#8FD0F5",
    series_green="#2FBF95",
    series_amber="#EDB03A",
    series_purple="#D48BB8",
    series_grey="#82828B",
    series_vermilion="#F08447",
)
