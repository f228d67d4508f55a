"""TableDetail: the selected table's state, history chart, and the models that it learned from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QFormLayout, QLabel, QSizePolicy, QStackedWidget, QWidget

from app.controls.plot import LABEL_PX, Plot, above
from app.controls.shapes import draw_box, draw_text
from app.controls.text_label import TextLabel
from app.features.tables import strings
from app.features.tables.rows import kind_of, size_text, state_line
from app.gauges.figures import count, percent
from app.session.status import recognised
from app.theme.fonts import ui_font
from app.theme.measures import STRETCH, column_of, row_of, set_fixed_height, set_spacings
from app.theme.theme import Theme
from app.theme.zoom import height_of, painter_on, px_size, width_of
from core.events import LearnedTable, TableDay, TableInfo, TableTeacher


@dataclass(frozen=True)
class Point:
    """A value, `days` after the first day."""

    days: int
    value: float


@dataclass(frozen=True)
class Line:
    """A line and its scale: `labels` at zero, half and all of `top`.

    The axis begins at the first point's day, named `first`, and covers `span_days` until today. `now` is the
    last value as text.
    """

    points: tuple[Point, ...]
    top: float
    labels: tuple[str, str, str]
    span_days: int
    first: str
    now: str

    def place(self, point: Point) -> float:
        """Returns the position of a point on the axis, 0 to 1. A point of today is at its end."""
        return point.days / self.span_days if self.span_days else 1.0


def entries_line(days: Sequence[TableDay], today: date) -> Line:
    """Returns the line of entries at the end of each day."""
    points, span_days = _points([(day.day, float(day.used)) for day in days], today)
    highest = max((point.value for point in points), default=0.0)
    top = above(highest) if highest else 1.0
    labels = (_short(0), _short(top / 2), _short(top))
    now = count(round(points[-1].value)) if points else ""
    return Line(points, top, labels, span_days, strings.days_ago(span_days), now)


def accepted_line(days: Sequence[TableDay], today: date) -> Line:
    """Returns the line of the accepted share of tested tokens by day; days without a test are left out."""
    tested = [(day.day, day.accepted / day.tested) for day in days if day.tested]
    points, span_days = _points(tested, today)
    highest = max((point.value for point in points), default=0.0)
    top = min(1.0, max(0.2, math.ceil(highest * 5) / 5))
    labels = (percent(0), percent(top / 2), percent(top))
    now = percent(points[-1].value) if points else ""
    return Line(points, top, labels, span_days, strings.days_ago(span_days), now)


def _points(pairs: Sequence[tuple[str, float]], today: date) -> tuple[tuple[Point, ...], int]:
    """Returns the valid points in order, and the days from the first to today."""
    known = sorted((day, value) for text, value in pairs if (day := _day(text)) and day <= today)
    if not known:
        return (), 0
    first = known[0][0]
    return tuple(Point((day - first).days, value) for day, value in known), (today - first).days


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _short(value: float) -> str:
    if value >= 1_000_000:
        return f"{value / 1e6:g}M"
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"


_AXIS_PX = 40
_TITLE_PX = 18
_TOP_PX = 30
_FOOT_PX = 22
_DOT_PX = 3.2
_FADE = 0.10  # of the line's colour, under the line


class HistoryChart(QLabel):
    """A line chart. A QLabel for assistive technology; not focusable."""

    def __init__(
        self, theme: Theme, title: str, ink: str, *, filled: bool = False, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._title = title
        self._ink = ink
        self._filled = filled
        self._line: Line | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        set_fixed_height(self, _TOP_PX + 116 + _FOOT_PX)
        self.setAccessibleName(title)

    def show_line(self, line: Line) -> None:
        self._line = line
        self.setAccessibleDescription(line.now or strings.NO_DAYS)
        self.setToolTip(f"{self._title}: {line.now}" if line.now else "")
        self.update()

    def sizeHint(self) -> QSize:
        return px_size(QSize(336, _TOP_PX + 116 + _FOOT_PX))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        color = self._theme.color
        left, right = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight
        title = QRectF(0, 0, width_of(self), _TITLE_PX)
        draw_text(painter, title, self._title, ui_font(12), color("text2"), left)
        line = self._line
        if line is None:
            return
        box = QRectF(_AXIS_PX, _TOP_PX, width_of(self) - _AXIS_PX - 5, height_of(self) - _TOP_PX - _FOOT_PX)
        plot = Plot(painter, self._theme, box)
        small = ui_font(LABEL_PX, tabular=True)
        plot.scale(line.labels)
        if not line.points:
            upper = QRectF(box.left(), box.top(), box.width(), box.height() / 2)  # between two lines
            draw_text(painter, upper, strings.NO_DAYS, ui_font(11), color("text2"))
            return
        foot = QRectF(box.left(), box.bottom() + 6, box.width(), 14)
        draw_text(painter, foot, line.first, small, color("text2"), left)
        draw_text(painter, foot, strings.TODAY, small, color("text2"), right)
        self._paint_line(plot, line, color(self._ink))

    def _paint_line(self, plot: Plot, line: Line, ink: QColor) -> None:
        points = [plot.at(line.place(point), min(1.0, point.value / line.top)) for point in line.points]
        plot.painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if len(points) > 1:
            if self._filled:
                plot.area(points, ink, _FADE)
            plot.line(points, ink, 1.5)
        plot.dot(points[-1], _DOT_PX, ink, self._theme.color("window"))


MOST = 3
_TEACHERS_TITLE_PX = 26
_ROW_PX = 24
_BAR_PX = 4
_LEAST_NAME_PX, _MOST_NAME_PX = 100, 200
_SHARE_PX = 44


class Teachers(QLabel):
    """Bars of the models that taught most; the last bar is all others together."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._shares: tuple[tuple[str, float], ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        set_fixed_height(self, _TEACHERS_TITLE_PX + MOST * _ROW_PX)
        self.setAccessibleName(strings.BY_SHARE)

    def show_teachers(self, teachers: Sequence[TableTeacher]) -> None:
        self._shares = shares(teachers)
        self.setAccessibleDescription(", ".join(f"{name} {percent(share)}" for name, share in self._shares))
        self.setToolTip("\n".join(f"{teacher.model}: {teacher.entries:,}" for teacher in teachers))
        self.update()

    def sizeHint(self) -> QSize:
        return px_size(QSize(680, _TEACHERS_TITLE_PX + MOST * _ROW_PX))

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self._shares:
            return
        painter = painter_on(self)
        color = self._theme.color
        left, right = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight
        title = QRectF(0, 0, width_of(self), _TEACHERS_TITLE_PX - 8)
        draw_text(painter, title, strings.BY_SHARE, ui_font(12), color("text2"), left)
        font = ui_font(12)
        widest = max(QFontMetricsF(font).horizontalAdvance(name) for name, _ in self._shares)
        name_px = min(_MOST_NAME_PX, max(_LEAST_NAME_PX, widest + 12))
        for place, (name, share) in enumerate(self._shares):
            row = QRectF(0, _TEACHERS_TITLE_PX + place * _ROW_PX, width_of(self), _ROW_PX)
            draw_text(
                painter, QRectF(row.left(), row.top(), name_px - 10, _ROW_PX), name, font, color("text"), left
            )
            bar = QRectF(name_px, row.center().y() - 2, row.width() - name_px - _SHARE_PX, _BAR_PX)
            draw_box(painter, bar, 2, color("fill2"))
            bar.setWidth(max(2.0, bar.width() * share))
            draw_box(painter, bar, 2, color("series_blue"))
            draw_text(painter, row, percent(share), ui_font(12, tabular=True), color("text2"), right)


def shares(teachers: Sequence[TableTeacher]) -> tuple[tuple[str, float], ...]:
    """Returns at most `MOST` names with their shares, largest first; the shares add up to 1."""
    total = sum(teacher.entries for teacher in teachers)
    if not total:
        return ()
    ranked = sorted(teachers, key=lambda teacher: -teacher.entries)
    if len(ranked) > MOST:
        rest = sum(teacher.entries for teacher in ranked[MOST - 1 :])
        ranked = [*ranked[: MOST - 1], TableTeacher(strings.OTHERS, rest)]
    return tuple((teacher.model, teacher.entries / total) for teacher in ranked)


_MARGIN_PX = 26
_GAP_PX = 26


class TableDetail(QWidget):
    """The details of a table."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.title = TextLabel(theme, "", 15, 20, "text", weight=600)
        self.state = TextLabel(theme, "", 12, 16, tabular=True)
        self.entries = HistoryChart(theme, strings.ENTRIES, "series_blue", filled=True)
        self.accepted = HistoryChart(theme, strings.ACCEPTED_DAILY, "series_green")
        self.teachers = Teachers(theme)
        self.facts: dict[str, TextLabel] = {}
        self._pages = QStackedWidget()
        self._pages.addWidget(self._make_history())
        self._pages.addWidget(self._make_facts())
        head = row_of(self.title, (self.state, 1), gap=10)
        head.setAlignment(self.state, Qt.AlignmentFlag.AlignBottom)
        column_of(head, (self._pages, 1), gap=14, margins=(_MARGIN_PX, 14, _GAP_PX, 14), parent=self)
        self.show_nothing(listed=False)

    def show_table(self, info: TableInfo, now: datetime) -> None:
        """Shows a table that chats teach."""
        self._head(recognised(info.family_name), state_line(info, now))
        self.entries.show_line(entries_line(info.days, now.date()))
        self.accepted.show_line(accepted_line(info.days, now.date()))
        self.teachers.show_teachers(info.learned_from)
        self._pages.setCurrentIndex(0)
        self._pages.show()

    def show_learned(self, table: LearnedTable) -> None:
        """Shows a table learned beforehand."""
        self._head(recognised(table.family_name), kind_of(table))
        facts = {
            strings.LEARNED_FROM: table.learned_from,
            strings.USED_BY: strings.DRAFTERS[table.drafter],
            strings.ENTRIES: strings.contexts(table.entries),
            strings.SIZE: size_text(table.size_bytes),
            strings.FILE: table.file,
            strings.FINGERPRINT: table.family,
        }
        for name, value in facts.items():
            self.facts[name].setText(value)
            self.facts[name].setToolTip(value)
        self._pages.setCurrentIndex(1)
        self._pages.show()

    def show_nothing(self, *, listed: bool) -> None:
        """Shows that no table is selected, or that none exists."""
        self._head(strings.NONE_YET if listed else "", strings.NONE_YET_HINT if listed else "")
        self._pages.hide()

    def _head(self, title: str, state: str) -> None:
        self.title.setText(title)
        self.state.setText(state)
        for label in (self.title, self.state):
            label.updateGeometry()

    def _make_history(self) -> QWidget:
        page = QWidget()
        charts = row_of(self.entries, self.accepted, gap=_GAP_PX)
        column_of(charts, self.teachers, STRETCH, gap=14, parent=page)
        return page

    def _make_facts(self) -> QWidget:
        page = QWidget()
        form = QFormLayout(page)
        form.setContentsMargins(0, 0, 0, 0)
        set_spacings(form, 16, 8)
        for name in (
            strings.LEARNED_FROM,
            strings.USED_BY,
            strings.ENTRIES,
            strings.SIZE,
            strings.FILE,
            strings.FINGERPRINT,
        ):
            value = TextLabel(self._theme, "", 12, 18, "text", tabular=True)
            value.setTextInteractionFlags(Qt.TextInteractionFlag.NoTextInteraction)
            form.addRow(TextLabel(self._theme, name, 12, 18), value)
            self.facts[name] = value
        form.addRow(TextLabel(self._theme, strings.READ_ONLY_TABLE, 12, 18))
        return page
