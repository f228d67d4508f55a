"""InstrumentStrip: the row of gauges under the header, 60 high.

Speed and first token are always shown; drafts accepted, index and memory while an answer is written, or
always if pinned, and only with a figure. Whole instruments are hidden from the right if
they do not fit. It has no timer: figures arrive about four times a second, with the time as an argument or
taken from the steady clock at the call.
"""

from __future__ import annotations

import time

from PySide6.QtCore import QRectF, QSize, Signal
from PySide6.QtGui import QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.gauges import strings
from app.gauges.instruments import (
    HEIGHT_PX,
    AcceptanceInstrument,
    FirstTokenInstrument,
    IndexInstrument,
    Instrument,
    MemoryInstrument,
)
from app.gauges.speed import ReadingSpeed, SpeedInstrument
from app.theme.measures import set_fixed_height
from app.theme.theme import color, theme
from app.theme.zoom import area_of, design_px, painter_on, place, px_size, width_of
from core.events import Gauges, PrefillProgress, Stats

_SIDE_PX = 4
_SEPARATOR_INSET_PX = 14


class InstrumentStrip(QWidget):
    """One answer's figures at a time: live, then final."""

    pinned_changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._reading_speed = ReadingSpeed()
        self._family = ""
        self.speed = SpeedInstrument(self)
        self.first_token = FirstTokenInstrument(self)
        self.acceptance = AcceptanceInstrument(self)
        self.index = IndexInstrument(self)
        self.memory = MemoryInstrument(self)
        self._live = False
        self.is_pinned = False  # all instruments are shown, also between answers
        self.setAccessibleName(strings.STRIP)
        set_fixed_height(self, HEIGHT_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.zoomed.connect(self._arrange)
        self._arrange()

    @property
    def instruments(self) -> tuple[Instrument, ...]:
        """Those that are in use, from the left."""
        return (self.speed, self.first_token, self.acceptance, self.index, self.memory)

    def set_pinned(self, pinned: bool) -> None:
        """Show all instruments always, or only while an answer is written."""
        self.is_pinned = pinned
        self._arrange()
        self.pinned_changed.emit()

    def show_end(self) -> None:
        """The answer ended, whatever ended it."""
        self._live = False
        self._arrange()

    def show_gauges(self, gauges: Gauges, now_s: float | None = None) -> None:
        self._live = True
        now_s = time.monotonic() if now_s is None else now_s
        self.speed.show_speed(gauges.tokens_per_s, now_s, plain=gauges.plain_tokens_per_s)
        self._show_answer(gauges)

    def show_stats(self, stats: Stats) -> None:
        self._live = False
        self.speed.show_final(stats.tokens_per_s)
        self._show_answer(stats)

    def _show_answer(self, figures: Gauges | Stats) -> None:
        self._reading_speed.clear()
        self.first_token.show_time(figures.ttft_s)
        self.acceptance.show_drafts(
            figures.tested, figures.acceptance, figures.mean_per_step, figures.positions
        )
        if figures.table is not None:
            self.index.show_table(figures.table, self._family)
        else:
            self.index.show_occupancy(figures.occupancy)
        self.memory.show_used(figures.memory_bytes)
        self._arrange()

    def show_prefill(self, progress: PrefillProgress, now_s: float | None = None) -> None:
        """The prompt is being read: its progress stands where the first token's time will."""
        self._live = True
        now_s = time.monotonic() if now_s is None else now_s
        if progress.phase == "scoring":
            self.first_token.show_scoring(progress.fraction)
        else:
            # As the reading card counts: what was read for an earlier question is not read now.
            done_tokens = max(0, progress.done_tokens - progress.reused_tokens)
            total_tokens = progress.kept_tokens or progress.total_tokens - progress.reused_tokens
            speed = self._reading_speed.add(done_tokens, progress.time_s)
            self.speed.show_speed(speed, now_s, reading=True)
            self.first_token.show_reading(progress.fraction, done_tokens, total_tokens)
        self.acceptance.reset()
        self._arrange()

    def reset(self) -> None:
        """No answer yet: no figures but the memory's, which belong to the worker."""
        self._live = False
        self._reading_speed.clear()
        self.speed.reset()
        self.first_token.reset()
        self.acceptance.reset()
        self.index.reset()
        self._arrange()

    def set_stale(self, stale: bool) -> None:
        """The worker is gone (figures become a dash, what is drawn grey) or is back."""
        for instrument in self.instruments:
            instrument.set_stale(stale)
        self._live = self._live and not stale
        self._arrange()

    def set_memory(self, used_bytes: int, limit_bytes: int) -> None:
        """The worker's memory and the most the machine allows (0: unknown)."""
        known = self.memory.is_known
        self.memory.show_used(used_bytes, limit_bytes)
        if self.memory.is_known != known:
            self._arrange()

    def set_family(self, family: str) -> None:
        """The loaded model's tokenizer family, whose table its answers ask."""
        self._family = family

    def sizeHint(self) -> QSize:
        instruments_px = sum(each.width_px for each in self.instruments)
        return px_size(QSize(2 * _SIDE_PX + instruments_px, HEIGHT_PX))

    def minimumSizeHint(self) -> QSize:
        return px_size(QSize(2 * _SIDE_PX + self.speed.width_px, HEIGHT_PX))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        hair = color("hair")
        painter.fillRect(area_of(self), color("window"))
        painter.fillRect(QRectF(0, HEIGHT_PX - 1, width_of(self), 1), hair)
        height = HEIGHT_PX - 1 - 2 * _SEPARATOR_INSET_PX
        for instrument in self.instruments[1:]:
            if not instrument.isHidden():
                painter.fillRect(QRectF(design_px(instrument.x()), _SEPARATOR_INSET_PX, 1, height), hair)

    def _is_wanted(self, instrument: Instrument) -> bool:
        if instrument in (self.speed, self.first_token):
            return True
        return (self._live or self.is_pinned) and instrument.is_known

    def _arrange(self) -> None:
        """Place the instruments from the left; hide the first that does not fit and all after it."""
        right = width_of(self) - _SIDE_PX
        left, fits = _SIDE_PX, True
        for instrument in self.instruments:
            if not self._is_wanted(instrument):
                instrument.hide()
                continue
            fits = fits and left + instrument.width_px <= right
            instrument.setVisible(fits)
            if fits:
                place(instrument, left, 0, instrument.width_px, HEIGHT_PX - 1)
                left += instrument.width_px
        self.update()
