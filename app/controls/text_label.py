"""TextLabel: a text in one of the design's sizes and line heights.

A QLabel for assistive technology and mnemonics, painted here because QLabel has no fixed line height and no
colours from the theme. Wraps between words, or elides its single line.
"""

from __future__ import annotations

import math

from PySide6.QtCore import QPointF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPaintEvent, QTextLayout, QTextOption
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from app.controls.shapes import draw_text
from app.theme.fonts import ui_font
from app.theme.measures import set_fixed_width
from app.theme.theme import color
from app.theme.zoom import area_of, design_px, painter_on, px, px_size, width_of


class TextLabel(QLabel):
    """`color` is a palette token, `line_px` the height of a line.

    A wrapped label with a known width (`width_px`) has that width and the height it needs; otherwise its
    height follows from the width that the layout gives it.
    """

    def __init__(
        self,
        text: str = "",
        size_px: float = 11,
        line_px: int = 15,
        color: str = "text2",
        *,
        weight: int = 400,
        tabular: bool = False,
        wrap: bool = False,
        width_px: int = 0,
        align: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignLeft,
        elide: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._elide = elide
        self._size_px, self._weight, self._tabular = size_px, weight, tabular
        self._line_px = line_px
        self._color = color
        self._wrap = wrap
        self._width_px = width_px
        self._align = align
        self.setTextFormat(Qt.TextFormat.PlainText)
        # A Fixed policy would limit a wrapped text to the one line of its size hint.
        follows = self.hasHeightForWidth()
        height = QSizePolicy.Policy.Preferred if follows else QSizePolicy.Policy.Fixed
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, height)
        policy.setHeightForWidth(follows)
        self.setSizePolicy(policy)
        if width_px:
            set_fixed_width(self, width_px)
        self.setText(text)

    def set_color(self, color: str) -> None:
        self._color = color
        self.update()

    def sizeHint(self) -> QSize:
        if self._wrap and self._width_px:
            return QSize(px(self._width_px), self.heightForWidth(px(self._width_px)))
        lines = self.text().split("\n")
        metrics = QFontMetricsF(self._text_font())
        widest = max(metrics.horizontalAdvance(line) for line in lines)
        return px_size(QSize(int(widest + 0.999), self._line_px * len(lines)))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint() if self._wrap and self._width_px else QSize(0, px(self._line_px))

    def hasHeightForWidth(self) -> bool:
        return self._wrap and not self._width_px

    def heightForWidth(self, width: int) -> int:
        if not self._wrap:
            return px(self._line_px)
        lines = sum(layout.lineCount() for layout in self._layouts(design_px(width)))
        return math.ceil(px(float(max(1, lines) * self._line_px)) - 0.01)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        ink = color(self._color if self.isEnabled() else "text3")
        if not self._wrap:
            box = area_of(self)
            draw_text(painter, box, self.text(), self._text_font(), ink, self._align, self._elide)
            return
        painter.setPen(ink)
        top = 0.0
        for layout in self._layouts(width_of(self)):
            layout.draw(painter, QPointF(0, top))
            top += layout.lineCount() * self._line_px

    def _text_font(self) -> QFont:
        return ui_font(self._size_px, self._weight, tabular=self._tabular)

    def _layouts(self, width: float) -> list[QTextLayout]:
        """Returns a laid out paragraph for each line of the text."""
        font = self._text_font()
        metrics = QFontMetricsF(font)
        lead = (self._line_px - metrics.height()) / 2
        option = QTextOption(self._align)
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        layouts = []
        for paragraph in self.text().split("\n"):
            layout = QTextLayout(paragraph, font)
            layout.setTextOption(option)
            layout.beginLayout()
            top = lead
            while (line := layout.createLine()).isValid():
                line.setLineWidth(max(1, width))
                line.setPosition(QPointF(0, top))
                top += self._line_px
            layout.endLayout()
            layouts.append(layout)
        return layouts
