"""The Lab's charts: speeds, curves over places and turns, and keep shares."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.controls.plot import LABEL_PX, Plot, above, spread
from app.controls.shapes import blend, draw_box, draw_text
from app.features.lab import strings
from app.gauges.figures import percent, seconds, speed
from app.session.lab import Curve, Keep, Speed, keeps, plain_speed, speeds
from app.theme.fonts import ui_font
from app.theme.theme import Theme
from app.theme.zoom import height_of, painter_on, px_size, width_of
from core.events.sweep import SweepResults

HEAD_PX = 46
AXIS_PX = 40
# Colour and dashes by index; green and amber are token classes, vermilion is failure.
STYLES: tuple[tuple[str, tuple[float, ...]], ...] = (
    ("series_blue", ()),
    ("text", (3.0, 1.5)),
    ("series_sky", (5.0, 2.5)),
    ("series_purple", (5.0, 2.0, 1.0, 2.0)),
    ("series_grey", (1.5, 1.5)),
    ("text2", (8.0, 2.0)),
)
PLAIN_STYLE: tuple[str, tuple[float, ...]] = ("series_grey", (1.5, 1.5))


class Chart(QWidget):
    """Base of the charts. Subclasses define `_paint_chart(painter, box)`, `_has_data` and `_described()`."""

    def __init__(self, theme: Theme, title: str, says: str, foot_px: int = 40, right_px: int = 10) -> None:
        super().__init__()
        self._theme = theme
        self._title = title
        self._says = says
        self._foot_px = foot_px
        self._right_px = right_px
        self.setAccessibleName(title)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    @property
    def has_data(self) -> bool:
        return False

    def refresh(self) -> None:
        """Updates the chart after a change of its data."""
        self.setAccessibleDescription(self._described() if self.has_data else strings.EMPTY)
        self.update()

    def sizeHint(self) -> QSize:
        return px_size(QSize(320, 300))

    def minimumSizeHint(self) -> QSize:
        return px_size(QSize(240, 240))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        left = Qt.AlignmentFlag.AlignLeft
        color = self._theme.color
        width = width_of(self)
        draw_text(painter, QRectF(0, 0, width, 18), self._title, ui_font(13.5, 600), color("text"), left)
        draw_text(painter, QRectF(0, 19, width, 15), self._says, ui_font(11), color("text2"), left)
        box = QRectF(
            AXIS_PX,
            HEAD_PX + 8,
            max(10, width - AXIS_PX - self._right_px),
            max(10, height_of(self) - HEAD_PX - 8 - self._foot_px),
        )
        if self.has_data:
            self._paint_chart(painter, box)
        else:
            draw_text(painter, box, strings.EMPTY, ui_font(12), color("text2"))

    # ---- for subclasses

    def _paint_chart(self, painter: QPainter, box: QRectF) -> None:
        raise NotImplementedError

    def _described(self) -> str:
        raise NotImplementedError


_FOOT_PX = 44
_GAP_PX = 30.0
_UPPER = 0.56  # the share of the height for the bars
_BAR_PX = 22.0
_DOT_PX = 2.8


class KeepChart(Chart):
    """Bars above a line; the share that answers use now is marked."""

    def __init__(self, theme: Theme) -> None:
        self._keeps: list[Keep] = []
        self._chosen = 0.0
        super().__init__(theme, strings.KEEPS, strings.KEEPS_SAYS, _FOOT_PX)

    def show_results(self, results: SweepResults | None) -> None:
        self._keeps = keeps(results) if results else []
        self.refresh()

    def show_chosen(self, keep_pct: float) -> None:
        """Marks a share."""
        if keep_pct != self._chosen:
            self._chosen = keep_pct
            self.update()

    @property
    def has_data(self) -> bool:
        return bool(self._keeps)

    def _described(self) -> str:
        return "; ".join(strings.keep_described(k.keep_pct, k.ttft_s, k.agreement) for k in self._keeps)

    def _paint_chart(self, painter: QPainter, box: QRectF) -> None:
        color = self._theme.color
        pitch = box.width() / len(self._keeps)
        upper = QRectF(box.left(), box.top(), box.width(), box.height() * _UPPER)
        lower_top = upper.bottom() + _GAP_PX
        lower = QRectF(box.left(), lower_top, box.width(), max(10.0, box.bottom() - lower_top))
        for number, keep in enumerate(self._keeps):
            if keep.keep_pct == self._chosen:
                column = QRectF(box.left() + pitch * number + 2, box.top() - 8, pitch - 4, box.height() + 28)
                draw_box(painter, column, 6, color("accent_tint"))
        self._paint_bars(Plot(painter, self._theme, upper), pitch)
        self._paint_agreement(Plot(painter, self._theme, lower), pitch)
        plot = Plot(painter, self._theme, box)
        for number, keep in enumerate(self._keeps):
            label = strings.ALL if keep.keep_pct >= 100 else f"{keep.keep_pct:g}%"
            x = box.left() + pitch * (number + 0.5)
            plot.under(x, box.bottom() + 5, label, keep.keep_pct == self._chosen)
        place = QRectF(box.left(), box.bottom() + 24, box.width(), 16)
        draw_text(painter, place, strings.SHARE, ui_font(11), color("text2"), Qt.AlignmentFlag.AlignLeft)

    def _paint_bars(self, plot: Plot, pitch: float) -> None:
        painter, box, color = plot.painter, plot.box, self._theme.color
        most = max(keep.ttft_s for keep in self._keeps)
        if most <= 0:
            return
        top = above(most)
        plot.scale(("0", f"{top / 2:g} s", f"{top:g} s"))
        for number, keep in enumerate(self._keeps):
            height = keep.ttft_s / top * box.height()
            x = box.left() + pitch * (number + 0.5)
            bar = QRectF(x - _BAR_PX / 2, box.bottom() - height, _BAR_PX, height)
            strong = keep.keep_pct == self._chosen
            ink = color("series_blue" if strong else "accent_mid")
            # A drafter that did not run as requested is hollow: colour alone is not enough.
            draw_box(painter, bar, 2, ink if keep.as_asked else None, None if keep.as_asked else ink)
            font = ui_font(LABEL_PX, 600 if strong else 400, tabular=True)
            place = QRectF(x - 30, bar.top() - 16, 60, 15)
            draw_text(painter, place, f"{seconds(keep.ttft_s)} s", font, color("text" if strong else "text2"))

    def _paint_agreement(self, plot: Plot, pitch: float) -> None:
        known = [
            (number, keep.agreement) for number, keep in enumerate(self._keeps) if keep.agreement is not None
        ]
        if not known:
            return
        floor = min(0.9, math.floor(10 * min(value for _, value in known)) / 10)
        plot.scale([percent(floor + part * (1 - floor)) for part in (0.0, 0.5, 1.0)])
        points = [
            plot.at(pitch * (number + 0.5) / plot.box.width(), (value - floor) / (1 - floor))
            for number, value in known
        ]
        ink = self._theme.color("series_purple")
        plot.line(points, ink)
        for point in points:
            plot.dot(point, _DOT_PX, ink, self._theme.color("window"))


_LINE_FOOT_PX, _RIGHT_PX = 44, 118
_SAMPLE_PX = 16
_APART_PX = 15.0
_TICK_PX = 20.0


class LineChart(Chart):
    """`top` None follows the values; `figure` formats one."""

    def __init__(
        self,
        theme: Theme,
        title: str,
        says: str,
        across: str,
        figure: Callable[[float], str],
        top: float | None,
    ) -> None:
        self._curves: Sequence[Curve] = ()
        self._across = across
        self._figure = figure
        self._fixed_top = top
        super().__init__(theme, title, says, _LINE_FOOT_PX, _RIGHT_PX)

    def show_curves(self, curves: Sequence[Curve]) -> None:
        """Shows curves; styles follow the order of the drafters."""
        self._curves = [curve for curve in curves if curve.points]
        self.refresh()

    @property
    def has_data(self) -> bool:
        return bool(self._curves)

    def _described(self) -> str:
        return "; ".join(
            strings.curve_described(_name(curve), [f"{x} {self._figure(y)}" for x, y in curve.points])
            for curve in self._curves
        )

    def _paint_chart(self, painter: QPainter, box: QRectF) -> None:
        last = max(x for curve in self._curves for x, _ in curve.points)
        plot = Plot(painter, self._theme, box)
        top = self._fixed_top or above(max(y for curve in self._curves for _, y in curve.points))
        figure = self._figure if self._fixed_top else "{:g}".format
        plot.scale([figure(top * part) for part in (0.0, 0.5, 1.0)])
        every = max(1, math.ceil(last * _TICK_PX / box.width()))
        for x in range(1, last + 1, every):
            plot.under(self._x(box, x, last), box.bottom() + 6, str(x))
        place = QRectF(box.left(), box.bottom() + 23, box.width(), 16)
        grey = self._theme.color("text2")
        draw_text(painter, place, self._across, ui_font(11), grey, Qt.AlignmentFlag.AlignLeft)
        ends = []
        for number, curve in enumerate(self._curves):
            points = [
                QPointF(self._x(box, x, last), box.bottom() - y / top * box.height()) for x, y in curve.points
            ]
            ink, dashes = self._style(number, curve)
            plot.line(points, ink, dashes=dashes)
            plot.dot(points[-1], _DOT_PX, ink, self._theme.color("window"))
            ends.append(points[-1])
        self._paint_names(plot, ends)

    def _paint_names(self, plot: Plot, ends: list[QPointF]) -> None:
        """Paints the names at the ends of the curves, one below another where they end close together."""
        box = plot.box
        tops = spread([end.y() for end in ends], _APART_PX, box.top(), box.bottom())
        best = max(self._curves, key=lambda curve: curve.points[-1][1])
        for number, (curve, y) in enumerate(zip(self._curves, tops)):
            strong = curve is best and not curve.plain
            font = ui_font(LABEL_PX + 0.5, 600 if strong else 400)
            ink = self._theme.color("accent" if strong else "text2")
            line_ink, dashes = self._style(number, curve)
            left = box.right() + 8
            plot.line((QPointF(left, y), QPointF(left + _SAMPLE_PX, y)), line_ink, dashes=dashes)
            place = QRectF(box.right() + 13 + _SAMPLE_PX, y - 8, _RIGHT_PX - 13 - _SAMPLE_PX, 16)
            draw_text(plot.painter, place, _name(curve), font, ink, Qt.AlignmentFlag.AlignLeft)

    def _style(self, number: int, curve: Curve) -> tuple[QColor, tuple[float, ...]]:
        name, dashes = PLAIN_STYLE if curve.plain else STYLES[number % len(STYLES)]
        return self._theme.color(name), dashes

    def _x(self, box: QRectF, x: int, last: int) -> float:
        return box.left() + 6 + (box.width() - 12) * ((x - 1) / (last - 1) if last > 1 else 0.5)


def places_chart(theme: Theme) -> LineChart:
    """Returns the chart of accepted shares by position in the draft."""
    return LineChart(theme, strings.PLACES, strings.PLACES_SAYS, strings.PLACE, percent, 1.0)


def turns_chart(theme: Theme) -> LineChart:
    """Returns the chart of speeds by turn of a conversation."""
    return LineChart(theme, strings.TURNS, strings.TURNS_SAYS, strings.TURN, speed, None)


def _name(curve: Curve) -> str:
    return strings.PLAIN if curve.plain else strings.drafter_of(curve.name)


_SPEED_BAR_PX, _BAR_GAP_PX = 26.0, 4.0
_GROUP_GAP_PX = 24.0
_SPEED_FOOT_PX, _SPEED_RIGHT_PX = 30, 72
_WORDS_PX = 92  # width of a drafter's name
_LEGEND_PX = 36  # below the two lines of the header


class SpeedChart(Chart):
    """Bars of speeds; classes are shades of blue, from light to dark, named above."""

    def __init__(self, theme: Theme) -> None:
        self._speeds: list[Speed] = []
        self._plain = 0.0
        super().__init__(theme, strings.SPEED, strings.SPEED_SAYS, _SPEED_FOOT_PX, _SPEED_RIGHT_PX)

    def show_results(self, results: SweepResults | None) -> None:
        self._speeds = speeds(results) if results else []
        self._plain = plain_speed(results) if results else 0.0
        self.refresh()

    @property
    def has_data(self) -> bool:
        return bool(self._speeds)

    def _described(self) -> str:
        return strings.speeds_described([(s.drafter, s.kind, s.ratio, s.least, s.most) for s in self._speeds])

    def _paint_chart(self, painter: QPainter, box: QRectF) -> None:
        color = self._theme.color
        plot = Plot(painter, self._theme, box)
        drafters = list(dict.fromkeys(each.drafter for each in self._speeds))
        kinds = list(dict.fromkeys(each.kind for each in self._speeds))
        top = max(1.5, math.ceil(2 * max(each.most for each in self._speeds) + 0.2) / 2)
        step = 0.5 if top <= 3 else 1.0 if top <= 6 else 2.0
        for number in range(int(top / step) + 1):
            plot.grid(plot.at(0, number * step / top).y(), f"{number * step:g}×" if number else "0")
        group_px = box.width() / len(drafters)
        room = (group_px - _GROUP_GAP_PX) / len(kinds)
        bar_px = max(3.0, min(_SPEED_BAR_PX, room - _BAR_GAP_PX))
        pitch = bar_px + min(_BAR_GAP_PX, max(1.0, room - bar_px))
        best = max(self._speeds, key=lambda each: each.ratio)
        for each in self._speeds:
            group = box.left() + group_px * (drafters.index(each.drafter) + 0.5)
            x = group + (kinds.index(each.kind) - len(kinds) / 2) * pitch
            self._paint_bar(
                painter, box, x, bar_px, top, each, self._shade(kinds.index(each.kind), len(kinds))
            )
            if bar_px >= 18 or each is best:
                y = box.bottom() - each.most / top * box.height() - 18
                strong = each is best
                font = ui_font(LABEL_PX, 600 if strong else 400, tabular=True)
                ink = color("text" if strong else "text2")
                draw_text(painter, QRectF(x - 15, y, bar_px + 30, 15), strings.ratio(each.ratio), font, ink)
        for number, name in enumerate(drafters):
            place = QRectF(box.left() + group_px * number, box.bottom() + 8, group_px, 16)
            strong = name == best.drafter
            words = strings.drafter_of(name) if group_px >= _WORDS_PX else strings.short_drafter_of(name)
            draw_text(painter, place, words, ui_font(12, 600 if strong else 400), color("text"))
        self._paint_plain(plot, top)
        self._paint_legend(painter, kinds)

    def _paint_bar(
        self, painter: QPainter, box: QRectF, x: float, width: float, top: float, each: Speed, ink: QColor
    ) -> None:
        height = each.ratio / top * box.height()
        draw_box(painter, QRectF(x, box.bottom() - height, width, height), min(2.0, height / 2), ink)
        middle = x + width / 2
        painter.setPen(QPen(self._theme.color("text2"), 1))
        low, high = (box.bottom() - value / top * box.height() for value in (each.least, each.most))
        painter.drawLine(QPointF(middle, low), QPointF(middle, high))

    def _paint_plain(self, plot: Plot, top: float) -> None:
        painter, color, left = plot.painter, self._theme.color, Qt.AlignmentFlag.AlignLeft
        ends = plot.at(0, 1 / top), plot.at(1, 1 / top)
        plot.line(ends, color("text"), 1.4)
        x, y = ends[1].x() + 8, ends[1].y()
        place = QRectF(x, y - 15, _SPEED_RIGHT_PX, 15)
        draw_text(painter, place, strings.PLAIN, ui_font(11, 600), color("text"), left)
        if self._plain:
            font = ui_font(LABEL_PX, tabular=True)
            text = strings.plain_speed(self._plain)
            draw_text(painter, QRectF(x, y, _SPEED_RIGHT_PX, 15), text, font, color("text2"), left)

    def _paint_legend(self, painter: QPainter, kinds: list[str]) -> None:
        font, x = ui_font(11), width_of(self)
        names = [strings.kind_of(kind) for kind in kinds]
        widths = [QFontMetricsF(font).horizontalAdvance(name) for name in names]
        title = QFontMetricsF(ui_font(13.5, 600)).horizontalAdvance(strings.SPEED)
        # At the right of the title, or below both lines if it would touch them.
        beside = title + sum(widths) + 29 * len(names) <= x
        top = 1 if beside else _LEGEND_PX
        for number in reversed(range(len(names))):
            name, width = names[number], widths[number]
            x -= width
            place = QRectF(x, top, width + 2, 16)
            draw_text(painter, place, name, font, self._theme.color("text2"), Qt.AlignmentFlag.AlignLeft)
            x -= 15
            draw_box(painter, QRectF(x, top + 3, 10, 10), 2, self._shade(number, len(kinds)))
            x -= 14

    def _shade(self, number: int, count: int) -> QColor:
        share = 1.0 if count == 1 else 0.42 + 0.58 * number / (count - 1)
        return blend(self._theme.color("series_blue"), self._theme.color("window"), share)
