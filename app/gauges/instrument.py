"""Instrument: one gauge of the strip, with its title, its figure and an optional drawing.

Convention: 60 high, 16 px padding left and right, contents from 10 px down. What is painted is
also what assistive technology reads: the title is the accessible name, the figures are the
description. When stale (the worker is gone) there is no figure, and what is drawn beside it turns grey.
"""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QWidget

from app.controls.shapes import draw_box, draw_text
from app.gauges import strings
from app.gauges.figures import Figure
from app.theme.fonts import ui_font
from app.theme.theme import Theme
from app.theme.zoom import painter_on, width_of

HEIGHT_PX = 60
PADDING_PX = 16
TOP_PX = 10
_TITLE_LINE_PX = 14
_BIG = (17.0, 23)  # type size and line height of a figure on its own
_SMALL = (13.0, 20)  # and with a bar under it
_UNIT_GAP_PX = 3
_BAR_PX = 4


class Instrument(QLabel):
    """Subclasses fill in `_paint` and `_described`; the strip reads `width_px`.

    A QLabel, so that assistive technology knows it as text. Takes no focus: it is no control.
    """

    def __init__(self, theme: Theme, title: str, width_px: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._title = title
        self._stale = False
        self._known = False
        self.width_px = width_px
        self.refresh()

    @property
    def title(self) -> str:
        """What the instrument shows, in words."""
        return self._title

    @property
    def is_known(self) -> bool:
        """Whether there is a figure and not only a dash."""
        return self._known

    def set_title(self, title: str) -> None:
        """Show another title."""
        self._title = title
        self.refresh()

    @property
    def is_stale(self) -> bool:
        """Whether the figures are of a worker that is gone."""
        return self._stale

    def set_stale(self, stale: bool) -> None:
        """No figures but a dash, or as they were."""
        self._stale = stale
        self.refresh()

    def refresh(self) -> None:
        """Repaint, and tell assistive technology what is painted."""
        described = "" if self._stale else self._described()
        known = self._known = any(letter.isdigit() for letter in described)
        if not known:
            described = strings.NO_FIGURE
        self.setAccessibleName(self._title)
        if described != self.accessibleDescription():
            self.setAccessibleDescription(described)
            self.setToolTip(f"{self._title}: {described}" if known else "")
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        title_box = QRectF(PADDING_PX, TOP_PX, width_of(self) - PADDING_PX, _TITLE_LINE_PX)
        title_font, ink = ui_font(11), self._theme.color("text2")
        draw_text(painter, title_box, self._title, title_font, ink, Qt.AlignmentFlag.AlignLeft)
        self._paint(painter)

    def _paint(self, painter: QPainter) -> None:
        """Paint all but the title."""
        raise NotImplementedError

    def _described(self) -> str:
        """The painted figures as one phrase; not asked for while stale."""
        raise NotImplementedError

    def _paint_figure(self, painter: QPainter, figure: Figure, *, with_bar: bool = False) -> None:
        """The number in semibold and its unit small behind it, on one baseline; a dash when stale."""
        figure = Figure() if self._stale else figure
        size_px, line_px = _SMALL if with_bar else _BIG
        font = ui_font(size_px, 600, tabular=True)
        metrics = QFontMetricsF(font)
        top = TOP_PX + _TITLE_LINE_PX + (line_px - metrics.height()) / 2
        baseline = QPointF(PADDING_PX, top + metrics.ascent())
        painter.setFont(font)
        painter.setPen(self._theme.color("text" if figure.is_known else "text2"))
        painter.drawText(baseline, figure.value)
        if figure.unit:
            x = PADDING_PX + metrics.horizontalAdvance(figure.value) + _UNIT_GAP_PX
            painter.setFont(ui_font(11, tabular=True))
            painter.setPen(self._theme.color("text2"))
            painter.drawText(QPointF(x, baseline.y()), figure.unit)

    def _figure_px(self, figure: Figure) -> float:
        """Width of a figure on its own, with its unit, in design pixels."""
        figure = Figure() if self._stale else figure
        value = QFontMetricsF(ui_font(_BIG[0], 600, tabular=True)).horizontalAdvance(figure.value)
        unit = QFontMetricsF(ui_font(11, tabular=True)).horizontalAdvance(figure.unit)
        return value + (_UNIT_GAP_PX + unit if figure.unit else 0)

    def _paint_bar(self, painter: QPainter, share: float, name: str = "series_blue") -> None:
        """A 4 px bar under a small figure, filled to `share` (0 to 1); empty when stale."""
        width = self.width_px - 2 * PADDING_PX
        box = QRectF(PADDING_PX, TOP_PX + _TITLE_LINE_PX + _SMALL[1], width, _BAR_PX)
        draw_box(painter, box, _BAR_PX / 2, self._theme.color("fill2"))
        filled = 0.0 if self._stale else min(1.0, max(0.0, share)) * width
        if filled > 0:
            # A first sliver is at least as wide as the bar's ends are round.
            box.setWidth(max(filled, _BAR_PX / 2))
            draw_box(painter, box, min(_BAR_PX / 2, box.width() / 2), self._theme.color(name))
