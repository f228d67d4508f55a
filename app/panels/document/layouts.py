"""DocumentLayouts: the blocks of a document that were looked at last, broken into lines."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF
from PySide6.QtGui import QTextCharFormat, QTextLayout, QTextOption

from app.panels.document.blocks import BlockPart, TextBlock
from app.panels.document.measures import DocumentMeasures
from app.panels.document.paint import units
from app.theme.theme import Theme

# Beyond what any screen shows.
_MOST = 400


class DocumentLayouts:
    """`measures` say how large texts are."""

    def __init__(self, theme: Theme, measures: DocumentMeasures) -> None:
        self._theme = theme
        self._measures = measures
        self._layouts: dict[int, QTextLayout] = {}

    def __len__(self) -> int:
        return len(self._layouts)

    def of(
        self, number: int, block: TextBlock, text: str, parts: Sequence[BlockPart], width: float
    ) -> QTextLayout:
        """Block `number` with its `text` in lines of that width; what is in `parts` is not dim."""
        layout = self._layouts.pop(number, None)
        if layout is None:
            layout = self._lay_out(block, text, parts, width)
        self._layouts[number] = layout  # the newest last
        return layout

    def drop(self, number: int) -> None:
        """Block `number` is not looked at now."""
        self._layouts.pop(number, None)

    def drop_oldest(self) -> None:
        """Keep only what may be looked at again soon."""
        while len(self._layouts) > _MOST:
            self._layouts.pop(next(iter(self._layouts)))

    def clear(self) -> None:
        """Nothing holds any more: other texts, another width or other colours."""
        self._layouts.clear()

    def _lay_out(self, block: TextBlock, text: str, parts: Sequence[BlockPart], width: float) -> QTextLayout:
        # A break inside a block is one of a fixed width.
        layout = QTextLayout(text.replace("\n", " "), self._measures.font(block.heading))
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        layout.setTextOption(option)
        if parts and not block.heading:
            layout.setFormats([_ink(part, self._theme) for part in parts])
        line_px = self._measures.line_of(block)
        layout.beginLayout()
        y = 0.0
        while (line := layout.createLine()).isValid():
            line.setLineWidth(width)
            line.setPosition(QPointF(0, y + (line_px - line.height()) / 2))
            y += line_px
        layout.endLayout()
        return layout


def in_units(parts: Sequence[BlockPart], text: str) -> tuple[BlockPart, ...]:
    """`parts` as Qt counts: what lies beyond 16 bits is two characters to it."""
    if not parts or max(text) <= "\uffff":
        return tuple(parts)
    return tuple(BlockPart(units(text[: p.first]), units(text[: p.last]), p.stretch) for p in parts)


def _ink(part: BlockPart, theme: Theme) -> QTextLayout.FormatRange:
    found = QTextLayout.FormatRange()
    found.start, found.length = part.first, part.last - part.first
    ink = QTextCharFormat()
    ink.setForeground(theme.color("text"))
    found.format = ink
    return found
