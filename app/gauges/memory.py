"""MemoryInstrument: the worker's memory, of what the machine allows. Vermilion over the limit."""

from __future__ import annotations

from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

from app.gauges import strings
from app.gauges.figures import Figure, gigabytes
from app.gauges.instrument import Instrument
from app.theme.theme import Theme

_WIDTH_PX = 160


class MemoryInstrument(Instrument):
    """A limit of 0 is unknown: then there is no bar."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        self._used_bytes = 0
        self._limit_bytes = 0
        super().__init__(theme, strings.MEMORY, _WIDTH_PX, parent)

    def show_used(self, used_bytes: int) -> None:
        """Bytes in use now; 0 means unknown."""
        self._used_bytes = used_bytes
        self.refresh()

    def show_limit(self, limit_bytes: int) -> None:
        """The most the machine allows."""
        self._limit_bytes = limit_bytes
        self.refresh()

    def _figure(self) -> Figure:
        if self._used_bytes <= 0:
            return Figure()
        if self._limit_bytes <= 0:
            return Figure(gigabytes(self._used_bytes), strings.GB)
        return Figure(gigabytes(self._used_bytes), strings.OF_GB.format(limit=gigabytes(self._limit_bytes)))

    def _paint(self, painter: QPainter) -> None:
        has_bar = self._limit_bytes > 0
        self._paint_figure(painter, self._figure(), with_bar=has_bar)
        if has_bar:
            share = self._used_bytes / self._limit_bytes
            self._paint_bar(painter, share, "series_vermilion" if share > 1 else "series_blue")

    def _described(self) -> str:
        return self._figure().text
