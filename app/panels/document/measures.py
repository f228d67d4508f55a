"""DocumentMeasures: type, lines and the room around paragraphs of a document's text, at a zoom."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtGui import QFont

from app.panels.document.blocks import TextBlock
from app.theme.fonts import enlarged, ui_font

_FONT_PX = 12.5
_LINE_PX, _HEADING_LINE_PX = 19, 18
# Around a paragraph: inside its tint, and below it.
_TOP_PX, _BOTTOM_PX, _GAP_PX = 5, 6, 7
_HEADING_TOP_PX, _HEADING_GAP_PX = 14, 6


@dataclass(frozen=True)
class DocumentMeasures:
    """All in px; lines and gaps are whole ones."""

    zoom: float = 1.0

    @property
    def line_px(self) -> int:
        """The height of a line that is no heading."""
        return round(_LINE_PX * self.zoom)

    def line_of(self, block: TextBlock) -> int:
        """The height of a block's lines."""
        return round(_HEADING_LINE_PX * self.zoom) if block.heading else self.line_px

    def font(self, heading: bool = False) -> QFont:
        """The face of a block's text."""
        return ui_font(enlarged(_FONT_PX, self.zoom), 600 if heading else 400)

    def pads(self, block: TextBlock) -> tuple[float, float, float]:
        """Above the text, below it inside the tint, and below the tint."""
        if block.heading:
            return (round(_HEADING_TOP_PX * self.zoom), 0.0, self.gap(block))
        above = round(_TOP_PX * self.zoom) if block.opens else 0.0
        below = round(_BOTTOM_PX * self.zoom) if block.closes else 0.0
        return (above, below, self.gap(block))

    def gap(self, block: TextBlock) -> float:
        """Below a block's tint."""
        if block.heading:
            return round(_HEADING_GAP_PX * self.zoom)
        return round(_GAP_PX * self.zoom) if block.closes else 0.0
