"""The instruments of the strip: a title, a figure, and a bar or bars by position.

Each gets all figures of an answer and shows its own: `show_figures` live or final ones, `show_prefill` the
progress of a prefill, `reset` none.

All are 59 high with 16 px left and right and content from 10 px down. Every figure is painted on the same
baseline, with or without a bar. Assistive technology reads the painted text: the title is the
accessible name, the figures are the description. A stale instrument (the worker has exited) has only a dash.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
from core.events import Gauges, PositionStat, PrefillProgress, Stats
from core.prefill.forecast import display

HEIGHT_PX = 59
PADDING_PX = 16
TOP_PX = 10
TITLE_LINE_PX = 14
_FIGURE_FONT_PX, _FIGURE_LINE_PX = 15.0, 20
_UNIT_GAP_PX = 3
_BAR_PX = 4
_LEFT = Qt.AlignmentFlag.AlignLeft


class Instrument(QLabel):
    """One figure and, with a `_share`, a bar. `figure_of` takes the figure from those of an answer.

    Subclasses override `show_figures`, and with another drawing `_paint` and `_described`. A QLabel, so that
    assistive technology knows it as text. Takes no focus.
    """

    def __init__(
        self,
        title: str,
        width_px: int,
        figure_of: Callable[[Gauges | Stats], Figure] = lambda figures: Figure(),
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._figure_of = figure_of
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

    def show_figures(self, figures: Gauges | Stats, now_s: float) -> None:
        """Shows its figure at the time `now_s`."""
        self._show(self._figure_of(figures))

    def show_prefill(self, progress: PrefillProgress, now_s: float) -> None:
        """The prompt is being read, before there are other figures."""

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
        self,
        figure: Figure,
        share: float | None = None,
        words: str = "",
        ink: str = "series_blue",
        *,
        drawing_changed: bool = False,
    ) -> None:
        """Shows `figure` and a bar filled to `share` (0 to 1) in the colour `ink`; `words` describe both,
        if the figure's text does not. Does nothing if all of it is shown, unless another drawing changed.
        """
        shown = self._figure, self._share, self._words, self._ink
        if drawing_changed or (figure, share, words, ink) != shown:
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
    """The time to the first token; before it, which share of that time is over."""

    def show_figures(self, figures: Gauges | Stats, now_s: float) -> None:
        ttft_s = figures.ttft_s  # 0: there was no token
        self._show(Figure(seconds(ttft_s), strings.SECONDS) if ttft_s > 0 else Figure())

    def show_prefill(self, progress: PrefillProgress, now_s: float) -> None:
        shown = display(progress, now_s)
        unit = strings.CHOOSING if progress.phase == "scoring" else strings.READING
        self._show(Figure(shown.percent, unit), shown.fraction, f"{shown.percent}, {shown.words}", "accent")


class IndexInstrument(Instrument):
    """How full the drafter's own index or the tokenizer family's table is, in n-grams.

    `family` is that of the loaded model, whose table its answers ask.
    """

    family = ""

    def show_figures(self, figures: Gauges | Stats, now_s: float) -> None:
        use, occupancy = figures.table, figures.occupancy
        if use is not None:
            words = strings.table_use(self.family, use.hits, use.lookups, use.used_before)
            self._show_used(use.used, use.slots, words)
        elif occupancy.capacity > 0:
            self._show_used(occupancy.used, occupancy.capacity, strings.OWN_INDEX)
        else:  # the drafter has no index
            self.reset()

    def _show_used(self, used: int, most: int, more: str) -> None:
        figure = Figure(short_count(used), strings.NGRAMS_USED.format(most=short_count(most)))
        self._show(figure, used / most, f"{figure.text}. {more}")


class MemoryInstrument(Instrument):
    """The worker's memory and its limit, vermilion over the limit. Belongs to no answer: `reset` keeps it."""

    _limit_bytes = 0

    def show_figures(self, figures: Gauges | Stats, now_s: float) -> None:
        self.show_used(figures.memory_bytes, self._limit_bytes)

    def show_used(self, used_bytes: int, limit_bytes: int) -> None:
        """Shows the memory in use and its limit; 0 if unknown."""
        self._limit_bytes = limit_bytes
        unit = strings.OF_GB.format(limit=gigabytes(limit_bytes)) if limit_bytes > 0 else strings.GB
        figure = Figure(gigabytes(used_bytes), unit) if used_bytes > 0 else Figure()
        share = used_bytes / limit_bytes if limit_bytes > 0 else None
        self._show(figure, share, ink="series_vermilion" if share and share > 1 else "series_blue")

    def reset(self) -> None:
        pass


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

    _positions: tuple[PositionStat, ...] = ()

    def show_figures(self, figures: Gauges | Stats, now_s: float) -> None:
        changed, self._positions = figures.positions != self._positions, figures.positions
        mean = figures.mean_per_step
        shown = f"{mean:.1f}" if mean < 9.95 else f"{mean:.0f}"  # so that it does not reach the bars
        figure = Figure(percent(figures.acceptance), strings.PER_STEP.format(mean=shown))
        self._show(figure if figures.tested > 0 else Figure(), drawing_changed=changed)

    def show_prefill(self, progress: PrefillProgress, now_s: float) -> None:
        self.reset()

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
