"""The instruments of the strip: a title, a figure, and a bar or bars by position.

All are 59 high with 16 px left and right and content from 10 px down. Every figure is painted on the same
baseline, with or without a bar. Assistive technology reads the painted text: the title is the
accessible name, the figures are the description. A stale instrument (the worker has exited) has only a dash.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QWidget

from app.controls.shapes import draw_box, draw_text
from app.gauges import strings
from app.gauges.figures import Figure, gigabytes, percent, seconds, short_count
from app.theme.fonts import ui_font
from app.theme.measures import set_fixed_size
from app.theme.theme import color
from app.theme.zoom import painter_on, width_of
from core.events import Occupancy, PositionStat, TableUse
from core.prefill.forecast import PrefillDisplay

HEIGHT_PX = 59
PADDING_PX = 16
TOP_PX = 10
TITLE_LINE_PX = 14
_FIGURE_FONT_PX, _FIGURE_LINE_PX = 15.0, 20
_UNIT_GAP_PX = 3
_BAR_PX = 4
_LEFT = Qt.AlignmentFlag.AlignLeft


class Instrument(QLabel):
    """One figure and, with a `_share`, a bar. Subclasses with another drawing override `_paint` and
    `_described`.

    A QLabel, so that assistive technology knows it as text. Takes no focus.
    """

    def __init__(self, title: str, width_px: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._figure = Figure()
        self._share: float | None = None
        self._words = ""
        self._ink = ""
        self.title = title
        self.is_stale = False
        set_fixed_size(self, QSize(width_px, HEIGHT_PX))
        self.refresh()

    def set_stale(self, stale: bool) -> None:
        """Replaces the figures by a dash, or restores them."""
        self.is_stale = stale
        self.refresh()

    def reset(self) -> None:
        self._show(Figure())

    def refresh(self) -> None:
        """Repaints, and updates the texts for assistive technology."""
        known = self._figure.is_known and not self.is_stale
        described = self._described() if known else strings.NO_FIGURE
        self.setAccessibleName(self.title)
        if described != self.accessibleDescription():
            self.setAccessibleDescription(described)
            self.setToolTip(f"{self.title}: {described}" if known else "")
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        title_box = QRectF(PADDING_PX, TOP_PX, width_of(self) - PADDING_PX, TITLE_LINE_PX)
        draw_text(painter, title_box, self.title, ui_font(11), color("text2"), _LEFT)
        figure = Figure() if self.is_stale else self._figure
        self._paint_figure(painter, figure)
        if figure.is_known:
            self._paint(painter)

    def _show(
        self, figure: Figure, share: float | None = None, words: str = "", ink: str = "series_blue"
    ) -> None:
        """Shows `figure` and a bar filled to `share` (0 to 1) in the colour `ink`; `words` describe both,
        if the figure's text does not.
        """
        self._figure, self._share, self._words, self._ink = figure, share, words, ink
        self.refresh()

    def _paint(self, painter: QPainter) -> None:
        """Paints what belongs to a known figure."""
        if self._share is None:
            return
        width = width_of(self) - 2 * PADDING_PX
        box = QRectF(PADDING_PX, TOP_PX + TITLE_LINE_PX + _FIGURE_LINE_PX, width, _BAR_PX)
        draw_box(painter, box, _BAR_PX / 2, color("fill2"))
        if self._share > 0:
            # At least as wide as the radius of the bar's ends.
            box.setWidth(max(min(1.0, self._share) * width, _BAR_PX / 2))
            draw_box(painter, box, min(_BAR_PX / 2, box.width() / 2), color(self._ink))

    def _described(self) -> str:
        """The painted figures as one phrase."""
        return self._words or self._figure.text

    def _paint_figure(self, painter: QPainter, figure: Figure) -> None:
        """Paints the number in semibold and its small unit on one baseline."""
        font = ui_font(_FIGURE_FONT_PX, 600, tabular=True)
        metrics = QFontMetricsF(font)
        top = TOP_PX + TITLE_LINE_PX + (_FIGURE_LINE_PX - metrics.height()) / 2
        baseline = QPointF(PADDING_PX, round(top + metrics.ascent()))
        painter.setFont(font)
        painter.setPen(color("text" if figure.is_known else "text2"))
        painter.drawText(baseline, figure.value)
        if figure.unit:
            x = PADDING_PX + metrics.horizontalAdvance(figure.value) + _UNIT_GAP_PX
            painter.setFont(ui_font(11, tabular=True))
            painter.setPen(color("text2"))
            painter.drawText(QPointF(x, baseline.y()), figure.unit)

    def _figure_px(self) -> float:
        """The width of the figure with its unit, in design pixels."""
        value = QFontMetricsF(ui_font(_FIGURE_FONT_PX, 600, tabular=True)).horizontalAdvance(
            self._figure.value
        )
        unit = QFontMetricsF(ui_font(11, tabular=True)).horizontalAdvance(self._figure.unit)
        return value + (_UNIT_GAP_PX + unit if self._figure.unit else 0)


class FirstTokenInstrument(Instrument):
    """The time to the first token; before it, the progress of the prefill."""

    def show_time(self, ttft_s: float) -> None:
        """Shows the seconds to the first token; at most 0 means that there was none."""
        self._show(Figure(seconds(ttft_s), strings.SECONDS) if ttft_s > 0 else Figure())

    def show_prefill(self, shown: PrefillDisplay, unit: str) -> None:
        """Shows the share of the time that is over, and in words the phase and how long it takes."""
        words = f"{shown.percent}, {shown.words}"
        self._show(Figure(shown.percent, unit), shown.fraction, words, "accent")


class IndexInstrument(Instrument):
    """How full the drafter's own index or the tokenizer family's table is, in n-grams."""

    def show_occupancy(self, occupancy: Occupancy) -> None:
        """Shows the n-grams used and their limit; a drafter without an index (`capacity` 0) has no figure."""
        if occupancy.capacity > 0:
            self._show_used(occupancy.used, occupancy.capacity, strings.OWN_INDEX)
        else:
            self.reset()

    def show_table(self, use: TableUse, family: str) -> None:
        """Shows the same of a shared table, and describes its hits."""
        self._show_used(
            use.used, use.slots, strings.table_use(family, use.hits, use.lookups, use.used_before)
        )

    def _show_used(self, used: int, most: int, more: str) -> None:
        figure = Figure(short_count(used), strings.NGRAMS_USED.format(most=short_count(most)))
        self._show(figure, used / most, f"{figure.text}. {more}")


class MemoryInstrument(Instrument):
    """The worker's memory and its limit, vermilion over the limit."""

    def __init__(self, title: str, width_px: int, parent: QWidget | None = None) -> None:
        self._used_bytes = self._limit_bytes = 0
        super().__init__(title, width_px, parent)

    def show_used(self, used_bytes: int, limit_bytes: int | None = None) -> None:
        """Shows the memory in use and, if given, its limit; 0 if unknown."""
        self._used_bytes = used_bytes
        self._limit_bytes = limit = self._limit_bytes if limit_bytes is None else limit_bytes
        unit = strings.OF_GB.format(limit=gigabytes(limit)) if limit > 0 else strings.GB
        figure = Figure(gigabytes(used_bytes), unit) if used_bytes > 0 else Figure()
        share = used_bytes / limit if limit > 0 else None
        self._show(figure, share, ink="series_vermilion" if share and share > 1 else "series_blue")


MAX_BARS = 16
_POSITION_PX, _POSITION_GAP_PX = 8.0, 3.0  # width of a bar, and its distance to the next, if they fit
_POSITIONS_PX = QSize(64, 30)


def shares(positions: Sequence[PositionStat]) -> list[float]:
    """Returns accepted ÷ tested of the first draft positions that were tested."""
    tested = [position for position in positions[:MAX_BARS] if position.tested > 0]
    return [position.accepted / position.tested for position in tested]


def paint_bars(
    painter: QPainter, box: QRectF, positions: Sequence[PositionStat], ink: QColor, floor_ink: QColor
) -> None:
    """Paints a bar from the bottom of `box` for each position; one without accepted tokens is a 1 px line."""
    heights = shares(positions)
    if not heights:
        return
    pitch = min(_POSITION_PX + _POSITION_GAP_PX, (box.width() + _POSITION_GAP_PX) / len(heights))
    gap = min(_POSITION_GAP_PX, pitch / 3)
    for index, share in enumerate(heights):
        left = box.left() + index * pitch
        height = share * box.height()
        if height < 1:
            painter.fillRect(QRectF(left, box.bottom() - 1, pitch - gap, 1), floor_ink)
        else:
            bar = QRectF(left, box.bottom() - height, pitch - gap, height)
            draw_box(painter, bar, min(1.5, height / 2), ink)


class AcceptanceInstrument(Instrument):
    """The accepted share of all drafted tokens, and of those at each position."""

    def __init__(self, title: str, width_px: int, parent: QWidget | None = None) -> None:
        self._positions: tuple[PositionStat, ...] = ()
        super().__init__(title, width_px, parent)

    def show_drafts(
        self, tested: int, acceptance: float, mean_per_step: float, positions: Sequence[PositionStat]
    ) -> None:
        """`acceptance` is a share, 0 to 1. Without a tested token, no figure."""
        self._positions = tuple(positions)
        figure = Figure(percent(acceptance), strings.PER_STEP.format(mean=f"{mean_per_step:.1f}"))
        self._show(figure if tested > 0 else Figure())

    def reset(self) -> None:
        self.show_drafts(0, 0.0, 0.0, ())

    def _paint(self, painter: QPainter) -> None:
        left = width_of(self) - PADDING_PX - _POSITIONS_PX.width()
        box = QRectF(left, TOP_PX + 3.5, _POSITIONS_PX.width(), _POSITIONS_PX.height())
        paint_bars(painter, box, self._positions, color("series_green"), color("hair2"))

    def _described(self) -> str:
        heights = [percent(share) for share in shares(self._positions)]
        if not heights:
            return self._figure.text
        by_position = strings.POSITIONS.format(shares=", ".join(heights))
        return f"{self._figure.value}, {self._figure.unit}, {by_position}"
