"""SpeedInstrument: tokens a second now, and over the last 20 s.

While a prompt is read it shows the reading speed, in its own unit and with a line of its own.
"""

from __future__ import annotations

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

from app.gauges import strings
from app.gauges.figures import Figure, speed
from app.gauges.instrument import PADDING_PX, TOP_PX, Instrument
from app.gauges.sparkline import Sparkline
from app.theme.theme import Theme

_WIDTH_PX = 216
_TEXT_PX = 86
_LINE_GAP_PX = 8
_LEAST_LINE_PX = 24
_LINE_BOX = QRectF(PADDING_PX + _TEXT_PX + 1, TOP_PX + 1.5, 95, 36)


class SpeedInstrument(Instrument):
    """`plain speed` is what the same model does without drafts; None leaves its line out."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        self._figure = Figure()
        self._line = Sparkline()
        self._reading = False
        self._plain_tokens_per_s: float | None = None
        super().__init__(theme, strings.SPEED, _WIDTH_PX, parent)

    def show_writing(self, tokens_per_s: float, now_s: float) -> None:
        """A sample of the decode speed."""
        self._show(False, tokens_per_s, now_s)

    def show_reading(self, tokens_per_s: float | None, now_s: float) -> None:
        """A sample of the reading speed; None while it cannot be known."""
        self._show(True, tokens_per_s, now_s)

    def show_final(self, tokens_per_s: float) -> None:
        """The answer's own figure. The line stays as it was."""
        self._reading = False
        self._figure = Figure(speed(tokens_per_s), strings.TOKENS_PER_S) if tokens_per_s > 0 else Figure()
        self.refresh()

    def set_plain_speed(self, tokens_per_s: float | None) -> None:
        """Where the dashed line lies."""
        self._plain_tokens_per_s = tokens_per_s
        self.refresh()

    def reset(self) -> None:
        """No figure, no line."""
        self._reading = False
        self._figure = Figure()
        self._line.clear()
        self.refresh()

    def _show(self, reading: bool, tokens_per_s: float | None, now_s: float) -> None:
        if reading != self._reading:
            self._reading = reading
            self._line.clear()
        if not tokens_per_s:
            self._figure = Figure()
        else:
            unit = strings.READ_PER_S if reading else strings.TOKENS_PER_S
            self._figure = Figure(speed(tokens_per_s), unit)
            self._line.add(tokens_per_s, now_s)
        self.refresh()

    def _paint(self, painter: QPainter) -> None:
        self._paint_figure(painter, self._figure)
        ink = self._theme.color("text3" if self.is_stale else "accent")
        dashes = self._theme.color("text3")
        dashes.setAlphaF(0.8)
        plain = None if self._reading else self._plain_tokens_per_s
        # A long figure ("12,345 tok/s read") pushes the line to the right.
        text_px = self._figure_px(self._figure) + _LINE_GAP_PX
        box = QRectF(_LINE_BOX)
        box.setLeft(max(box.left(), PADDING_PX + text_px))
        if box.width() < _LEAST_LINE_PX:
            return
        self._line.paint(painter, box, ink, self._theme.color("window"), plain, dashes)

    def _described(self) -> str:
        if not self._figure.is_known:
            return ""
        if self._plain_tokens_per_s and not self._reading:
            plain = strings.PLAIN_SPEED.format(speed=speed(self._plain_tokens_per_s))
            return f"{self._figure.text}, {plain}"
        return self._figure.text
