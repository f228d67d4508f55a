"""TextStyle: the face, the line height and the tint's measures of each kind of text.

All measures are logical pixels. Lines are on a fixed grid: the style's own face determines the
baseline, so that an emoji or a Chinese character from another face does not move it. A `zoom`
multiplies all of a style's measures; lines and glyphs keep whole pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from PySide6.QtGui import QFont, QFontMetricsF

from app.richtext.markdown.piece import Piece
from app.theme.fonts import enlarged, mono_font, ui_font

# Inter is set a little tighter than it is drawn; the macOS system face brings its own tracking.
_TRACKING_EM = -0.006
_TABLE = (14, 21)
_THOUGHT = (13, 20)
_HEADINGS = {1: (20, 28), 2: (17, 27), 3: (15, 25)}


@dataclass(frozen=True)
class TintMeasures:
    """Distances from the baseline: `top` up to the tint's upper edge, `rule` down to the underline."""

    top: float
    height: float
    rule: float
    radius: float
    overhang: float


@dataclass(frozen=True)
class TextStyle:
    """`baseline_px` is from the top of a line."""

    font: QFont
    size_px: float
    line_px: int
    baseline_px: float
    tint: TintMeasures


@cache
def answer_style(size_px: float = 15, line_px: int = 25, weight: int = 400, zoom: float = 1.0) -> TextStyle:
    """Running text. The tint's measures are those of 15 px, scaled."""
    size_px, line_px = enlarged(size_px, zoom), round(line_px * zoom)
    font = ui_font(size_px, weight)
    track(font, size_px)
    scale = size_px / 15
    return _style(font, size_px, line_px, TintMeasures(16 * scale, 21 * scale, 4.75 * scale, 4, 2))


@cache
def code_style(zoom: float = 1.0) -> TextStyle:
    """Code: the tint is as high as the glyphs and hangs over nowhere."""
    size_px = enlarged(12.5, zoom)
    font = mono_font(size_px)
    metrics = QFontMetricsF(font)
    ascent, descent = round(metrics.ascent()), round(metrics.descent())
    return _style(
        font, size_px, round(21 * zoom), TintMeasures(ascent, ascent + descent, descent - 0.75, 3, 0)
    )


def style_of(piece: Piece, zoom: float = 1.0) -> TextStyle:
    """The style of an answer's piece."""
    if piece.kind == "code":
        return code_style(zoom)
    if piece.kind == "table":
        return answer_style(*(_THOUGHT if piece.thought >= 0 else _TABLE), zoom=zoom)
    if piece.thought >= 0:
        return answer_style(*_THOUGHT, weight=600 if piece.kind == "heading" else 400, zoom=zoom)
    if piece.kind == "heading":
        return answer_style(*_HEADINGS.get(piece.level, _HEADINGS[3]), weight=600, zoom=zoom)
    return answer_style(zoom=zoom)


def note_style(size_px: float = 12, line_px: int = 17) -> TextStyle:
    """Small print; it holds no tokens."""
    return _style(ui_font(size_px), size_px, line_px, TintMeasures(0, 0, 0, 0, 0))


def track(font: QFont, size_px: float) -> None:
    """Set `font` as tight as the design has it."""
    if font.family() == "Inter":
        font.setLetterSpacing(QFont.SpacingType.AbsoluteSpacing, _TRACKING_EM * size_px)


def _style(font: QFont, size_px: float, line_px: int, tint: TintMeasures) -> TextStyle:
    metrics = QFontMetricsF(font)
    # Whole pixels, so that tints and underlines have sharp edges on every screen.
    baseline = round((line_px - metrics.ascent() - metrics.descent()) / 2 + metrics.ascent())
    return TextStyle(font, size_px, line_px, baseline, tint)
