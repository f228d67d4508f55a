"""LabWindow: the plan of a sweep at the left, its results at the right."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QPaintEvent, QPixmap, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QVBoxLayout, QWidget

from app.controls.buttons.button import Button
from app.controls.popup import Popup
from app.controls.scroll_bar import ScrollPage
from app.controls.text_label import TextLabel
from app.features.lab import strings
from app.features.lab.board import DifferenceWindow, ParityBoard
from app.features.lab.charts import KeepChart, SpeedChart, places_chart, turns_chart
from app.features.lab.choices import WIDTH_PX, LabChoices
from app.features.side_window import Hairline, SideWindow
from app.session.lab import Lab, LabStage, places, turns
from app.theme.measures import (
    add_gap,
    lay_beside,
    set_fixed_width,
    set_margins,
    set_spacing,
)
from app.theme.theme import Theme
from app.theme.zoom import area_of, painter_on, width_of
from core.events.sweep import SweepResults

START_SIZE = QSize(1440, 900)
MINIMUM_SIZE = QSize(1040, 660)
# In a narrower window the charts are below one another.
_BESIDE_FROM_PX = WIDTH_PX + 1052


class LabWindow(SideWindow):
    """`show_lab` after each change of the state."""

    past_chosen = Signal(str)  # the file of an earlier sweep

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, strings.TITLE, START_SIZE, MINIMUM_SIZE)
        self._shown: tuple[SweepResults | None, bool] = (None, False)
        self.choices = LabChoices(theme)
        self.past = Popup(theme, [("", strings.NOW)])
        self.past.setAccessibleName(strings.PAST)
        set_fixed_width(self.past, 170)
        self.open_button = Button(theme, strings.OPEN, small=True)
        self.export_button = Button(theme, strings.EXPORT, small=True, icon_name="export")
        self.speed = SpeedChart(theme)
        self.parity = ParityBoard(theme)
        self.differ = TextLabel(theme, "", 12, 16, "text", wrap=True)
        self.show_button = Button(theme, strings.SHOW_THEM, "link", small=True)
        self.places = places_chart(theme)
        self.turns = turns_chart(theme)
        self.keeps = KeepChart(theme)
        self._lay_out()
        self.past.value_changed.connect(self.past_chosen)
        self.parity.mark_opened.connect(self.open_difference)
        self.show_button.clicked.connect(lambda: self.open_difference(0))
        theme.zoomed.connect(self._arrange)
        self._show_results(None, False)

    def show_lab(self, lab: Lab) -> None:
        """Shows the sweep and its results."""
        self.choices.show_lab(lab)
        shown = (lab.results, lab.stage is not LabStage.IDLE)
        if shown != self._shown:
            self._shown = shown
            self._show_results(*shown)

    def show_past(self, files: Sequence[tuple[str, str]], chosen: str) -> None:
        """Shows earlier sweeps as pairs of file and title; an empty file is the current sweep."""
        self.past.blockSignals(True)
        self.past.clear()
        for file, words in files:
            self.past.addItem(words, file)
        self.past.set_value(chosen)
        self.past.blockSignals(False)
        self.past.update()

    def open_difference(self, number: int) -> None:
        """Opens both texts of a differing answer."""
        places_ = self.parity.differing
        if number < len(places_):
            DifferenceWindow(self._theme, places_, number, self).show()

    def picture(self) -> QPixmap:
        """Returns a picture of the charts."""
        return self._body.grab()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _show_results(self, results: SweepResults | None, runs: bool) -> None:
        if results is None:
            self.titles.say(strings.SUBTITLE)
        else:
            said = strings.head(
                results.model, results.answers, results.took_s, results.ended, results.began_s, runs=runs
            )
            self.titles.say(said)
        for chart in (self.speed, self.parity, self.keeps):
            chart.show_results(results)
        self.places.show_curves(places(results) if results else [])
        self.turns.show_curves(turns(results) if results else [])
        differing = self.parity.differing
        close = sum(place.mark.pair.close_call for place in differing)
        any_answers = bool(results and results.cells)
        self.differ.setText(strings.differ(len(differing), close) if any_answers else "")
        self._under_board.setVisible(any_answers)
        self.show_button.setVisible(bool(differing))
        self.export_button.setEnabled(results is not None)

    def _lay_out(self) -> None:
        theme = self._theme
        commands = (self.past, self.open_button, self.export_button)
        header = self.make_header(commands, subtitle=strings.SUBTITLE)
        board = QVBoxLayout()
        set_spacing(board, 10)
        board.addWidget(self.parity)
        self._under_board = Hairline(theme)
        board.addWidget(self._under_board)
        found = QHBoxLayout()
        found.addWidget(self.differ, 1, Qt.AlignmentFlag.AlignVCenter)
        found.addWidget(self.show_button)
        board.addLayout(found)
        board.addStretch(1)
        upper = self._upper = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        set_spacing(upper, 40)
        upper.addLayout(_widget(self.speed), 66)
        upper.addLayout(board, 34)
        lower = self._lower = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        set_spacing(lower, 28)
        for chart in (self.places, self.turns, self.keeps):
            lower.addWidget(chart, 1)
        self._body = _Page(theme)
        body = QVBoxLayout(self._body)
        set_margins(body, 24, 20, 28, 16)
        body.setSpacing(0)
        body.addLayout(upper, 54)
        add_gap(body, 14)
        body.addWidget(Hairline(theme))
        add_gap(body, 18)
        body.addLayout(lower, 46)
        right = QVBoxLayout()
        right.setSpacing(0)
        right.addWidget(header)
        right.addWidget(ScrollPage(theme, self._body), 1)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.choices)
        row.addLayout(right, 1)

    def _arrange(self) -> None:
        """Lays the charts out side by side if they fit."""
        beside = width_of(self) >= _BESIDE_FROM_PX
        for row in (self._upper, self._lower):
            lay_beside(row, beside)


class _Page(QWidget):
    """The ground of the charts, so that an exported picture includes it."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        painter.fillRect(area_of(self), self._theme.color("window"))


def _widget(widget: QWidget) -> QVBoxLayout:
    column = QVBoxLayout()
    column.addWidget(widget, 1, Qt.AlignmentFlag(0))
    return column
