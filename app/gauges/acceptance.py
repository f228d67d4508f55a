"""AcceptanceInstrument: the share of tested drafts that were accepted, over all and by place."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

from app.gauges import strings
from app.gauges.figures import Figure, percent
from app.gauges.instrument import PADDING_PX, TOP_PX, Instrument
from app.gauges.position_bars import paint_bars, shares
from app.theme.theme import Theme
from core.events import PositionStat

_WIDTH_PX = 226
_TEXT_PX = 130
_BARS_BOX = QRectF(PADDING_PX + _TEXT_PX, TOP_PX + 3.5, 64, 30)


class AcceptanceInstrument(Instrument):
    """As wide without bars as with them: what stands beside it never moves."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        self._figure = Figure()
        self._positions: tuple[PositionStat, ...] = ()
        super().__init__(theme, strings.DRAFTS_ACCEPTED, _WIDTH_PX, parent)

    def show_drafts(
        self, tested: int, acceptance: float, mean_per_step: float, positions: Sequence[PositionStat]
    ) -> None:
        """`acceptance` is a share, 0 to 1. Without a tested draft there is no figure."""
        if tested > 0:
            self._figure = Figure(percent(acceptance), strings.PER_STEP.format(mean=f"{mean_per_step:.1f}"))
        else:
            self._figure = Figure()
        self._positions = tuple(positions)
        self.refresh()

    def reset(self) -> None:
        """No figure, no bars."""
        self.show_drafts(0, 0.0, 0.0, ())

    def _paint(self, painter: QPainter) -> None:
        self._paint_figure(painter, self._figure)
        ink = self._theme.color("normal_mark" if self.is_stale else "series_green")
        paint_bars(painter, _BARS_BOX, self._positions, ink, self._theme.color("hair2"))

    def _described(self) -> str:
        heights = [percent(share) for share in shares(self._positions)]
        if not heights:
            return self._figure.text
        value, mean = self._figure.value, self._figure.unit
        return f"{value}, {mean}, {strings.POSITIONS.format(shares=', '.join(heights))}"
