"""Fonts: the text font and the code font, at pixel sizes.

`ui_font` and `mono_font` take design pixels, for widgets that paint with `painter_on`; the
`enlarged_` ones apply the zoom, for widgets whose text Qt paints.

macOS uses the system font (San Francisco) and its mono font (SF Mono, else Menlo). On every other
platform Inter and JetBrains Mono are loaded from `resources/fonts`, so that layouts do not depend
on the fonts of the machine; those only supply characters that the two lack. Fonts are loaded at the
first call, which needs an application.
"""

from __future__ import annotations

import platform
import sys
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct
from PySide6.QtGui import QFont, QFontDatabase, QGuiApplication

from app.theme.zoom import zoom
from core.system.prepared import prepared

FONTS = Path(__file__).resolve().parents[2] / "resources" / "fonts"
_MAC_MONO = ("SF Mono", "Menlo")


class ShippedFont(Struct, frozen=True):
    """One family of `resources/fonts/fonts.json`. `sha256` maps file names to hashes."""

    family: str
    version: str
    licence: str
    licence_file: str
    source: str
    sha256: dict[str, str]


def shipped_fonts(folder: Path = FONTS) -> list[ShippedFont]:
    """The declared families; empty if the declaration is missing."""
    try:
        return msgspec.json.decode((folder / "fonts.json").read_bytes(), type=prepared(list[ShippedFont]))
    except FileNotFoundError:
        return []


@cache
def unloaded_fonts() -> tuple[str, ...]:
    """Loads the shipped fonts, once, except on macOS. Returns the files that Qt could not load."""
    if platform.system() == "Darwin":  # otherwise mypy finds the code behind sys.platform unreachable
        return ()
    names = [name for font in shipped_fonts() for name in font.sha256] or ["fonts.json"]
    return tuple(name for name in names if QFontDatabase.addApplicationFont(str(FONTS / name)) < 0)


def ui_font(size_px: float, weight: int = 400, *, tabular: bool = False) -> QFont:
    """Returns the text font. `weight` is 100 to 900; `tabular` gives all digits the same width."""
    return QFont(_ui(size_px, weight, tabular))  # a copy, since callers may change theirs


def mono_font(size_px: float) -> QFont:
    return QFont(_mono(size_px))


def enlarged_ui_font(size_px: float, weight: int = 400, *, tabular: bool = False) -> QFont:
    """Returns the text font at the current zoom."""
    return ui_font(enlarged(size_px, zoom()), weight, tabular=tabular)


def enlarged_mono_font(size_px: float) -> QFont:
    """Returns the code font at the current zoom."""
    return mono_font(enlarged(size_px, zoom()))


def enlarged(size_px: float, factor: float) -> float:
    """Returns a font size at that zoom: the design size at 1, whole pixels otherwise."""
    return size_px if factor == 1.0 else float(round(size_px * factor))


# Painting requests fonts all the time, and creating one takes as long as drawing a word.
@cache
def _ui(size_px: float, weight: int, tabular: bool) -> QFont:
    font = _font(_ui_family(), size_px)
    font.setWeight(QFont.Weight(weight))
    if tabular:
        font.setFeature(QFont.Tag("tnum"), 1)
    return font


@cache
def _mono(size_px: float) -> QFont:
    font = _font(_mono_family(), size_px)
    font.setFixedPitch(True)
    font.setFeature(QFont.Tag("calt"), 0)
    font.setFeature(QFont.Tag("liga"), 0)
    return font


def _font(family: str, size_px: float) -> QFont:
    font = QFont(family)
    # Integer glyph advances make text wider than designed and words move at each layout.
    font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    if float(size_px).is_integer():
        font.setPixelSize(int(size_px))
    else:
        # QFont accepts only integer pixels; points allow fractions where the platform draws them
        # (Linux rounds to the nearest pixel).
        screen = QGuiApplication.primaryScreen()
        font.setPointSizeF(size_px * 72.0 / (screen.logicalDotsPerInchY() if screen else 96.0))
    return font


@cache
def _ui_family() -> str:
    return _first_available(
        ("Inter",) if sys.platform != "darwin" else (), QFontDatabase.SystemFont.GeneralFont
    )


@cache
def _mono_family() -> str:
    faces = ("JetBrains Mono",) if sys.platform != "darwin" else _MAC_MONO
    return _first_available(faces, QFontDatabase.SystemFont.FixedFont)


def _first_available(families: tuple[str, ...], otherwise: QFontDatabase.SystemFont) -> str:
    unloaded_fonts()
    available = set(QFontDatabase.families())
    found = next((family for family in families if family in available), "")
    return found or QFontDatabase.systemFont(otherwise).family()
