"""FirstTokenInstrument: how long the first token took; before it, how far reading has come."""

from __future__ import annotations

from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

from app.gauges import strings
from app.gauges.figures import Figure, count, percent_so_far, seconds
from app.gauges.instrument import Instrument
from app.theme.theme import Theme

_WIDTH_PX = 104


class FirstTokenInstrument(Instrument):
    """While the prompt is read, the share of it; how many tokens that is, is said when it is pointed at."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        self._figure = Figure()
        self._read_share: float | None = None
        self._read = ""
        super().__init__(theme, strings.FIRST_TOKEN, _WIDTH_PX, parent)

    def show_time(self, ttft_s: float) -> None:
        """Seconds to the first token; 0 or less means there was none."""
        self._read_share = None
        self._figure = Figure(seconds(ttft_s), strings.SECONDS) if ttft_s > 0 else Figure()
        self.refresh()

    def show_reading(self, done_tokens: int, total_tokens: int) -> None:
        """How much of the prompt is read."""
        self._read_share = done_tokens / total_tokens if total_tokens > 0 else 0.0
        self._figure = Figure(percent_so_far(self._read_share), strings.READ)
        self._read = strings.READ_SO_FAR.format(done=count(done_tokens), total=count(total_tokens))
        self.refresh()

    def reset(self) -> None:
        """No figure."""
        self.show_time(0)

    def _paint(self, painter: QPainter) -> None:
        reading = self._read_share is not None and not self.is_stale
        self._paint_figure(painter, self._figure, with_bar=reading)
        if reading and self._read_share is not None:
            self._paint_bar(painter, self._read_share, "accent")

    def _described(self) -> str:
        return self._figure.text if self._read_share is None else self._read
