"""InstrumentStrip: the row of gauges under the header, 60 high.

All gauges are always shown, in the same places; one without a figure has a dash. In a narrow strip, gauges
are left out from the right, depending on its width alone. Figures arrive about four times a second, with the
time as an argument or taken from the steady clock at the call; only the progress of a prefill is counted on
by a timer.
"""

from __future__ import annotations

import time

from PySide6.QtCore import QRectF, QSize, QTimer
from PySide6.QtGui import QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QLayout, QSizePolicy, QWidget

from app.gauges import strings
from app.gauges.instruments import (
    HEIGHT_PX,
    AcceptanceInstrument,
    FirstTokenInstrument,
    IndexInstrument,
    Instrument,
    MemoryInstrument,
)
from app.gauges.speed import SpeedInstrument
from app.theme.measures import STRETCH, row_of, set_fixed_height
from app.theme.theme import color, theme
from app.theme.zoom import area_of, design_px, painter_on, px, width_of
from core.events import Gauges, PrefillProgress, Stats

_SIDE_PX = 4
_HAIR_PX = 1
_SEPARATOR_INSET_PX = 14


class InstrumentStrip(QWidget):
    """One answer's figures at a time: live, then final."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._prefill: PrefillProgress | None = None
        self._prefill_timer = QTimer(self, interval=1000)
        self._prefill_timer.timeout.connect(self._count_on)
        self.speed = SpeedInstrument(strings.SPEED, 216)
        self.first_token = FirstTokenInstrument(strings.FIRST_TOKEN, 104)
        self.acceptance = AcceptanceInstrument(strings.DRAFTS_ACCEPTED, 206)
        self.index = IndexInstrument(strings.TABLE, 226)
        self.memory = MemoryInstrument(strings.MEMORY, 136)
        # From left to right. A figure without a drawing is a plain `Instrument`.
        self.instruments: tuple[Instrument, ...] = (
            self.speed,
            self.first_token,
            self.acceptance,
            self.index,
            self.memory,
        )
        self._row = row_of(*self.instruments, STRETCH, margins=(_SIDE_PX, 0, _SIDE_PX, _HAIR_PX), parent=self)
        self._row.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)  # it may be narrower
        self.setAccessibleName(strings.STRIP)
        set_fixed_height(self, HEIGHT_PX + _HAIR_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.zoomed.connect(self._fit)

    def show_gauges(self, gauges: Gauges, now_s: float | None = None) -> None:
        self._show(gauges, time.monotonic() if now_s is None else now_s)

    def show_stats(self, stats: Stats) -> None:
        self._show(stats, time.monotonic())

    def _show(self, figures: Gauges | Stats, now_s: float) -> None:
        self._end_prefill()
        for instrument in self.instruments:
            instrument.show_figures(figures, now_s)

    def show_prefill(self, progress: PrefillProgress, now_s: float | None = None) -> None:
        """The prompt is being read: its progress is shown in place of the first token's time."""
        self._prefill = progress
        now_s = time.monotonic() if now_s is None else now_s
        for instrument in self.instruments:
            instrument.show_prefill(progress, now_s)
        self._prefill_timer.start()

    def _count_on(self) -> None:
        """Count the prefill on while no event comes."""
        if self._prefill is not None:
            self.show_prefill(self._prefill)

    def _end_prefill(self) -> None:
        self._prefill = None
        self._prefill_timer.stop()

    def reset(self) -> None:
        """No answer yet: no figures but the memory's, which belong to the worker."""
        self._end_prefill()
        for instrument in self.instruments:
            instrument.reset()

    def set_stale(self, stale: bool) -> None:
        """Whether the worker has exited: figures become a dash, without a drawing."""
        for instrument in self.instruments:
            instrument.set_stale(stale)
        self._end_prefill()

    def set_memory(self, used_bytes: int, limit_bytes: int) -> None:
        """The worker's memory and the most the machine allows (0: unknown)."""
        self.memory.show_used(used_bytes, limit_bytes)

    def set_family(self, family: str) -> None:
        """The loaded model's tokenizer family, whose table its answers ask."""
        self.index.family = family

    def minimumSizeHint(self) -> QSize:
        return QSize(2 * px(_SIDE_PX) + self.speed.minimumWidth(), self.minimumHeight())

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._fit()

    def _fit(self) -> None:
        """Leave out the first gauge that does not fit, and all after it."""
        right = px(_SIDE_PX)
        for instrument in self.instruments:
            right += instrument.minimumWidth()
            instrument.setVisible(right <= self.width() - px(_SIDE_PX))
        self._row.activate()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        hair = color("hair")
        painter.fillRect(area_of(self), color("window"))
        painter.fillRect(QRectF(0, HEIGHT_PX, width_of(self), _HAIR_PX), hair)
        height = HEIGHT_PX - 2 * _SEPARATOR_INSET_PX
        for instrument in self.instruments[1:]:
            if not instrument.isHidden():
                painter.fillRect(QRectF(design_px(instrument.x()), _SEPARATOR_INSET_PX, 1, height), hair)
