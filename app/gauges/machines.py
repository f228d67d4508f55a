"""MachinesInstrument: memory and step time of each machine that runs the model, in place of the memory's.

Two machines below one another, further ones in columns beside them. Where there is no room for all, the last
line says how many more there are; the tooltip has all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter
from PySide6.QtWidgets import QWidget

from app.controls.shapes import draw_text
from app.gauges import strings
from app.gauges.figures import DASH, gigabytes, step_time
from app.gauges.instrument import PADDING_PX, TOP_PX, Instrument
from app.theme.fonts import ui_font
from app.theme.theme import Theme
from core.events import MachineUse

_COLUMN_PX = 128
_GAP_PX = 20
_ROWS = 2
_ROW_PX = 15
_TITLE_PX = 15
_STEP_PX = 46
_MEMORY_PX = 36
_LEFT, _RIGHT = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight


class MachinesInstrument(Instrument):
    """`fit` after each change of what is shown or of the room for it."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        self._machines: tuple[MachineUse, ...] = ()
        super().__init__(theme, strings.MACHINES, _width(1), parent)

    @property
    def machines(self) -> tuple[MachineUse, ...]:
        """All of them; none if the model runs on one machine."""
        return self._machines

    def show_machines(self, machines: Sequence[MachineUse]) -> None:
        """What each holds, by rank."""
        self._machines = tuple(machines)
        self.refresh()

    def fit(self, room_px: float) -> None:
        """Take as many columns as there are machines for, and room."""
        wanted = max(1, -(-len(self._machines) // _ROWS))
        columns = next((count for count in range(wanted, 1, -1) if _width(count) <= room_px), 1)
        self.width_px = _width(columns)

    @property
    def _shown(self) -> int:
        """How many there is room for; of those left over a line is kept free to say so."""
        lines = _ROWS * ((self.width_px - 2 * PADDING_PX + _GAP_PX) // (_COLUMN_PX + _GAP_PX))
        return len(self._machines) if len(self._machines) <= lines else lines - 1

    def _paint(self, painter: QPainter) -> None:
        font = ui_font(11, tabular=True)
        ink = self._theme.color("text2" if self._stale else "text")
        for number, machine in enumerate(self._machines[: self._shown]):
            box = _line(number)
            step = box.adjusted(box.width() - _STEP_PX, 0, 0, 0)
            memory = box.adjusted(0, 0, -_STEP_PX, 0)
            name = box.adjusted(0, 0, -_STEP_PX - _MEMORY_PX, 0)
            cut = QFontMetricsF(font).elidedText(machine.name, Qt.TextElideMode.ElideRight, name.width())
            draw_text(painter, name, cut, font, self._theme.color("text2"), _LEFT)
            over = 0 < machine.limit_bytes < machine.memory_bytes and not self._stale
            holds = DASH if self._stale else gigabytes(machine.memory_bytes)
            draw_text(painter, memory, holds, font, self._theme.color("danger") if over else ink, _RIGHT)
            took = DASH if self._stale else step_time(machine.step_s)
            draw_text(painter, step, took, font, ink, _RIGHT)
        if self._shown < len(self._machines):
            said = strings.more_machines(len(self._machines) - self._shown)
            draw_text(painter, _line(self._shown), said, font, self._theme.color("text2"), _LEFT)

    def _described(self) -> str:
        return "; ".join(
            strings.machine_use(
                each.name,
                gigabytes(each.memory_bytes),
                gigabytes(each.limit_bytes) if each.limit_bytes else "",
                step_time(each.step_s),
            )
            for each in self._machines
        )


def _width(columns: int) -> int:
    return 2 * PADDING_PX + columns * (_COLUMN_PX + _GAP_PX) - _GAP_PX


def _line(number: int) -> QRectF:
    left = PADDING_PX + number // _ROWS * (_COLUMN_PX + _GAP_PX)
    return QRectF(left, TOP_PX + _TITLE_PX + number % _ROWS * _ROW_PX, _COLUMN_PX, _ROW_PX)
