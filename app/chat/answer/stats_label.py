"""StatsLabel: the footer's line of figures. It breaks only between figures, each can be copied, some have a
tooltip. Minor figures are shown while the answer is hovered; their space is kept."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from PySide6.QtCore import QEvent, QPointF
from PySide6.QtGui import (
    QContextMenuEvent,
    QFont,
    QFontMetricsF,
    QGuiApplication,
    QHelpEvent,
    QPainter,
    QPaintEvent,
)
from PySide6.QtWidgets import QMenu, QToolTip, QWidget

from app.chat.answer import strings
from app.chat.answer.stats_line import SEPARATOR, Emphasis, StatsPart, break_parts, details_text, plain_text
from app.theme.fonts import ui_font
from app.theme.theme import Theme
from app.theme.zoom import design_point, design_px, painter_on, px, width_of

LINE_PX = 16
_SIZE_PX = 11
_COLORS: dict[Emphasis, str] = {"plain": "text2", "strong": "text", "danger": "danger"}


class StatsLabel(QWidget):
    """`set_parts`, then `height_for(width)`."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._parts: tuple[StatsPart, ...] = ()
        self._revealed = False
        theme.changed.connect(self.update)

    @property
    def text(self) -> str:
        """The whole line."""
        return plain_text(self._parts)

    def set_parts(self, parts: Sequence[StatsPart]) -> None:
        """Show these figures."""
        self._parts = tuple(parts)
        self.setAccessibleName(self.text)
        self.setAccessibleDescription(details_text(self._parts))
        self.update()

    def set_revealed(self, revealed: bool) -> None:
        """Whether minor figures are shown."""
        if revealed != self._revealed:
            self._revealed = revealed
            self.update()

    @property
    def shown_text(self) -> str:
        """The figures that are shown."""
        return plain_text(self._shown(width_of(self)))

    def _shown(self, width: float) -> list[StatsPart]:
        """What is shown at that width, in design pixels: minor figures take no further lines."""
        brief = [part for part in self._parts if not part.minor]
        if not self._revealed:
            return brief
        lines = max(1, len(break_parts(brief, width, _width)))
        shown = list(self._parts)
        for part in reversed([part for part in self._parts if part.minor]):
            if len(break_parts(shown, width, _width)) <= lines:
                break
            shown.remove(part)
        return shown

    def height_for(self, width: int) -> int:
        """Height of the line when broken to that width; one line if there are no figures yet."""
        brief = [part for part in self._parts if not part.minor]
        return px(LINE_PX * max(1, len(break_parts(brief, design_px(width), _width))))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        metrics = QFontMetricsF(_font("plain"))
        baseline = round((LINE_PX - metrics.height()) / 2 + metrics.ascent())
        lines = break_parts(self._shown(width_of(self)), width_of(self), _width)
        for number, line in enumerate(lines):
            x = 0.0
            for place, part in enumerate(line):
                self._draw(painter, part, x, number * LINE_PX + baseline)
                x += _width(part)
                # The separator stays at the end of its line.
                if place + 1 < len(line) or number + 1 < len(lines):
                    self._draw(painter, StatsPart(SEPARATOR), x, number * LINE_PX + baseline)
                    x += _width(StatsPart(SEPARATOR))

    def part_at(self, point: QPointF) -> StatsPart | None:
        """The figure at `point`."""
        point = design_point(point)
        lines = break_parts(self._shown(width_of(self)), width_of(self), _width)
        number = int(point.y() // LINE_PX)
        x = 0.0
        for part in lines[number] if 0 <= number < len(lines) else ():
            if x <= point.x() < x + _width(part):
                return part
            x += _width(part) + _width(StatsPart(SEPARATOR))
        return None

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            part = self.part_at(event.pos().toPointF())
            hidden = len(self._shown(width_of(self))) < len(self._parts)
            tip = part.detail if part and part.detail else self.text if hidden else ""
            QToolTip.showText(event.globalPos(), tip, self)
            return True
        return super().event(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = QMenu(self)
        part = self.part_at(event.pos().toPointF())
        if part:
            menu.addAction(strings.COPY_FIGURE.format(figure=part.text)).triggered.connect(
                lambda: QGuiApplication.clipboard().setText(part.text)
            )
        menu.addAction(strings.COPY_FIGURES).triggered.connect(
            lambda: QGuiApplication.clipboard().setText(self.text)
        )
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(event.globalPos())

    def _draw(self, painter: QPainter, part: StatsPart, x: float, baseline: int) -> None:
        painter.setFont(_font(part.emphasis))
        painter.setPen(self._theme.color(_COLORS[part.emphasis]))
        painter.drawText(QPointF(x, baseline), part.text)


def _font(emphasis: Emphasis) -> QFont:
    return ui_font(_SIZE_PX, 600 if emphasis == "strong" else 400, tabular=True)


@lru_cache(512)
def _width(part: StatsPart) -> float:
    return QFontMetricsF(_font(part.emphasis)).horizontalAdvance(part.text)
