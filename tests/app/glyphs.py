"""Where glyphs are painted: their ink, line by line, to find clipped and overlapping ones."""

from __future__ import annotations

from PySide6.QtCore import QRectF

from app.richtext.piece_box import PieceBox
from app.richtext.piece_layout import VisualLine
from app.richtext.text_canvas import TextCanvas

_TOLERANCE_PX = 1.5  # of hinting and antialiasing


def ink_of(line: VisualLine) -> QRectF:
    """The ink of `line` from its text's left top, whatever fonts it is in."""
    ink = QRectF()
    for run in line.line.glyphRuns():
        font = run.rawFont()
        for glyph, position in zip(run.glyphIndexes(), run.positions()):
            ink = ink.united(font.boundingRect(glyph).translated(position))
    return ink.translated(0, line.chunk.top)


def misplaced(canvas: TextCanvas, width: float) -> list[str]:
    """The lines with ink outside of a canvas whose text is `width` wide, or in the ink of another line."""
    found: list[str] = []
    for box in canvas.boxes:
        inks = [(line, ink_of(line)) for line in box.layout.lines]
        for line, ink in inks:
            if not ink.isEmpty() and not _is_inside(box, ink, width):
                found.append(f"outside: {_text(line)}")
        for number, (line, ink) in enumerate(inks):
            for other, area in inks[number + 1 :]:
                common = ink.intersected(area)
                if common.height() > 2 * _TOLERANCE_PX and common.width() > 2 * _TOLERANCE_PX:
                    found.append(f"overlap: {_text(line)} | {_text(other)}")
    return found


def _is_inside(box: PieceBox, ink: QRectF, width: float) -> bool:
    left, right = box.text_left + ink.left(), box.text_left + ink.right()
    if box.most_scroll:  # what is not seen can be scrolled to
        right -= box.most_scroll - box.scroll
        left += box.scroll
    above, below = box.text_top + ink.top(), box.text_top + ink.bottom()
    sideways = left >= -_TOLERANCE_PX and right <= width + _TOLERANCE_PX
    # The first and the last line of a text may reach a little out of their grid.
    return sideways and above >= box.top - 4 and below <= box.bottom + 4


def _text(line: VisualLine) -> str:
    return line.chunk.text[line.start - line.chunk.start : line.end - line.chunk.start]
