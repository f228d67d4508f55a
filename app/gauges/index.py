"""IndexInstrument: how full the drafter's index is, or the table that all chats share and what it gave."""

from __future__ import annotations

from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

from app.gauges import strings
from app.gauges.figures import Figure, count, percent, short_count
from app.gauges.instrument import Instrument
from app.theme.theme import Theme
from core.events import Occupancy, TableUse

_WIDTH_PX = 182


class IndexInstrument(Instrument):
    """A drafter that keeps none (`capacity` 0) has no figure."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        self._figure = Figure()
        self._share: float | None = None
        self._more = ""
        super().__init__(theme, strings.TABLE, _WIDTH_PX, parent)

    def show_occupancy(self, occupancy: Occupancy) -> None:
        """Entries used and the most it takes."""
        self._more = ""
        if occupancy.capacity > 0:
            unit = strings.OF_ENTRIES.format(capacity=short_count(occupancy.capacity))
            self._figure = Figure(count(occupancy.used), unit)
            self._share = occupancy.used / occupancy.capacity
        else:
            self._figure, self._share = Figure(), None
        self.refresh()

    def show_table(self, use: TableUse, family: str) -> None:
        """The shared table of the tokenizer `family`; the tooltip says whose it is and what it gave."""
        hits = strings.hits(percent(use.hits / use.lookups)) if use.hits else strings.ENTRIES
        self._figure = Figure(count(use.used), hits)
        self._share = use.used / use.slots
        self._more = strings.table_use(family, short_count(use.slots), use.hits, use.lookups, use.used_before)
        self.refresh()

    def reset(self) -> None:
        """No figure."""
        self.show_occupancy(Occupancy())

    def _paint(self, painter: QPainter) -> None:
        self._paint_figure(painter, self._figure, with_bar=self._share is not None)
        if self._share is not None:
            self._paint_bar(painter, self._share)

    def _described(self) -> str:
        return ", ".join(part for part in (self._figure.text, self._more) if part)
