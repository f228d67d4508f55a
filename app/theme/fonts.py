"""Fonts: the interface face and the mono face, at pixel sizes.

`ui_font` and `mono_font` are in design pixels, for widgets that paint with `painter_on`; the
`enlarged_` ones are as large as they stand on the screen, for widgets whose text Qt paints.

macOS uses the system face (San Francisco) and its mono (SF Mono, else Menlo); elsewhere Inter
and JetBrains Mono if they are installed, else what the desktop calls its general and fixed
fonts. Families are looked up once, at the first call, which needs an application.
"""

from __future__ import annotations

import sys
from functools import cache

from PySide6.QtGui import QFont, QFontDatabase, QGuiApplication

from app.theme.zoom import zoom

_MONO_FACES = ("SF Mono", "Menlo") if sys.platform == "darwin" else ("JetBrains Mono", "Noto Sans Mono")


def ui_font(size_px: float, weight: int = 400, *, tabular: bool = False) -> QFont:
    """The interface face. `weight` is 100 to 900; `tabular` gives all digits the same width."""
    return QFont(_ui(size_px, weight, tabular))  # a copy: callers may change theirs


def mono_font(size_px: float) -> QFont:
    """The face of code and token ids, without the ligatures that would join code characters."""
    return QFont(_mono(size_px))


def enlarged_ui_font(size_px: float, weight: int = 400, *, tabular: bool = False) -> QFont:
    """The interface face as large as it is on the screen now."""
    return ui_font(enlarged(size_px, zoom()), weight, tabular=tabular)


def enlarged_mono_font(size_px: float) -> QFont:
    """The face of code as large as it is on the screen now."""
    return mono_font(enlarged(size_px, zoom()))


def enlarged(size_px: float, factor: float) -> float:
    """A size of type as it is drawn at that zoom: the design's own at 1, whole pixels at any other."""
    return size_px if factor == 1.0 else float(round(size_px * factor))


# Fonts are asked for while painting, and making one takes as long as drawing a word.
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
    # Whole glyph advances make text wider than designed and words jump when they are laid out again.
    font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    if float(size_px).is_integer():
        font.setPixelSize(int(size_px))
    else:
        # QFont takes only whole pixels; points take fractions where the platform draws them
        # (Linux rounds to the nearest pixel anyway).
        screen = QGuiApplication.primaryScreen()
        font.setPointSizeF(size_px * 72.0 / (screen.logicalDotsPerInchY() if screen else 96.0))
    return font


@cache
def _ui_family() -> str:
    if sys.platform != "darwin" and "Inter" in QFontDatabase.families():
        return "Inter"
    return QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont).family()


@cache
def _mono_family() -> str:
    installed = set(QFontDatabase.families())
    for face in _MONO_FACES:
        if face in installed:
            return face
    return QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family()
