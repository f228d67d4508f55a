"""The replay of a race: RaceSide shows one answer, RaceChart the tokens over time of both.

The chart's position can be dragged. For assistive technology the chart is a slider in milliseconds whose
description has the figures. Arrows move by a tenth of a second, Page keys by a second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractSlider, QFrame, QScrollArea, QSizePolicy, QWidget

from app.chat.answer_body import AnswerBody
from app.chat.stats_line import LINE_PX, StatsLabel, StatsPart, finished_parts
from app.controls.focus_ring import FocusRing
from app.controls.plot import LABEL_PX, Plot
from app.controls.scroll_bar import OverlayScrollBar
from app.controls.shapes import draw_box, draw_text
from app.controls.text_label import TextLabel
from app.features.race import strings
from app.features.race.state import Recording, Sight, duration_s, written
from app.features.side_window import ProgressBar
from app.gauges.figures import percent, seconds, speed
from app.richtext.text_canvas import MARGIN_PX
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.measures import STRETCH, column_of, row_of, set_fixed_height, set_fixed_size
from app.theme.theme import Theme
from app.theme.zoom import area_of, design_point, height_of, painter_on, px, px_size, ratio_of, width_of
from core.events import Token

_PADDING_PX = 10
_TOP_PX = 2
_RADIUS_PX = 9
# About five lines; a lower page scrolls.
_LEAST = QSize(160, 140)


class RaceText(QWidget):
    """The text of a side. Playing appends; seeking back rewrites it."""

    def __init__(self, theme: Theme, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._name = name
        self._tokens: Sequence[Token] = ()
        self._shown = 0
        self._finished = False
        self._area = QScrollArea(self)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        OverlayScrollBar(theme, self._area)
        self._page = QWidget()
        self._area.setWidget(self._page)
        self.body = self._new_body()
        # The margins keep the frame's rounded corners free.
        column_of(self._area, margins=(4, 8, 4, 8), parent=self)
        theme.changed.connect(self._restyle)
        self._restyle()

    def minimumSizeHint(self) -> QSize:
        return px_size(_LEAST)

    def show_tokens(self, tokens: Sequence[Token], count: int, done: bool) -> None:
        """Shows the first `count` of `tokens`; `done`: there are no more."""
        if tokens is not self._tokens or count < self._shown or (self._finished and not done):
            self._tokens = tokens
            self._restart_text()
        if count > self._shown:
            self.body.append(tokens[self._shown : count])
            self._shown = count
        if done and not self._finished:
            self._finished = True
            self.body.finish()
        # No caret before the start of the replay.
        self.body.setVisible(bool(tokens))
        self._arrange()
        bar = self._area.verticalScrollBar()
        bar.setValue(bar.maximum())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        color = self._theme.color
        draw_box(painter, area_of(self), _RADIUS_PX, color("window"), color("hair"))

    def _new_body(self) -> AnswerBody:
        body = AnswerBody(self._theme, self._page)
        body.setAccessibleName(self._name)
        body.hide()
        return body

    def _restart_text(self) -> None:
        self._shown, self._finished = 0, False
        self.body.hide()
        self.body.deleteLater()
        self.body = self._new_body()

    def _arrange(self) -> None:
        width = self._area.viewport().width()
        column = max(40, width - 2 * px(_PADDING_PX))
        height = self.body.height_for(column)
        self._page.resize(width, height + 2 * px(_TOP_PX))
        self.body.setGeometry(px(_PADDING_PX) - MARGIN_PX, px(_TOP_PX), column + 2 * MARGIN_PX, height + 2)

    def _restyle(self) -> None:
        for widget in (self._area.viewport(), self._page):
            palette = QPalette(widget.palette())
            palette.setColor(QPalette.ColorRole.Window, self._theme.color("window"))
            widget.setPalette(palette)
        self._arrange()
        self.update()


_BAR_PX = 6
_CLOCK_PX = 100
_ICON_PX = 14


class RaceSide(QWidget):
    """`lead` marks the drafted side, whose bar is blue."""

    def __init__(
        self, theme: Theme, title: str, name: str, lead: bool, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._title = title
        self._recording = Recording()
        self.subtitle = TextLabel(theme, "", 11, 14, "text2")
        self.status = _Status(theme)
        self.clock = _Clock(theme, "text" if lead else "text2")
        self.bar = ProgressBar(theme, "accent_fill" if lead else "text2", _BAR_PX)
        self.count = TextLabel(theme, "", 11, 15, tabular=True)
        self.share = TextLabel(theme, "", 11, 15, tabular=True)
        self.text = RaceText(theme, name)
        self.stats = StatsLabel(theme)
        set_fixed_height(self.stats, 2 * LINE_PX)
        self._lay_out(TextLabel(theme, title, 13, 17, "text", weight=600))

    def show_waiting(self, status: str) -> None:
        """Shows that recording has not begun."""
        self._recording = Recording()
        self._show(status, "", 0.0, 0.0)
        self.count.setText("")
        self.share.setText("")
        self.text.show_tokens((), 0, False)
        self.stats.set_parts(())

    def show_recording(self, recording: Recording, *, done: bool = False) -> None:
        """Shows the figures while this side, or the other, is recorded."""
        tokens = recording.tokens
        reading = not tokens and recording.prompt_tokens > 0
        status = strings.RECORDED if done else strings.READING if reading else strings.RECORDING
        self._show(status, "", tokens[-1].time_s if tokens else 0.0, 0.0)
        said = strings.recorded(len(tokens))
        if reading:
            said = strings.read(recording.read_tokens, recording.prompt_tokens)
        self.count.setText(said)
        self.share.setText("")

    def show_sight(self, recording: Recording, sight: Sight) -> None:
        """Shows a moment of the replay."""
        self._recording = recording
        finished = strings.FINISHED if sight.done else ""
        writing = strings.WRITING if sight.tokens else strings.READING
        self._show(finished or writing, "flag" if sight.done else "", sight.clock_s, sight.share)
        self.count.setText(strings.progress(sight.tokens, sight.total))
        self.share.setText(percent(sight.share))
        self.text.show_tokens(recording.tokens, sight.tokens, sight.done)
        self.stats.set_parts(self._parts(sight))
        self.setAccessibleName(
            strings.side_described(
                self._title, self.status.text, sight.clock_s, self.count.text(), sight.tokens_per_s
            )
        )

    def _show(self, status: str, icon: str, clock_s: float, share: float) -> None:
        self.status.show_status(status, icon)
        self.clock.show_seconds(clock_s)
        self.bar.show_share(share)

    def _parts(self, sight: Sight) -> tuple[StatsPart, ...]:
        if sight.done and self._recording.finished:
            return finished_parts(self._recording.finished)
        parts = [StatsPart(f"{speed(sight.tokens_per_s)} tok/s", "strong")] if sight.tokens_per_s else []
        return (*parts, StatsPart(strings.recorded(sight.tokens))) if sight.tokens else ()

    def _lay_out(self, title: TextLabel) -> None:
        head = row_of((column_of(STRETCH, title, self.subtitle), 1), self.status, self.clock, gap=14)
        for widget in (self.status, self.clock):
            head.setAlignment(widget, Qt.AlignmentFlag.AlignBottom)
        figures = row_of((self.count, 1), self.share)
        column_of(head, 10, self.bar, 5, figures, 12, (self.text, 1), 8, self.stats, parent=self)


class _Clock(QWidget):
    """A clock, 26/30 semibold, with a small unit that does not move while the digits change."""

    def __init__(self, theme: Theme, ink: str) -> None:
        super().__init__()
        self._theme = theme
        self._ink = ink
        self.text = seconds(0.0)
        set_fixed_size(self, QSize(_CLOCK_PX, 30))

    def show_seconds(self, clock_s: float) -> None:
        """Sets the time."""
        self.text = seconds(clock_s)
        self.setAccessibleName(f"{self.text} {strings.SECONDS}")
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        unit = ui_font(12)
        unit_px = QFontMetricsF(unit).horizontalAdvance(strings.SECONDS) + 3
        box = area_of(self)
        right = Qt.AlignmentFlag.AlignRight
        font = ui_font(26, 600, tabular=True)
        draw_text(
            painter, box.adjusted(0, 0, -unit_px, 0), self.text, font, self._theme.color(self._ink), right
        )
        color = self._theme.color("text2")
        draw_text(painter, box.adjusted(0, 8, 0, 0), strings.SECONDS, unit, color, right)


class _Status(QWidget):
    """The status; a finished side has a flag and is blue."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._icon = ""
        self.text = ""
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def show_status(self, text: str, icon: str) -> None:
        """Sets the status; `icon` may be empty."""
        if (text, icon) != (self.text, self._icon):
            self.text, self._icon = text, icon
            self.setAccessibleName(text)
            self.updateGeometry()
            self.update()

    def sizeHint(self) -> QSize:
        text_px = QFontMetricsF(ui_font(12, 500)).horizontalAdvance(self.text)
        return px_size(QSize(int(text_px + (_ICON_PX + 5 if self._icon else 0) + 1.999), 22))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        ink = self._theme.color("accent" if self._icon else "text2")
        box = area_of(self)
        if self._icon:
            flag = icon_pixmap(self._icon, ink, _ICON_PX, ratio_of(self))
            painter.drawPixmap(QPointF(0, (height_of(self) - _ICON_PX) // 2), flag)
            box.setLeft(_ICON_PX + 5)
        draw_text(
            painter, box, self.text, ui_font(12, 500 if self._icon else 400), ink, Qt.AlignmentFlag.AlignLeft
        )


HEIGHT_PX = 128
_LEFT_PX, _RIGHT_PX, _ABOVE_PX, _BOTTOM_PX = 44, 60, 14, 26
_CLEAR_PX = 36
_GAP_PX = 6
_DESCRIBED_MOMENTS = 8


def ticks(most: float, wanted: int = 6) -> list[float]:
    """Returns round numbers from 0 to at least `most`."""
    if most <= 0:
        return [0.0, 1.0]
    raw = most / wanted
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.999)
    return [step * number for number in range(math.ceil(most / step - 1e-9) + 1)]


def beside(left: float, width: float, line: float) -> float:
    """Returns the left end of a label near `left` that does not cross the vertical `line`."""
    if not left - _GAP_PX < line < left + width + _GAP_PX:
        return left
    before, after = line - _GAP_PX - width, line + _GAP_PX
    return before if left + width / 2 < line and before > _LEFT_PX else after


class RaceChart(QAbstractSlider):
    """`sought` reports a person's moves only."""

    sought = Signal(float)  # seconds

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._plain = Recording()
        self._drafted = Recording()
        self._told = False  # whether the replay, not a person, changes the value
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setOrientation(Qt.Orientation.Horizontal)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setSingleStep(100)
        self.setPageStep(1000)
        self.setAccessibleName(strings.MOMENT)
        self._ring = FocusRing(self, theme, 6)
        self.valueChanged.connect(self._tell)
        self.setRange(0, 0)

    def show_race(self, plain: Recording, drafted: Recording) -> None:
        """Shows the lines of two answers."""
        self._plain, self._drafted = plain, drafted
        end_s = max(duration_s(plain), duration_s(drafted))
        self._told = True
        self.setRange(0, math.ceil(end_s * 1000))
        self._told = False
        moments = [end_s * part / _DESCRIBED_MOMENTS for part in range(_DESCRIBED_MOMENTS + 1)]
        self.setAccessibleDescription(
            strings.chart_described(
                [(at_s, written(plain, at_s)) for at_s in moments],
                [(at_s, written(drafted, at_s)) for at_s in moments],
            )
            if plain.tokens or drafted.tokens
            else strings.CHART
        )
        self.update()

    def show_moment(self, at_s: float) -> None:
        """Shows the position of the replay. Does not emit `sought`."""
        self._told = True
        self.setValue(round(at_s * 1000))
        self._told = False
        self.update()

    def sizeHint(self) -> QSize:
        return px_size(QSize(400, HEIGHT_PX))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.mouseMoveEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton and self.maximum():
            box = self._box()
            share = (design_point(event.position()).x() - box.left()) / max(1.0, box.width())
            self.setValue(round(min(1.0, max(0.0, share)) * self._span_s() * 1000))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        color = self._theme.color
        most = max(len(self._plain.tokens), len(self._drafted.tokens))
        if not most:
            return
        box = self._box()
        plot = Plot(painter, self._theme, box)
        for count in sorted({0, most // 2, most}):
            plot.grid(self._at(0.0, count).y(), f"{count:,}")
        now_s = self.value() / 1000
        now_x = self._at(now_s, 0).x()
        for at_s in ticks(self._end_s()):
            x = self._at(at_s, 0).x()
            if abs(x - now_x) > _CLEAR_PX:  # the position's label is there
                plot.under(x, box.bottom() + 6, f"{at_s:g} s")
        self._paint_line(plot, self._plain, color("text2"), now_s, smooth=True)
        self._paint_line(plot, self._drafted, color("series_blue"), now_s, smooth=False)
        self._paint_ends(plot, now_s)
        self._paint_moment(painter, now_s)

    # ---- inside

    def _tell(self, value: int) -> None:
        self.update()
        if not self._told:
            self.sought.emit(value / 1000)

    def _end_s(self) -> float:
        return max(duration_s(self._plain), duration_s(self._drafted))

    def _span_s(self) -> float:
        return ticks(self._end_s())[-1]

    def _box(self) -> QRectF:
        return QRectF(
            _LEFT_PX,
            _ABOVE_PX,
            max(1, width_of(self) - _LEFT_PX - _RIGHT_PX),
            height_of(self) - _ABOVE_PX - _BOTTOM_PX,
        )

    def _at(self, at_s: float, tokens: float) -> QPointF:
        box = self._box()
        most = max(1, len(self._plain.tokens), len(self._drafted.tokens))
        return QPointF(
            box.left() + at_s / self._span_s() * box.width(), box.bottom() - tokens / most * box.height()
        )

    def _paint_line(
        self, plot: Plot, recording: Recording, ink: QColor, now_s: float, *, smooth: bool
    ) -> None:
        """Paints a line: solid up to the position, dotted after it."""
        tokens = recording.tokens
        if not tokens:
            return
        points = [self._at(tokens[0].time_s, 0)]
        for number, token in enumerate(tokens, 1):
            if number < len(tokens) and tokens[number].time_s == token.time_s:
                continue  # a step yields several tokens at once
            place = self._at(token.time_s, number)
            if not smooth:
                points.append(QPointF(place.x(), points[-1].y()))
            points.append(place)
        now_x = self._at(now_s, 0).x()
        for left, right, dotted in ((-1e9, now_x, False), (now_x, 1e9, True)):
            plot.painter.save()
            plot.painter.setClipRect(QRectF(QPointF(left, -10), QPointF(right, height_of(self))))
            plot.line(points, ink, 1.4 if dotted else 1.6, (1.0, 3.0) if dotted else ())
            plot.painter.restore()

    def _paint_ends(self, plot: Plot, now_s: float) -> None:
        color = self._theme.color
        font, strong = ui_font(LABEL_PX, tabular=True), ui_font(LABEL_PX, 600, tabular=True)
        sides = (
            (self._plain, color("text2"), font, strings.at_seconds),
            (self._drafted, color("series_blue"), strong, strings.done_at),
        )
        ends = [self._at(duration_s(side), len(side.tokens)) for side, *_ in sides]
        # The first answer is named above its end, the second below.
        first = 0 if ends[0].x() < ends[1].x() else 1
        for number, (side, ink, face, words) in enumerate(sides):
            if not side.tokens:
                continue
            end_s, end = duration_s(side), ends[number]
            done = end_s <= now_s
            plot.dot(end, 2.8, ink if done else color("window"), ink)
            width = QFontMetricsF(face).horizontalAdvance(words(end_s)) + 1
            left, top = (
                (end.x() - 10 - width, end.y() - 15)
                if number == first
                else (end.x() + 12 - width / 2, end.y() + 7)
            )
            label = QRectF(beside(left, width, self._at(now_s, 0).x()), top, width, 16)
            draw_text(plot.painter, label, words(end_s), face, color("accent") if number == 1 else ink)

    def _paint_moment(self, painter: QPainter, now_s: float) -> None:
        color, box = self._theme.color, self._box()
        x = self._at(now_s, 0).x()
        painter.setPen(QPen(color("text"), 1.4))
        painter.drawLine(QPointF(x, box.top() - 8), QPointF(x, box.bottom()))
        count = written(self._plain, now_s)
        if 0 < count < len(self._plain.tokens):
            at = self._at(now_s, count)
            painter.setBrush(color("text2"))
            painter.drawEllipse(at, 2.6, 2.6)
        pill = QRectF(x - 19, box.bottom() + 1, 38, 16)
        draw_box(painter, pill, 4, color("text"))
        draw_text(painter, pill, seconds(now_s), ui_font(LABEL_PX, 600, tabular=True), color("window"))
